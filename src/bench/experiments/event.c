/* What it costs to sleep until a completion comes. */
#include "variants.h"

static int run(struct bench *bench)
{
    static const enum wait_mode modes[] = { WAIT_POLL, WAIT_BLOCK, WAIT_SPIN_BLOCK };
    struct variants variants = { .bench = bench };

    if (chosen_operation(bench) == OPERATION_WRITE)
        return bench_fail(bench, "nobody is notified of a write: choose send, write-imm or read");
    for (unsigned int i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        struct flow_spec *spec = variants_add(&variants, "%s", wait_names[modes[i]]);

        spec->wait = modes[i];
        spec->send_wait = modes[i];
    }
    return variants_measure(&variants);
}

const struct experiment experiment_event = {
    .name = "event",
    .group = "attributes",
    .title = "What does blocking cost, against polling?",
    .source = "MIBA section 5.2.7 and figure 12; VI Architecture table 1",
    .options = "--sizes 2..1M --iterations 1000",
    .quick = "--sizes 8,4K,64K --iterations 200 --repetitions 3",
    .ranks = 2,
    .run = run,
};
