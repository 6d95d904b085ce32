/* SPDX-License-Identifier: BSD-2-Clause */
#include "stream.h"
#include "sampling.h"

#include <endian.h>
#include <string.h>

#define RECEIVE_BATCH    16
#define IMMS_UNREAPED    8
#define BYTES_PER_SAMPLE (64ull << 20)

/* Immediate data of control messages. */
enum imm {
    IMM_WINDOW = 1, /* this write was the last of a window */
    IMM_REPLY,      /* your window has arrived */
    IMM_END,        /* all of mine have completed */
};

struct stream {
    struct flow *flow;
    const struct stream_plan *plan;
    uint64_t to_send;
    uint64_t posted;
    uint64_t base; /* flow->completed at the start */
    uint64_t arrived;
    uint64_t windows; /* of the peer, arrived */
    uint64_t replies;
    bool end_sent;
    bool end_received;
};

uint64_t stream_messages(const struct bench *bench, size_t size)
{
    uint64_t most = size ? BYTES_PER_SAMPLE / size : UINT64_MAX;
    uint64_t least = 2 * bench->settings->window;
    uint64_t wanted = bench->settings->iterations;

    if (most < least)
        most = least;
    return wanted < most ? wanted : most;
}

/* The last write of a window tells the peer that the window is complete. */
static void mark_end_of_window(struct stream *stream)
{
    struct flow *flow = stream->flow;
    struct ibv_send_wr *wr = &flow_slot(flow, flow->sent)->send;
    bool last = (stream->posted + 1) % stream->plan->window == 0;

    wr->opcode = last ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
    wr->imm_data = htobe32(IMM_WINDOW);
}

static int post_one(struct stream *stream)
{
    if (stream->plan->style == WINDOW_REPLY && stream->flow->spec.operation == OPERATION_WRITE &&
        !stream->flow->spec.notify)
        mark_end_of_window(stream);
    stream->posted++;
    return flow_send(stream->flow);
}

/* Posts half a window whenever half of it has completed. */
static int post_refill(struct stream *stream)
{
    uint64_t in_flight = stream->posted - (stream->flow->completed - stream->base);

    if (in_flight > stream->plan->window / 2)
        return 0;
    while (stream->posted < stream->to_send && in_flight < stream->plan->window) {
        if (post_one(stream))
            return BENCH_FAILED;
        in_flight++;
    }
    return BENCH_OK;
}

