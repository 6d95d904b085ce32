/* How many small messages a second. */
#include "rates.h"

static void set_size(struct flow_spec *spec, uint64_t size)
{
    spec->size = size;
}

static void set_qps(struct flow_spec *spec, uint64_t qps)
{
    spec->qps = qps;
}

static int run(struct bench *bench)
{
    const struct settings *settings = bench->settings;

    if (rates_measure(bench, &(struct rates){ "size", "B", &settings->sizes, set_size }))
        return BENCH_FAILED;
    return rates_measure(bench, &(struct rates){ "QPs", "", &settings->qps, set_qps });
}

const struct experiment experiment_msg_rate = {
    .name = "msg-rate",
    .group = "basic",
    .title = "How many small messages pass in a second?",
    .source = "MIBA figure 5b, for small messages",
    .options = "--sizes 8..1K --ops send,write,read,fetch-add --inline 64 --window 512 "
               "--signal 16 --qps 1..16 --iterations 20000",
    .quick = "--sizes 8,256 --qps 1,4 --iterations 5000 --repetitions 3",
    .ranks = 2,
    .run = run,
};
