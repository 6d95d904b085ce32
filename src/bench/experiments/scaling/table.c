/* SPDX-License-Identifier: BSD-2-Clause */
/* Scaling: many queue pairs, memory regions, nodes or threads. */
#include "bench/experiments/groups.h"
#include "bench/measure/background_load.h"
#include "bench/measure/count_sweep.h"
#include "bench/measure/sweep.h"
#include "runs.h"

/* One measuring process and the largest number of further nodes. */
static int nodes_ranks(const struct settings *settings)
{
    return 1 + sweep_largest(&settings->nodes);
}

static void set_qps(struct flow_spec *spec, unsigned int qps)
{
    spec->qps = qps;
}

static int multi_qp_run(struct bench *bench)
{
    return count_sweep_flow(bench,
                            (struct count_sweep){ .axis = "QPs",
                                                  .counts = &bench->settings->qps,
                                                  .limit = count_sweep_qp_limit(bench, 0),
                                                  .limiter = "queue pairs" },
                            set_qps);
}

/* Messages rotate over all queue pairs, and only those of the first one are timed: by then the
 * adapter may have to fetch its context again. */
static int measure_first_qp(struct bench *bench, void *context, size_t size, unsigned int qps,
                            struct summary *out)
{
    struct flow_spec spec;

    flow_defaults(bench, 1 - bench->rank, &spec);
    spec.size = size;
    spec.qps = qps;
    return count_sweep_latency(bench, &spec, qps, out);
}

static int icm_qp_run(struct bench *bench)
{
    static const struct count_sweep_curve curve = { "first QP", measure_first_qp };

    return count_sweep_time_by_qps(bench, "latency", &curve);
}

/* Messages rotate over buffers that are registered one by one, on both sides. */
static void set_regions(struct flow_spec *spec, unsigned int regions)
{
    spec->slots = regions;
    spec->buffers = regions;
    spec->mr_per_buffer = true;
}

static int icm_mtt_run(struct bench *bench)
{
    /* Each send buffer and each receive buffer is a region; two more cover all the memory. */
    uint64_t limit = (bench->adapter->limits.max_mr - 2) / 2;

    return count_sweep_flow(bench,
                            (struct count_sweep){ .axis = "regions",
                                                  .counts = &bench->settings->regions,
                                                  .limit = limit,
                                                  .limiter = "pairs of memory regions" },
                            set_regions);
}

