/* SPDX-License-Identifier: BSD-2-Clause */
/* The basic measurements: latency, bandwidth, message rate. */
#include "bench/experiments/groups.h"
#include "bench/measure/rate_sweep.h"
#include "bandwidth.h"
#include "runs.h"

static void set_size(struct flow_spec *spec, uint64_t size)
{
    spec->size = size;
}

static void set_qps(struct flow_spec *spec, uint64_t qps)
{
    spec->qps = qps;
}

static int msg_rate_run(struct bench *bench)
{
    const struct settings *settings = bench->settings;

    if (rate_sweep_measure(bench, &(struct rate_sweep){ "size", "B", &settings->sizes, set_size }))
        return BENCH_FAILED;
    return rate_sweep_measure(bench, &(struct rate_sweep){ "QPs", "", &settings->qps, set_qps });
}

const struct experiment experiments_basic[] = {
    {
        .name = "latency",
        .title = "How long does a message take, by operation and way of waiting?",
        .source = "MIBA figure 5a; VI Architecture table 1; PCI Express figures 2 to 5",
        .options = "--sizes 1..1M --inline 220 --iterations 2000 "
                   "--ops send,write,write-imm,read,fetch-add,compare-swap "
                   "--wait poll,memory,block,spin-block",
        .quick = "--sizes 8,1K,64K --iterations 500",
        .ranks = 2,
        .run = latency_run,
    },
    {
        .name = "bw",
        .title = "What is the bandwidth in one direction?",
        .source = "MIBA figure 5b; VI Architecture figures 2 and 3; PCI Express figure 6",
        .options = "--sizes 2..4M --ops send,write,read --style refill,reply --iterations 2000",
        .quick = "--sizes 64,4K,256K --windows 1,8,64 --iterations 500 --repetitions 3",
        .ranks = 2,
        .run = bandwidth_run,
        .spec = &(const struct bandwidth_spec){ .by_window = true },
    },
    {
        .name = "bibw",
        .title = "What is the bandwidth if both sides send at the same time?",
        .source = "MIBA figure 5c; PCI Express figure 7",
        .options = "--sizes 2..4M --ops send,write --style refill,reply --iterations 2000",
        .quick = "--sizes 64,4K,256K --iterations 500 --repetitions 3",
        .ranks = 2,
        .run = bandwidth_run,
        .spec = &(const struct bandwidth_spec){ .both_ways = true },
    },
    {
        .name = "msg-rate",
        .title = "How many small messages can be sent per second?",
        .source = "MIBA figure 5b, for small messages",
        .options = "--sizes 8..1K --ops send,write,read,fetch-add --inline 64 --window 512 "
                   "--signal 16 --qps 1..16 --iterations 20000",
        .quick = "--sizes 8,256 --qps 1,4 --iterations 5000 --repetitions 3",
        .ranks = 2,
        .run = msg_rate_run,
    },
    {
        .name = "cpu-util",
        .title = "How much can a program compute before its bandwidth falls?",
        .source = "MIBA section 5.2.1 and figure 5d",
        .options = "--sizes 64K --ops send --window 16 --iterations 256 "
                   "--work 0..90:10,95,98,99",
        .quick = "--work 0,50,90 --iterations 64 --repetitions 3",
        .ranks = 2,
        .run = cpu_util_run,
    },
    {
        .name = "inline",
        .title = "Up to which size do inline sends pay off?",
        .source = "MIBA figure 5a, for small messages",
        .options = "--sizes 2..64K --iterations 5000",
        .quick = "--sizes 8,64,512 --iterations 500",
        .ranks = 2,
        .run = inline_run,
    },
    { .name = NULL },
};
