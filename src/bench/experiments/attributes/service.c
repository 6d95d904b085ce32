/* SPDX-License-Identifier: BSD-2-Clause */
/* What the guarantees of a transport service cost. The default window style is reply: without
 * acknowledgements a sender that only looks at its own completions would overrun the receiver. */
#include "runs.h"
#include "bench/measure/variants.h"

static const char *refusal_of(const struct bench *bench, enum transport transport)
{
    const char *refusal = endpoint_transport_refusal(bench, transport);

    return refusal ? refusal : flow_operation_refusal(bench, sweep_operation(bench), transport);
}

int service_run(struct bench *bench)
{
    struct variants variants = { .bench = bench };

    for (int transport = 0; transport < TRANSPORT_COUNT; transport++) {
        const char *refusal = refusal_of(bench, transport);

        if (refusal) {
            bench_note(bench, transport_names[transport], "%s", refusal);
            continue;
        }
        variants_add(&variants, "%s", transport_names[transport])->transport = transport;
    }
    if (!variants.count)
        return bench_skip(bench, "no service can do this operation");
    return variants_measure(&variants);
}