const struct experiment experiments_scaling[] = {
    {
        .name = "multi-qp",
        .title = "Does performance depend on the number of queue pairs in use?",
        .source = "MIBA section 5.2.3, figures 7 and 8",
        .options = "--qps 1..1K --sizes 64 --depth 16 --iterations 4000",
        .quick = "--qps 1,16,128 --iterations 1000 --repetitions 3",
        .ranks = 2,
        .run = multi_qp_run,
    },
    {
        .name = "multi-vi",
        .title = "One completion queue for all connections, or one each, polled in turn?",
        .source = "VI Architecture section 3.5, table 2",
        .options = "--qps 1,2,5,10,20,50,100 --sizes 2K --depth 16 --iterations 10000",
        .quick = "--qps 1,10,50 --iterations 2000 --repetitions 3",
        .ranks = 2,
        .run = multi_vi_run,
    },
    {
        .name = "icm-qp",
        .title = "What does it cost to return to a queue pair after n - 1 others?",
        .source = "Mem/MemFree section 4.1, figure 3a",
        .options = "--qps 1..256 --sizes 8 --depth 16 --iterations 500 --warmup 10 --refine 4",
        .quick = "--qps 1,8,64,256 --iterations 100 --refine 0",
        .ranks = 2,
        .run = icm_qp_run,
    },
    {
        .name = "icm-scatter",
        .title = "How long does it take to send a buffer on each of n queue pairs?",
        .source = "Mem/MemFree section 4.2, figure 3b",
        .options = "--qps 1..256 --sizes 64,1K,8K,64K --depth 16 --iterations 200 --warmup 10",
        .quick = "--qps 1,16,128 --sizes 64,8K --iterations 30",
        .ranks = 2,
        .run = icm_scatter_run,
    },
    {
        .name = "icm-mtt",
        .title = "Does performance depend on the number of memory regions in use?",
        .source = "Mem/MemFree section 4.3, table 1",
        .options = "--regions 1..4K --sizes 4K --iterations 4000",
        .quick = "--regions 1,16,256 --iterations 1000 --repetitions 3",
        .ranks = 2,
        .run = icm_mtt_run,
    },
    {
        .name = "host-memory",
        .title = "How much host memory does a connection take?",
        .source = "Mem/MemFree section 4.4, figure 3c",
        .options = "--qps 1..1K --depth 128",
        .quick = "--qps 1,16,256",
        .ranks = 2,
        .run = host_memory_run,
    },
    {
        .name = "hca-load",
        .title = "How much bandwidth does a sender lose while other nodes keep its adapter busy?",
        .source = "MIBA section 5.2.8, figure 13",
        .options = "--nodes 0..6:1 --sizes 4K,64K --iterations 2000",
        .quick = "--nodes 0,1,3 --sizes 64K --iterations 300 --repetitions 3",
        .layout = LAYOUT_ALL_APART,
        .count = background_load_ranks,
        .run = hca_load_run,
    },
    {
        .name = "incast",
        .title = "What bandwidth do n nodes get if all send to one, and is it shared fairly?",
        .source = "this suite",
        .options = "--nodes 1..6:1 --sizes 4K --iterations 4000",
        .quick = "--nodes 1,2,4 --iterations 500 --repetitions 3",
        .layout = LAYOUT_ALL_APART,
        .count = nodes_ranks,
        .run = incast_run,
    },
    {
        .name = "fairness",
        .title = "How soon do n nodes that begin one after the other share the link of one node?",
        .source = "this suite, after DCQCN (SIGCOMM 2015)",
        .options = "--nodes 4 --sizes 64K --window 16 --iterations 4000",
        .quick = "--nodes 2 --iterations 200",
        .layout = LAYOUT_ALL_APART,
        .count = nodes_ranks,
        .run = fairness_run,
    },
    {
        .name = "victim",
        .title = "What does a flow to a free node keep while others crowd another node?",
        .source = "this suite, after DCQCN (SIGCOMM 2015)",
        .options = "--nodes 0..4:1 --sizes 64K --window 16 --iterations 400",
        .quick = "--nodes 0,2 --iterations 100 --repetitions 3",
        .layout = LAYOUT_ALL_APART,
        .count = victim_ranks,
        .run = victim_run,
    },
    {
        .name = "all-to-all",
        .title = "What bandwidth does each node get if every node writes to all others?",
        .source = "this suite",
        .options = "--nodes 1..7:1 --sizes 4K,64K --iterations 200",
        .quick = "--nodes 1,3 --sizes 4K --iterations 50 --repetitions 3",
        .layout = LAYOUT_ALL_APART,
        .count = nodes_ranks,
        .run = all_to_all_run,
    },
    {
        .name = "multi-thread",
        .title = "Do several threads, each with its own queue pair, send more than one?",
        .source = "this suite",
        .options = "--threads 1..8 --sizes 64,8K --iterations 20000 --pin none",
        .quick = "--threads 1,2,4 --iterations 2000 --repetitions 3",
        .ranks = 2,
        .run = multi_thread_run,
    },
    {
        .name = "shared-qp",
        .title = "What do threads lose that share a queue pair?",
        .source = "FaRM (NSDI 2014), Design Guidelines for High Performance RDMA Systems (2016)",
        .options = "--threads 1..8 --sizes 8 --inline 64 --window 32 --iterations 10000 --pin none",
        .quick = "--threads 1,2,4 --iterations 2000 --repetitions 3",
        .ranks = 2,
        .run = shared_qp_run,
    },
    {
        .name = "swarm",
        .title = "How many reads per second does a machine do if all read from all at random?",
        .source = "FaSST (OSDI 2016), rc-swarm of rdma_bench",
        .options = "--nodes 5 --threads 4 --qps 1,3,5,7 --sizes 32 --ops read --window 16 "
                   "--iterations 500 --pin none",
        .quick = "--nodes 2 --threads 2 --qps 1,4 --iterations 200 --repetitions 3",
        .layout = LAYOUT_ALL_APART,
        .count = nodes_ranks,
        .run = swarm_run,
    },
    { .name = NULL },
};
