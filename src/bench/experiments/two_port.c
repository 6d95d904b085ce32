/* Whether a second port helps, and whether to cut messages over both or send them through one. */
#include "bench/repeat.h"
#include "bench/stream.h"

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

/* A flow of this mode, and the arrays its spec points to. */
struct lane {
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

/* Halves of a message, by a queue pair on each port. */
static void stripe(struct lane *lane, size_t size)
{
    lane->stripes[1] = 1;
    lane->spec.qps = lane->spec.slots = PORTS;
    lane->spec.buffer_of = lane->stripes;
    lane->spec.buffer_stride = lane->spec.size = size / PORTS;
    lane->plan.window *= PORTS;
    lane->plan.messages *= PORTS;
}

/* The first process of a host sends by the first port and receives by the second, the second
 * process the other way round. */
static void bind_ports(struct lane *lane, int rank)
{
    if (rank / 2)
        swap_ports(lane->ports);
    lane->send_qp = rank % 2;
    lane->receive_qp = 1 - lane->send_qp;
    lane->spec.qps = PORTS;
    lane->spec.slots = 1;
    lane->spec.qp_of = &lane->send_qp;
    lane->spec.receive_qp_of = &lane->receive_qp;
}

static void describe(struct bench *bench, const struct mode *mode, const uint8_t *ports,
                     size_t size, struct lane *lane)
{
    int rank = bench->rank;

    *lane = (struct lane){
        .mode = mode,
        .ports = { ports[0], ports[1] },
        .plan = { .style = WINDOW_REPLY,
                  .window = bench->settings->window,
                  .messages = stream_messages(bench, size),
                  .both_ways = mode->both_ways },
    };
    flow_defaults(bench, rank / 2 < mode->processes ? rank ^ 1 : -1, &lane->spec);
    lane->spec.operation = OPERATION_WRITE;
    lane->spec.notify = true;
    lane->spec.size = size;
    lane->spec.port_of = lane->ports;
    if (!mode->striping)
        bind_ports(lane, rank);
    else if (size > bench->settings->stripe)
        stripe(lane, size);
    lane->spec.depth = stream_depth(&lane->spec, lane->plan.window);
}

/* One message by every slot, each with a pattern of its own: no stripe is lost or in another's
 * place. */
static int check_arrival(struct lane *lane)
{
    struct flow *flow = &lane->flow;
    bool part = flow->spec.peer >= 0, lower = flow->bench->rank < flow->spec.peer;

    if ((part && flow_post_receives(flow, flow->slot_count)) || bench_barrier(flow->bench))
        return BENCH_FAILED;
    for (unsigned int i = 0; part && (lower || lane->mode->both_ways) && i < flow->slot_count;
         i++) {
        flow_fill(flow, i);
        if (flow_send(flow))
            return BENCH_FAILED;
    }
    for (unsigned int i = 0; part && (!lower || lane->mode->both_ways) && i < flow->slot_count;
         i++) {
        struct ibv_wc wc;

        if (completions_wait(&flow->receives, &wc, 1) < 0)
            return BENCH_FAILED;
        flow->received++;
        if (flow_check(flow, wc.wr_id))
            return BENCH_FAILED;
    }
    return flow_settle(flow) || bench_barrier(flow->bench) ? BENCH_FAILED : BENCH_OK;
}

/* What all pairs together moved, until the last of them had finished. */
static int run_once(void *context, double *value)
{
    struct lane *lane = context;
    struct bench *bench = lane->flow.bench;
    double seconds, all[CONTROL_RANKS_MAX], longest = 0;
    uint64_t ticks, messages;

    if (stream_run(&lane->flow, &lane->plan, &ticks, &messages))
        return BENCH_FAILED;
    seconds = clock_ns(ticks) / 1e9;
    if (bench_exchange(bench, &seconds, sizeof(seconds), all))
        return BENCH_FAILED;
    for (int i = 0; i < 2 * lane->mode->processes; i += 2)
        longest = all[i] > longest ? all[i] : longest;
    *value = (double)messages * lane->spec.size * lane->mode->processes *
             (lane->mode->both_ways ? 2 : 1) / longest / 1e6;
    return BENCH_OK;
}

static int measure(struct bench *bench, struct lane *lane, struct summary *out)
{
    int status = BENCH_FAILED;
    double warm_up;

    if (flow_open(bench, &lane->spec, &lane->flow))
        return BENCH_FAILED;
    if (!check_arrival(lane) && !run_once(lane, &warm_up))
        status = repeat_values(bench, run_once, lane, out);
    flow_close(&lane->flow);
    return status;
}

static int sweep(struct bench *bench, const uint8_t *ports)
{
    const struct number_list *sizes = &bench->settings->sizes;

    for (unsigned int i = 0; i < sizes->count; i++) {
        for (unsigned int k = 0; k < MODES; k++) {
            size_t size = sizes->value[i];
            struct summary bandwidth;
            struct lane lane;

            if (modes[k].striping && size > bench->settings->stripe && size % PORTS)
                continue;
            describe(bench, &modes[k], ports, size, &lane);
            if (measure(bench, &lane, &bandwidth))
                return BENCH_FAILED;
            bench_point(bench, k, size, &bandwidth);
        }
    }
    return BENCH_OK;
}

static int choose_ports(struct bench *bench, uint8_t *ports)
{
    struct adapter *adapter = bench->adapter;
    const char *refusal = operation_refusal(bench, OPERATION_WRITE, bench->settings->transport);
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

static int run(struct bench *bench)
{
    const char *names[MODES];
    uint8_t ports[PORTS] = { 0 };
    char threshold[24];

    if (choose_ports(bench, ports))
        return BENCH_FAILED;
    for (unsigned int i = 0; i < MODES; i++)
        names[i] = modes[i].name;
    number_text(bench->settings->stripe, threshold, sizeof(threshold));
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

const struct experiment experiment_two_port = {
    .name = "two-port",
    .group = "ports",
    .title = "Does a second port help, by striping messages or by binding directions to ports?",
    .source = "PCI Express figures 8 to 11",
    .options = "--sizes 1K..1M --stripe 8K --iterations 512",
    .quick = "--sizes 4K,64K,512K --window 16 --iterations 64 --repetitions 3",
    .layout = LAYOUT_TWO_HOSTS,
    .ranks = 4,
    .run = run,
};
