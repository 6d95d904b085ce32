/* SPDX-License-Identifier: BSD-2-Clause */
#include "background_load.h"
#include "sweep.h"

#define CHECK_EVERY 64 /* writes between two checks for the end */
#define IMM_STOP    1

int background_load_ranks(const struct settings *settings)
{
    return BACKGROUND_LOAD_FIRST_RANK + sweep_largest(&settings->nodes);
}

int background_load_open(struct bench *bench, const struct flow_spec *spec, struct star *out)
{
    struct flow *mine;

    if (star_open(bench, spec, BACKGROUND_LOAD_FIRST_RANK,
                  bench->ranks - BACKGROUND_LOAD_FIRST_RANK, out))
        return BENCH_FAILED;
    mine = star_flow(bench, out);
    if (!mine || !flow_post_receives(mine, 1))
        return BENCH_OK;
    star_close(out);
    return BENCH_FAILED;
}

int background_load_run(struct flow *flow)
{
    struct ibv_wc wc;
    int count = 0;

    for (uint64_t writes = 1; !count; writes++) {
        if (flow_wait_for_capacity(flow) || flow_send(flow))
            return BENCH_FAILED;
        if (writes % CHECK_EVERY)
            continue;
        count = completions_poll(&flow->receives, &wc, 1);
        if (count < 0 ||
            (writes % BENCH_IDLE_POLLS == 0 && !bench_alive(flow->bench, patience_now())))
            return BENCH_FAILED;
    }
    return flow_post_receive_again(flow, &wc) || flow_settle(flow) ? BENCH_FAILED : BENCH_OK;
}

int background_load_stop(struct star *load, unsigned int loaders)
{
    for (unsigned int i = 0; i < loaders; i++) {
        struct flow *flow = &load->flows[i];

        if (flow_send_imm(flow, IMM_STOP) || flow_settle(flow))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}
