/* How much passes one way, with a window of messages in flight. */
#include "bench/experiments/streams.h"

static int run(struct bench *bench)
{
    if (streams_by_size(bench, false))
        return BENCH_FAILED;
    return streams_by_window(bench);
}

const struct experiment experiment_bw = {
    .name = "bw",
    .group = "basic",
    .title = "How much data passes one way?",
    .source = "MIBA figure 5b; VI Architecture figures 2 and 3; PCI Express figure 6",
    .options = "--sizes 2..4M --ops send,write,read --style refill,reply --iterations 2000",
    .quick = "--sizes 64,4K,256K --windows 1,8,64 --iterations 500 --repetitions 3",
    .ranks = 2,
    .run = run,
};
