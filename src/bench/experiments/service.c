/* What the guarantees of a transport service cost. */
#include "variants.h"

static const char *refusal_of(const struct bench *bench, enum transport transport)
{
    const char *refusal = transport_refusal(bench, transport);

    return refusal ? refusal : operation_refusal(bench, chosen_operation(bench), transport);
}

static int run(struct bench *bench)
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

/* The window waits for a reply: where nothing is acknowledged, a sender that only looked at its own
 * completions would run over the receiver. */
const struct experiment experiment_service = {
    .name = "service",
    .group = "attributes",
    .title = "What do the transport services cost: RC, UC, UD, XRC?",
    .source = "MIBA section 2; measured as its figures 5a and 5b",
    .options = "--sizes 2..1M --style reply --iterations 1000",
    .quick = "--sizes 8,2K,64K --iterations 200 --repetitions 3",
    .ranks = 2,
    .run = run,
};
