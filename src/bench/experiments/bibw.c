/* How much passes when both sides send. */
#include "streams.h"

static int run(struct bench *bench)
{
    return streams_by_size(bench, true);
}

const struct experiment experiment_bibw = {
    .name = "bibw",
    .group = "basic",
    .title = "How much data passes when both sides send?",
    .source = "MIBA figure 5c; PCI Express figure 7",
    .options = "--sizes 2..4M --ops send,write --style refill,reply --iterations 2000",
    .quick = "--sizes 64,4K,256K --iterations 500 --repetitions 3",
    .ranks = 2,
    .run = run,
};
