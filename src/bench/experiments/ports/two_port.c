/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether a second port helps, and whether to stripe each message over both ports or to bind each
 * direction to one. */
#include "runs.h"
#include "bench/measure/sampling.h"
#include "bench/measure/stream.h"

#include <errno.h>
#include <string.h>

#define PORTS 2

struct mode {
    const char *name;
    int processes; /* on each host */
    bool both_ways;
    bool striping;
};

static const struct mode modes[] = {
    { "one process striping", 1, false, true },
    { "one process binding", 1, false, false },
    { "one process both ways striping", 1, true, true },
    { "one process both ways binding", 1, true, false },
    { "two processes striping", 2, false, true },
    { "two processes binding", 2, false, false },
    { "two processes both ways striping", 2, true, true },
    { "two processes both ways binding", 2, true, false },
};

#define MODES (sizeof(modes) / sizeof(*modes))

/* The flow of a mode, and the arrays that its spec points to. */
struct mode_flow {
    const struct mode *mode;
    struct flow_spec spec;
    struct stream_plan plan;
    struct flow flow;
    uint8_t ports[PORTS];
    unsigned int send_qp;
    unsigned int receive_qp;
    unsigned int stripes[PORTS];
};

static void swap_ports(uint8_t *ports)
{
    uint8_t first = ports[0];

    ports[0] = ports[1];
    ports[1] = first;
}

/* Sends half of each message through a queue pair on each port. */
static void stripe(struct mode_flow *mode_flow, size_t size)
{
    mode_flow->stripes[1] = 1;
    mode_flow->spec.qps = mode_flow->spec.slots = PORTS;
    mode_flow->spec.buffer_of = mode_flow->stripes;
    mode_flow->spec.buffer_stride = mode_flow->spec.size = size / PORTS;
    mode_flow->plan.window *= PORTS;
    mode_flow->plan.messages *= PORTS;
}

/* The first process of a host sends through the first port and receives through the second; the
 * second process does the opposite. */
static void bind_ports(struct mode_flow *mode_flow, int rank)
{
    if (rank / 2)
        swap_ports(mode_flow->ports);
    mode_flow->send_qp = rank % 2;
    mode_flow->receive_qp = 1 - mode_flow->send_qp;
    mode_flow->spec.qps = PORTS;
    mode_flow->spec.slots = 1;
    mode_flow->spec.qp_of = &mode_flow->send_qp;
    mode_flow->spec.receive_qp_of = &mode_flow->receive_qp;
}

static void describe(struct bench *bench, const struct mode *mode, const uint8_t *ports,
                     size_t size, struct mode_flow *mode_flow)
{
    int rank = bench->rank;

    *mode_flow = (struct mode_flow){
        .mode = mode,
        .ports = { ports[0], ports[1] },
        .plan = { .style = WINDOW_REPLY,
                  .window = bench->settings->window,
                  .messages = stream_messages(bench, size),
                  .both_ways = mode->both_ways },
    };
    flow_defaults(bench, rank / 2 < mode->processes ? rank ^ 1 : -1, &mode_flow->spec);
    mode_flow->spec.operation = OPERATION_WRITE;
    mode_flow->spec.notify = true;
    mode_flow->spec.size = size;
    mode_flow->spec.port_of = mode_flow->ports;
    if (!mode->striping)
        bind_ports(mode_flow, rank);
    else if (size > bench->settings->stripe)
        stripe(mode_flow, size);
    mode_flow->spec.depth = stream_depth(&mode_flow->spec, mode_flow->plan.window);
}

/* Sends one message through every slot, each with its own pattern, to check that no stripe is lost
 * or misplaced. */
static int check_arrival(struct mode_flow *mode_flow)
{
    struct flow *flow = &mode_flow->flow;
    bool active = flow->spec.peer >= 0, lower = flow->bench->rank < flow->spec.peer;

    if ((active && flow_post_receives(flow, flow->slot_count)) || bench_barrier(flow->bench))
        return BENCH_FAILED;
    for (unsigned int i = 0;
         active && (lower || mode_flow->mode->both_ways) && i < flow->slot_count; i++) {
        flow_fill(flow, i);
        if (flow_send(flow))
            return BENCH_FAILED;
    }
    for (unsigned int i = 0;
         active && (!lower || mode_flow->mode->both_ways) && i < flow->slot_count; i++) {
        struct ibv_wc wc;

        if (completions_wait(&flow->receives, &wc, 1) < 0)
            return BENCH_FAILED;
        flow->received++;
        if (flow_check(flow, wc.wr_id))
            return BENCH_FAILED;
    }
    return flow_settle(flow) || bench_barrier(flow->bench) ? BENCH_FAILED : BENCH_OK;
}

