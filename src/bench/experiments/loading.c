#include "loading.h"

#define LOOK_EVERY 64 /* writes between two looks whether it is over */
#define WORD_OVER  1

int loading_ranks(const struct settings *settings)
{
    return FIRST_LOADER + scaling_largest(&settings->nodes);
}

int loading_open(struct bench *bench, const struct flow_spec *spec, struct star *out)
{
    struct flow *mine;

    if (star_open(bench, spec, FIRST_LOADER, bench->ranks - FIRST_LOADER, out))
        return BENCH_FAILED;
    mine = star_flow(bench, out);
    if (!mine || !flow_post_receives(mine, 1))
        return BENCH_OK;
    star_close(out);
    return BENCH_FAILED;
}

int loading_work(struct flow *flow)
{
    struct ibv_wc wc;
    int count = 0;

    for (uint64_t turn = 1; !count; turn++) {
        if (flow_make_room(flow) || flow_send(flow))
            return BENCH_FAILED;
        if (turn % LOOK_EVERY)
            continue;
        count = completions_take(&flow->receives, &wc, 1);
        if (count < 0 || (turn % PATIENCE_TURNS == 0 && !bench_alive(flow->bench, monotonic_ns())))
            return BENCH_FAILED;
    }
    return flow_post_receive_again(flow, &wc) || flow_settle(flow) ? BENCH_FAILED : BENCH_OK;
}

int loading_end(struct star *load, unsigned int loaders)
{
    for (unsigned int i = 0; i < loaders; i++) {
        struct flow *flow = &load->flows[i];

        if (flow_signal_peer(flow, WORD_OVER) || flow_settle(flow))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}
