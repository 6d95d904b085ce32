/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether it pays to send the payload inline, within the work request. */
#include "runs.h"
#include "bench/measure/variants.h"

#include <errno.h>
#include <string.h>

#define LIMIT_MAX (64u << 10)

static bool limit_works(struct bench *bench, struct ibv_cq *cq, uint32_t limit)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .cap = { .max_send_wr = bench->settings->depth,
                 .max_recv_wr = bench->settings->depth,
                 .max_send_sge = 1,
                 .max_recv_sge = 1,
                 .max_inline_data = limit },
    };
    struct ibv_qp *qp = ibv_create_qp(bench->adapter->pd, &init);

    if (qp)
        ibv_destroy_qp(qp);
    return qp;
}

/* The largest inline limit that a queue pair can be created with: no query tells it. */
static int find_limit(struct bench *bench, uint32_t *limit)
{
    struct ibv_cq *cq = ibv_create_cq(bench->adapter->context, 1, NULL, NULL, 0);
    uint32_t refused = LIMIT_MAX + 1;

    if (!cq)
        return bench_fail(bench, "ibv_create_cq: %s", strerror(errno));
    *limit = 0;
    while (refused - *limit > 1) {
        uint32_t middle = *limit + (refused - *limit) / 2;

        if (limit_works(bench, cq, middle))
            *limit = middle;
        else
            refused = middle;
    }
    ibv_destroy_cq(cq);
    return BENCH_OK;
}

/* The devices of the two sides may differ: take the smaller limit. */
static int agree_on_limit(struct bench *bench, uint32_t *limit)
{
    uint32_t mine, all[CONTROL_RANKS_MAX];

    if (find_limit(bench, &mine) || bench_exchange(bench, &mine, sizeof(mine), all))
        return BENCH_FAILED;
    *limit = all[0] < all[1] ? all[0] : all[1];
    return BENCH_OK;
}

/* The user's sizes below the limit, and the limit itself. */
static struct number_list sizes_up_to(const struct number_list *wanted, uint64_t limit)
{
    struct number_list sizes = { 0 };

    for (unsigned int i = 0; i < wanted->count; i++) {
        if (wanted->value[i] < limit && sizes.count + 1 < NUMBERS_MAX)
            sizes.value[sizes.count++] = wanted->value[i];
    }
    sizes.value[sizes.count++] = limit;
    return sizes;
}

int inline_run(struct bench *bench)
{
    struct variants variants = { .bench = bench };
    struct number_list sizes;
    uint32_t limit;

    if (sweep_operation(bench) > OPERATION_WRITE_IMM)
        return bench_fail(bench, "only sends and writes can be inline");
    if (agree_on_limit(bench, &limit))
        return BENCH_FAILED;
    if (!limit)
        return bench_skip(bench, "the device takes no inline data");
    bench_note(bench, "limit", "%u B", limit);
    sizes = sizes_up_to(&bench->settings->sizes, limit);
    variants_add(&variants, "inline")->inline_limit = limit;
    variants_add(&variants, "copied")->inline_limit = 0;
    return variants_latency(&variants, &sizes);
}