/* The bandwidth of all pairs together, until the last one has finished. */
static int run_once(void *context, double *value)
{
    struct mode_flow *mode_flow = context;
    struct bench *bench = mode_flow->flow.bench;
    double seconds, all[CONTROL_RANKS_MAX], longest = 0;
    uint64_t ticks, messages;

    if (stream_run(&mode_flow->flow, &mode_flow->plan, &ticks, &messages))
        return BENCH_FAILED;
    seconds = clock_ns(ticks) / 1e9;
    if (bench_exchange(bench, &seconds, sizeof(seconds), all))
        return BENCH_FAILED;
    for (int i = 0; i < 2 * mode_flow->mode->processes; i += 2)
        longest = all[i] > longest ? all[i] : longest;
    *value = (double)messages * mode_flow->spec.size * mode_flow->mode->processes *
             (mode_flow->mode->both_ways ? 2 : 1) / longest / 1e6;
    return BENCH_OK;
}

static int measure(struct bench *bench, struct mode_flow *mode_flow, struct summary *out)
{
    int status = BENCH_FAILED;
    double warm_up;

    if (flow_open(bench, &mode_flow->spec, &mode_flow->flow))
        return BENCH_FAILED;
    if (!check_arrival(mode_flow) && !run_once(mode_flow, &warm_up))
        status = sampling_runs(bench, run_once, mode_flow, out);
    flow_close(&mode_flow->flow);
    return status;
}

static int sweep(struct bench *bench, const uint8_t *ports)
{
    const struct number_list *sizes = &bench->settings->sizes;

    for (unsigned int i = 0; i < sizes->count; i++) {
        for (unsigned int k = 0; k < MODES; k++) {
            size_t size = sizes->value[i];
            struct summary bandwidth;
            struct mode_flow mode_flow;

            if (modes[k].striping && size > bench->settings->stripe && size % PORTS)
                continue;
            describe(bench, &modes[k], ports, size, &mode_flow);
            if (measure(bench, &mode_flow, &bandwidth))
                return BENCH_FAILED;
            bench_point(bench, k, size, &bandwidth);
        }
    }
    return BENCH_OK;
}

static int choose_ports(struct bench *bench, uint8_t *ports)
{
    struct adapter *adapter = bench->adapter;
    const char *refusal =
        flow_operation_refusal(bench, OPERATION_WRITE, bench->settings->transport);
    struct ibv_port_attr second;

    if (refusal)
        return bench_skip(bench, "%s", refusal);
    if (adapter->limits.phys_port_cnt < PORTS)
        return bench_skip(bench, "the device has one port");
    ports[0] = adapter->port;
    ports[1] = adapter->port % adapter->limits.phys_port_cnt + 1;
    if (ibv_query_port(adapter->context, ports[1], &second))
        return bench_fail(bench, "ibv_query_port of port %u: %s", ports[1], strerror(errno));
    if (second.state != IBV_PORT_ACTIVE)
        return bench_skip(bench, "port %u is %s, not active", ports[1],
                          ibv_port_state_str(second.state));
    return BENCH_OK;
}

int two_port_run(struct bench *bench)
{
    const char *names[MODES];
    uint8_t ports[PORTS] = { 0 };
    char threshold[24];

    if (choose_ports(bench, ports))
        return BENCH_FAILED;
    for (unsigned int i = 0; i < MODES; i++)
        names[i] = modes[i].name;
    option_number_text(bench->settings->stripe, threshold, sizeof(threshold));
    bench_note(bench, "striping", "of messages larger than %s, over ports %u and %u", threshold,
               ports[0], ports[1]);
    bench_panel(bench, &(struct panel_spec){ .quantity = "bandwidth",
                                             .unit = "MB/s",
                                             .axis = "size",
                                             .axis_unit = "B",
                                             .better = BETTER_HIGHER,
                                             .count = MODES,
                                             .names = names });
    return sweep(bench, ports);
}
