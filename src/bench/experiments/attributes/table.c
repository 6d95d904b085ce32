/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes of a connection: MTU, transport service, service level, completions. */
#include "bench/experiments/groups.h"
#include "bench/measure/background_load.h"
#include "bench/measure/rate_sweep.h"
#include "bench/measure/variants.h"
#include "runs.h"
#include "util/vtime.h"

static int mtu_run(struct bench *bench)
{
    struct variants variants = { .bench = bench };

    for (int mtu = IBV_MTU_256; mtu <= (int)bench->adapter->port_attributes.active_mtu; mtu++) {
        struct flow_spec *spec = variants_add(&variants, "mtu %u", endpoint_mtu_bytes(mtu));

        spec->mtu = endpoint_mtu_bytes(mtu);
    }
    return variants_measure(&variants);
}

static int event_run(struct bench *bench)
{
    static const enum wait_mode modes[] = { WAIT_POLL, WAIT_BLOCK, WAIT_SPIN_BLOCK };
    struct variants variants = { .bench = bench };

    if (sweep_operation(bench) == OPERATION_WRITE)
        return bench_fail(bench, "nobody is notified of a write: choose send, write-imm or read");
    for (unsigned int i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        struct flow_spec *spec = variants_add(&variants, "%s", wait_names[modes[i]]);

        spec->wait = modes[i];
        spec->send_wait = modes[i];
    }
    return variants_measure(&variants);
}

static int relaxed_order_run(struct bench *bench)
{
    struct variants variants = { .bench = bench };

    if (vtime.on)
        return bench_skip(bench, "the bus of a model keeps no order that could be relaxed: run it "
                                 "on hardware");
    for (int relaxed = 0; relaxed <= 1; relaxed++) {
        struct flow_spec *spec = variants_add(&variants, relaxed ? "relaxed" : "strict");

        spec->mr_per_buffer = true;
        spec->relaxed = relaxed;
    }
    return variants_measure(&variants);
}

static void set_interval(struct flow_spec *spec, uint64_t interval)
{
    spec->signal = interval;
}

static int signal_run(struct bench *bench)
{
    const struct number_list *intervals = &bench->settings->intervals;

    return rate_sweep_measure(bench,
                              &(struct rate_sweep){ "interval", "", intervals, set_interval });
}

const struct experiment experiments_attributes[] = {
    {
        .name = "mtu",
        .title = "What do smaller packets cost?",
        .source = "MIBA section 5.2.5 and figure 10",
        .options = "--sizes 2..1M --iterations 1000",
        .quick = "--sizes 256,4K,64K --iterations 200 --repetitions 3",
        .ranks = 2,
        .run = mtu_run,
    },
    {
        .name = "service",
        .title = "What do the transport services cost: RC, UC, UD, XRC?",
        .source = "MIBA section 2; measured as its figures 5a and 5b",
        .options = "--sizes 2..1M --style reply --iterations 1000",
        .quick = "--sizes 8,2K,64K --iterations 200 --repetitions 3",
        .ranks = 2,
        .run = service_run,
    },
    {
        .name = "event",
        .title = "What does blocking cost, compared with polling?",
        .source = "MIBA section 5.2.7 and figure 12; VI Architecture table 1",
        .options = "--sizes 2..1M --iterations 1000",
        .quick = "--sizes 8,4K,64K --iterations 200 --repetitions 3",
        .ranks = 2,
        .run = event_run,
    },
    {
        .name = "signal",
        .title = "What is gained if not every send is signalled?",
        .source = "MIBA section 5.1, the cost of polling",
        .options = "--sizes 8 --ops send,write --inline 64 --window 256 --iterations 20000",
        .quick = "--intervals 1,8,64 --iterations 5000 --repetitions 3",
        .ranks = 2,
        .run = signal_run,
    },
    {
        .name = "post-list",
        .title = "Do requests that are posted in lists reach a higher rate?",
        .source = "Design Guidelines for High Performance RDMA Systems (USENIX ATC 2016)",
        .options = "--sizes 8 --ops write,read --inline 64 --batches 1..32 --window 128 "
                   "--iterations 20000",
        .quick = "--batches 1,4,16 --iterations 4000 --repetitions 3",
        .ranks = 2,
        .run = post_list_run,
    },
    {
        .name = "relaxed-order",
        .title = "What is gained if accesses to memory may pass each other on the bus?",
        .source = "PCI Express, relaxed ordering (IBV_ACCESS_RELAXED_ORDERING)",
        .options = "--sizes 64..1M --ops write --iterations 1000",
        .quick = "--sizes 64,64K --iterations 200 --repetitions 3",
        .ranks = 2,
        .run = relaxed_order_run,
    },
    {
        .name = "srq",
        .title = "What does a shared receive queue cost?",
        .source = "after MIBA section 5.2.3 and figures 7 and 8, with the receive queue shared",
        .options = "--sizes 8 --inline 64 --qps 1..64 --window 128 --depth 64 --iterations 10000",
        .quick = "--qps 1,8 --iterations 2000 --repetitions 3",
        .ranks = 2,
        .run = srq_run,
    },
    {
        .name = "sl",
        .title = "Do service levels differ, and do they protect traffic from other traffic?",
        .source = "MIBA section 2; measured as its figures 5a and 5b",
        .options = "--sizes 8,4K,64K,1M --levels 0..7:1 --nodes 2 --iterations 1000",
        .quick = "--sizes 8,64K --levels 0,1,7 --nodes 2 --iterations 200 --repetitions 3",
        .layout = LAYOUT_ALL_APART,
        .count = background_load_ranks,
        .run = sl_run,
    },
    {
        .name = "registration-cache",
        .title = "Is it cheaper to copy a payload into registered memory or to register it?",
        .source = "MIBA figure 2 and section 5.1, memory registration",
        .options = "--sizes 256..16M --iterations 200 --warmup 20",
        .quick = "--sizes 4K,64K,1M --iterations 50 --warmup 5",
        .ranks = 2,
        .run = registration_cache_run,
    },
    { .name = NULL },
};
