/* SPDX-License-Identifier: BSD-2-Clause */
#include "qp_lifecycle.h"
#include "bench/completion.h"
#include "bench/endpoint.h"

struct qp {
    uint64_t depth;
    struct completions completions;
    struct endpoint target; /* what the peer connects to */
    struct endpoint_address peer;
    struct endpoint endpoint;
};

static int create_of_depth(struct bench *bench, const struct qp *qp, uint32_t depth,
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
        .send_cq = qp->completions.cq,
        .receive_cq = qp->completions.cq,
    };

    return endpoint_create(bench, &spec, out);
}

static int create_qp(struct bench *bench, void *object)
{
    struct qp *qp = object;

    return create_of_depth(bench, qp, qp->depth, &qp->endpoint);
}

static int qp_to_init(struct bench *bench, void *object)
{
    struct qp *qp = object;

    qp->endpoint.peer = qp->peer;
    return endpoint_to_init(bench, &qp->endpoint);
}

static int qp_to_rtr(struct bench *bench, void *object)
{
    return endpoint_to_rtr(bench, &((struct qp *)object)->endpoint);
}

static int qp_to_rts(struct bench *bench, void *object)
{
    return endpoint_to_rts(bench, &((struct qp *)object)->endpoint);
}

static int destroy_qp(struct bench *bench, void *object)
{
    endpoint_destroy(&((struct qp *)object)->endpoint);
    return BENCH_OK;
}

static const lifecycle_step connected_steps[] = { create_qp, qp_to_init, qp_to_rtr,
                                                  qp_to_rts, destroy_qp, NULL };
static const lifecycle_step unconnected_steps[] = { create_qp, destroy_qp, NULL };

static int open_qp(struct bench *bench, struct qp *qp)
{
    struct endpoint_address all[CONTROL_RANKS_MAX];

    if (completions_open(bench, bench->settings->depth, WAIT_POLL, &qp->completions) ||
        create_of_depth(bench, qp, bench->settings->depth, &qp->target) ||
        bench_exchange(bench, &qp->target.mine, sizeof(qp->target.mine), all))
        return BENCH_FAILED;
    qp->peer = all[bench->ranks - 1];
    return BENCH_OK;
}

static void close_qp(struct qp *qp)
{
    endpoint_destroy(&qp->endpoint);
    endpoint_destroy(&qp->target);
    completions_close(&qp->completions);
}

int qp_lifecycle_run(struct bench *bench)
{
    const struct qp_lifecycle_spec *spec = bench->experiment->spec;
    struct qp qp = { 0 };
    struct lifecycle_sweep sweep = { .axis = "depth",
                                     .axis_unit = "",
                                     .values = &bench->settings->depths,
                                     .limit = bench->adapter->limits.max_qp_wr,
                                     .value = &qp.depth,
                                     .calls = 1 };
    struct lifecycle lifecycles[2];
    unsigned int count = 0;
    int status;

    if (spec->unconnected)
        lifecycles[count++] = (struct lifecycle){ unconnected_steps, spec->unconnected, &qp };
    if (spec->connected)
        lifecycles[count++] = (struct lifecycle){ connected_steps, spec->connected, &qp };
    status = open_qp(bench, &qp);
    if (!status)
        status = lifecycle_measure(bench, &sweep, lifecycles, count);
    close_qp(&qp);
    return status;
}
