/* What the completions of sends cost. */
#include "rates.h"

static void set_interval(struct flow_spec *spec, uint64_t interval)
{
    spec->signal = interval;
}

static int run(struct bench *bench)
{
    const struct number_list *intervals = &bench->settings->intervals;

    return rates_measure(bench, &(struct rates){ "interval", "", intervals, set_interval });
}

const struct experiment experiment_signal = {
    .name = "signal",
    .group = "attributes",
    .title = "What is gained when not every send asks for a completion?",
    .source = "MIBA section 5.1, the cost of polling",
    .options = "--sizes 8 --ops send,write --inline 64 --window 256 --iterations 20000",
    .quick = "--intervals 1,8,64 --iterations 5000 --repetitions 3",
    .ranks = 2,
    .run = run,
};