static int post_window(struct stream *stream)
{
    if (stream->posted != stream->replies * stream->plan->window)
        return BENCH_OK;
    for (unsigned int i = 0; i < stream->plan->window && stream->posted < stream->to_send; i++) {
        if (flow_wait_for_capacity(stream->flow) || post_one(stream))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}

static bool all_sent(const struct stream *stream)
{
    if (stream->posted < stream->to_send)
        return false;
    /* A reply after the end would count for the next stream. */
    if (stream->plan->style == WINDOW_REPLY)
        return stream->replies * stream->plan->window >= stream->to_send;
    return stream->flow->completed - stream->base >= stream->to_send;
}

static int window_arrived(struct stream *stream)
{
    stream->windows++;
    return flow_send_imm(stream->flow, IMM_REPLY);
}

/* Handles a receive completion. */
static int take_arrival(struct stream *stream, const struct ibv_wc *wc)
{
    struct flow *flow = stream->flow;
    enum imm imm = wc->wc_flags & IBV_WC_WITH_IMM ? be32toh(wc->imm_data) : 0;

    flow->received++;
    switch (imm) {
    case IMM_REPLY:
        stream->replies++;
        break;
    case IMM_END:
        stream->end_received = true;
        break;
    case IMM_WINDOW:
        if (window_arrived(stream))
            return BENCH_FAILED;
        break;
    default:
        stream->arrived++;
        if (flow->bench->settings->verify && flow->spec.operation == OPERATION_SEND &&
            flow_check_slot(flow, wc->wr_id))
            return BENCH_FAILED;
        if (stream->plan->arrived)
            stream->plan->arrived(stream->plan->arrived_context, flow, &flow->slots[wc->wr_id]);
        if (stream->plan->style == WINDOW_REPLY && stream->arrived % stream->plan->window == 0 &&
            window_arrived(stream))
            return BENCH_FAILED;
    }
    return flow_post_receive_again(flow, wc);
}

static int take_arrivals(struct stream *stream, bool wait)
{
    struct ibv_wc wc[RECEIVE_BATCH];
    struct flow *flow = stream->flow;
    int count = wait ? completions_wait(&flow->receives, wc, RECEIVE_BATCH)
                     : completions_poll(&flow->receives, wc, RECEIVE_BATCH);

    for (int i = 0; i < count; i++) {
        if (take_arrival(stream, &wc[i]))
            return BENCH_FAILED;
    }
    return count;
}

static int post_more(struct stream *stream)
{
    if (stream->posted < stream->to_send)
        return stream->plan->style == WINDOW_REFILL ? post_refill(stream) : post_window(stream);
    /* A rank that only receives answers the end with an end. */
    if (!stream->end_sent && (stream->to_send ? all_sent(stream) : stream->end_received)) {
        stream->end_sent = true;
        return flow_send_imm(stream->flow, IMM_END);
    }
    return BENCH_OK;
}

/* Blocks only in a stream one way, which has a single thing to wait for. */
static int wait_for_progress(struct stream *stream, struct bench_idle *idle)
{
    struct flow *flow = stream->flow;
    bool sender = stream->to_send && !all_sent(stream);

    if (stream->plan->both_ways)
        return bench_idle_expired(flow->bench, idle) ? BENCH_FAILED : BENCH_OK;
    if (sender && stream->plan->style == WINDOW_REFILL)
        return flow->sends.channel ? flow_reap(flow, true)
                                   : (bench_idle_expired(flow->bench, idle) ? BENCH_FAILED : 0);
    if (flow->receives.channel)
        return take_arrivals(stream, true) < 0 ? BENCH_FAILED : BENCH_OK;
    return bench_idle_expired(flow->bench, idle) ? BENCH_FAILED : BENCH_OK;
}

static bool ended(const struct stream *stream)
{
    return stream->end_sent && stream->end_received;
}

static uint64_t progress_of(const struct stream *stream)
{
    return stream->posted + stream->flow->completed + stream->flow->received + stream->end_sent;
}

/* Posts what the window allows and polls for completions. */
static int make_progress(struct stream *stream, bool *moved)
{
    struct flow *flow = stream->flow;
    uint64_t before = progress_of(stream);

    if (post_more(stream))
        return BENCH_FAILED;
    if (stream->plan->work && progress_of(stream) != before)
        stream->plan->work(stream->plan->work_context);
    if ((stream->to_send || flow->imms_sent - flow->imms_completed > IMMS_UNREAPED) &&
        flow_reap(flow, false))
        return BENCH_FAILED;
    if (take_arrivals(stream, false) < 0)
        return BENCH_FAILED;
    *moved = progress_of(stream) != before;
    return BENCH_OK;
}

static int run_to_end(struct stream *stream)
{
    struct bench_idle idle = { 0 };

    while (!ended(stream)) {
        bool moved;

        if (make_progress(stream, &moved))
            return BENCH_FAILED;
        if (moved)
            idle = (struct bench_idle){ 0 };
        else if (wait_for_progress(stream, &idle))
            return BENCH_FAILED;
    }
    return flow_settle(stream->flow);
}

static uint64_t round_up(uint64_t value, uint64_t to)
{
    return (value + to - 1) / to * to;
}

/* Receives for two windows and two per slot, as far as the queues hold them. */
static uint64_t receives_ahead(const struct flow *flow, const struct stream_plan *plan)
{
    uint64_t wanted = (uint64_t)plan->window * 2 + 2;

    if (wanted < 2ull * flow->slot_count)
        wanted = 2ull * flow->slot_count;
    return wanted < flow->receive_capacity ? wanted : flow->receive_capacity;
}

uint32_t stream_depth(const struct flow_spec *spec, unsigned int window)
{
    /* Twice the window, a signalled interval and control messages. Queue pairs used in turn share
     * the window; in any other order, one of them may get all of it. */
    uint32_t depth = (window * 2 + 1) / (spec->qp_of ? 1 : spec->qps) + spec->signal +
                     IMMS_UNREAPED + RECEIVE_BATCH;

    return depth > spec->depth ? depth : spec->depth;
}

static uint64_t count_of(const struct flow *flow, const struct stream_plan *plan)
{
    uint64_t interval = (uint64_t)flow->spec.signal * flow->spec.qps;

    return round_up(plan->messages, plan->style == WINDOW_REPLY ? plan->window : interval);
}

static struct stream stream_of(struct flow *flow, const struct stream_plan *plan)
{
    bool lower = flow->bench->rank < flow->spec.peer;
    bool mine = plan->both_ways || lower != plan->reverse;

    return (struct stream){ .flow = flow,
                            .plan = plan,
                            .base = flow->completed,
                            .to_send = mine ? count_of(flow, plan) : 0 };
}

int stream_prepare(struct flow *flow, const struct stream_plan *plan)
{
    uint64_t interval = (uint64_t)flow->spec.signal * flow->spec.qps;

    if (plan->style == WINDOW_REFILL && plan->window < 2 * interval && interval > flow->spec.qps)
        return bench_fail(flow->bench,
                          "a window of %u is too small to signal every %u-th send of %u queue "
                          "pair%s: it takes %llu",
                          plan->window, flow->spec.signal, flow->spec.qps,
                          flow->spec.qps == 1 ? "" : "s", (unsigned long long)(2 * interval));
    flow_forget_unsignalled(flow);
    if (flow->bench->settings->verify && flow->spec.operation != OPERATION_READ)
        flow_fill_all(flow);
    return flow->spec.peer >= 0 ? flow_post_receives(flow, receives_ahead(flow, plan)) : BENCH_OK;
}

int stream_pass(struct flow *flow, const struct stream_plan *plan, uint64_t *messages)
{
    struct stream stream = stream_of(flow, plan);

    *messages = count_of(flow, plan);
    return flow->spec.peer >= 0 ? run_to_end(&stream) : BENCH_OK;
}

int stream_run(struct flow *flow, const struct stream_plan *plan, uint64_t *ticks,
               uint64_t *messages)
{
    uint64_t start;

    if (stream_prepare(flow, plan) || bench_barrier(flow->bench))
        return BENCH_FAILED;
    start = clock_ticks();
    if (stream_pass(flow, plan, messages))
        return BENCH_FAILED;
    *ticks = clock_ticks() - start;
    return bench_barrier(flow->bench);
}

static void note_arrived(const struct stream *streams, unsigned int count, uint64_t *arrived)
{
    for (unsigned int i = 0; i < count; i++)
        arrived[i] = streams[i].arrived;
}

static int gather(struct stream *streams, unsigned int count, uint64_t *shares)
{
    unsigned int running = count;
    struct bench_idle idle = { 0 };

    while (running) {
        bool any = false;

        for (unsigned int i = 0; i < count; i++) {
            bool moved;

            if (ended(&streams[i]))
                continue;
            if (make_progress(&streams[i], &moved))
                return BENCH_FAILED;
            any |= moved;
            if (ended(&streams[i]) && running-- == count)
                note_arrived(streams, count, shares);
        }
        if (any)
            idle = (struct bench_idle){ 0 };
        else if (bench_idle_expired(streams->flow->bench, &idle))
            return BENCH_FAILED;
    }
    for (unsigned int i = 0; i < count; i++) {
        if (flow_settle(streams[i].flow))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}

int stream_gather(struct flow *flows, unsigned int count, const struct stream_plan *plan,
                  uint64_t *shares, uint64_t *messages)
{
    struct stream *streams = calloc(count, sizeof(*streams));
    int status;

    if (!streams)
        return bench_fail(flows->bench, "out of memory");
    for (unsigned int i = 0; i < count; i++)
        streams[i] = stream_of(&flows[i], plan);
    *messages = count_of(flows, plan);
    status = gather(streams, count, shares);
    free(streams);
    return status;
}

struct repetition {
    struct flow *flow;
    const struct stream_plan *plan;
    double scale;
};

static int run_once(void *context, double *value)
{
    const struct repetition *repetition = context;
    uint64_t ticks, messages;

    if (stream_run(repetition->flow, repetition->plan, &ticks, &messages))
        return BENCH_FAILED;
    *value = messages / (clock_ns(ticks) / 1e9) * repetition->scale;
    return BENCH_OK;
}

int stream_repeat(struct flow *flow, const struct stream_plan *plan, double scale,
                  struct summary *out)
{
    struct repetition repetition = { flow, plan, scale };
    struct stream_plan warm_up = *plan;
    uint64_t ticks, messages;

    warm_up.messages = plan->messages / 4 + 1;
    if (stream_run(flow, &warm_up, &ticks, &messages))
        return BENCH_FAILED;
    return sampling_runs(flow->bench, run_once, &repetition, out);
}

static int measure(struct bench *bench, const struct flow_spec *spec,
                   const struct stream_plan *plan, double scale, struct summary *out)
{
    struct flow_spec deep = *spec;
    struct flow flow;
    int status;

    deep.depth = stream_depth(spec, plan->window);
    if (flow_open(bench, &deep, &flow))
        return BENCH_FAILED;
    status = stream_repeat(&flow, plan, plan->both_ways ? 2 * scale : scale, out);
    flow_close(&flow);
    return status;
}

int stream_measure(struct bench *bench, const struct flow_spec *spec,
                   const struct stream_plan *plan, struct summary *out)
{
    return measure(bench, spec, plan, spec->size / 1e6, out);
}

int stream_measure_rate(struct bench *bench, const struct flow_spec *spec,
                        const struct stream_plan *plan, struct summary *out)
{
    return measure(bench, spec, plan, 1 / 1e6, out);
}
