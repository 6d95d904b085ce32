#include "queue_pairs.h"
#include "bench/completion.h"
#include "bench/endpoint.h"

#define LIVES_MAX 2

struct queue_pair {
    uint64_t depth;
    struct completions completions;
    struct endpoint kept; /* what the peer may connect to */
    struct endpoint_address peer;
    struct endpoint endpoint;
};

static int create_of_depth(struct bench *bench, const struct queue_pair *pair, uint32_t depth,
                           struct endpoint *out)
{
    const struct settings *settings = bench->settings;
    struct endpoint_spec spec = {
        .transport = settings->transport,
        .send_depth = depth,
        .receive_depth = depth,
        .inline_limit = settings->inline_limit,
        .mtu = settings->mtu,
        .sl = settings->sl,
        .send_cq = pair->completions.cq,
        .receive_cq = pair->completions.cq,
    };

    return endpoint_create(bench, &spec, out);
}

static int create_pair(struct bench *bench, void *object)
{
    struct queue_pair *pair = object;

    return create_of_depth(bench, pair, pair->depth, &pair->endpoint);
}

static int pair_to_init(struct bench *bench, void *object)
{
    struct queue_pair *pair = object;

    pair->endpoint.peer = pair->peer;
    return endpoint_to_init(bench, &pair->endpoint);
}

static int pair_to_rtr(struct bench *bench, void *object)
{
    return endpoint_to_rtr(bench, &((struct queue_pair *)object)->endpoint);
}

static int pair_to_rts(struct bench *bench, void *object)
{
    return endpoint_to_rts(bench, &((struct queue_pair *)object)->endpoint);
}

static int destroy_pair(struct bench *bench, void *object)
{
    endpoint_destroy(&((struct queue_pair *)object)->endpoint);
    return BENCH_OK;
}

static const cycle_step connected_steps[] = { create_pair, pair_to_init, pair_to_rtr,
                                              pair_to_rts, destroy_pair, NULL };
static const cycle_step unconnected_steps[] = { create_pair, destroy_pair, NULL };

static int open_pair(struct bench *bench, struct queue_pair *pair)
{
    struct endpoint_address all[CONTROL_RANKS_MAX];

    if (completions_open(bench, bench->settings->depth, WAIT_POLL, &pair->completions) ||
        create_of_depth(bench, pair, bench->settings->depth, &pair->kept) ||
        bench_exchange(bench, &pair->kept.mine, sizeof(pair->kept.mine), all))
        return BENCH_FAILED;
    pair->peer = all[bench->ranks - 1];
    return BENCH_OK;
}

static void close_pair(struct queue_pair *pair)
{
    endpoint_destroy(&pair->endpoint);
    endpoint_destroy(&pair->kept);
    completions_close(&pair->completions);
}

int queue_pair_lives(struct bench *bench, const struct life *lives, unsigned int count)
{
    struct queue_pair pair = { 0 };
    struct cycle cycles[LIVES_MAX];
    struct cycle_sweep sweep = { .axis = "depth",
                                 .axis_unit = "",
                                 .values = &bench->settings->depths,
                                 .limit = bench->adapter->limits.max_qp_wr,
                                 .value = &pair.depth,
                                 .calls = 1 };
    int status;

    for (unsigned int i = 0; i < count; i++)
        cycles[i] =
            (struct cycle){ .steps = lives[i].connected ? connected_steps : unconnected_steps,
                            .spans = lives[i].spans,
                            .span_count = lives[i].span_count,
                            .object = &pair };
    status = open_pair(bench, &pair);
    if (!status)
        status = cycle_measure(bench, &sweep, cycles, count);
    close_pair(&pair);
    return status;
}
