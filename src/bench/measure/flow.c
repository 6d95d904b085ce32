/* SPDX-License-Identifier: BSD-2-Clause */
#include "flow.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REAP_BATCH 16
#define IMM_WR_ID  UINT64_MAX
#define PERIOD     251 /* of the --verify pattern: a prime, so that shifts show */

void flow_defaults(const struct bench *bench, int peer, struct flow_spec *spec)
{
    const struct settings *settings = bench->settings;

    *spec = (struct flow_spec){
        .transport = settings->transport,
        .peer = peer,
        .depth = settings->depth,
        .signal = settings->signal,
        .inline_limit = settings->inline_limit,
        .mtu = settings->mtu,
        .sl = settings->sl,
        .qps = 1,
    };
}

const char *flow_operation_refusal(const struct bench *bench, enum operation operation,
                                   enum transport transport)
{
    bool atomic = operation_is_atomic(operation);

    if (transport == TRANSPORT_UD && operation != OPERATION_SEND)
        return "UD can only send";
    if (transport == TRANSPORT_UC && (atomic || operation == OPERATION_READ))
        return "UC can neither read nor do atomics";
    if (atomic && bench->adapter->limits.atomic_cap == IBV_ATOMIC_NONE)
        return "the device has no atomics";
    return NULL;
}

bool flow_operation_chosen(struct bench *bench, enum operation operation)
{
    const char *refusal = flow_operation_refusal(bench, operation, bench->settings->transport);

    if (!(bench->settings->operations & (1u << operation)))
        return false;
    if (refusal)
        bench_note(bench, operation_names[operation], "%s", refusal);
    return !refusal;
}

static enum ibv_wr_opcode opcode_of(enum operation operation)
{
    static const enum ibv_wr_opcode opcodes[OPERATION_COUNT] = {
        IBV_WR_SEND,      IBV_WR_RDMA_WRITE,           IBV_WR_RDMA_WRITE_WITH_IMM,
        IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP,
    };

    return opcodes[operation];
}

/* The distance from the first to the last byte of a message in memory. */
static size_t span(size_t size, unsigned int segments, size_t stride)
{
    return stride ? (segments - 1) * stride + size / segments + size % segments : size;
}

static size_t round_up(size_t value, size_t to)
{
    return (value + to - 1) / to * to;
}

/* Splits a message over segments; the last one takes the rest. */
static void lay_out(struct ibv_sge *list, unsigned int segments, uint64_t address, size_t size,
                    size_t stride, uint32_t lkey)
{
    size_t part = size / segments;

    for (unsigned int i = 0; i < segments; i++) {
        list[i].addr = address + i * (stride ? stride : part);
        list[i].length = i + 1 == segments ? size - part * i : part;
        list[i].lkey = lkey;
    }
}

static size_t grh_size(const struct flow_spec *spec)
{
    return spec->transport == TRANSPORT_UD ? GRH_BYTES : 0;
}

static void fill_remote(struct flow *flow, struct ibv_send_wr *wr, unsigned int buffer,
                        size_t offset)
{
    const struct flow_spec *spec = &flow->spec;
    uint32_t rkey = flow->peer_rkeys ? flow->peer_rkeys[buffer] : flow->peer.rkey;

    if (operation_is_atomic(spec->operation)) {
        wr->wr.atomic.remote_addr = flow->peer.address + offset;
        wr->wr.atomic.rkey = rkey;
        wr->wr.atomic.compare_add = spec->operation == OPERATION_FETCH_ADD;
        wr->wr.atomic.swap = 0;
    } else if (spec->operation != OPERATION_SEND) {
        wr->wr.rdma.remote_addr = flow->peer.address + offset;
        wr->wr.rdma.rkey = rkey;
    }
}

static void set_datagram(struct ibv_send_wr *wr, const struct endpoint *endpoint)
{
    wr->wr.ud.ah = endpoint->ah;
    wr->wr.ud.remote_qpn = endpoint->peer.qpn;
    wr->wr.ud.remote_qkey = ENDPOINT_QKEY;
}

/* Sets what the transport needs to know of the peer in every request. */
static void set_destination(struct ibv_send_wr *wr, const struct endpoint *endpoint)
{
    if (endpoint->transport == TRANSPORT_UD)
        set_datagram(wr, endpoint);
    else if (endpoint->transport == TRANSPORT_XRC)
        wr->qp_type.xrc.remote_srqn = endpoint->peer.srqn;
}

static void prepare_slot(struct flow *flow, unsigned int index)
{
    const struct flow_spec *spec = &flow->spec;
    struct slot *slot = &flow->slots[index];
    unsigned int buffer = spec->buffer_of ? spec->buffer_of[index] : index % flow->buffers;
    unsigned int qp = spec->qp_of ? spec->qp_of[index] : index % spec->qps;
    size_t offset = buffer * spec->buffer_stride + spec->offset;
    size_t grh = grh_size(spec);
    struct ibv_sge *send = &flow->segments[index * (spec->send_segments + spec->receive_segments)];
    struct ibv_sge *receive = send + spec->send_segments;

    slot->endpoint = &flow->endpoints[qp];
    slot->receiver =
        spec->receive_qp_of ? &flow->endpoints[spec->receive_qp_of[index]] : slot->endpoint;
    lay_out(send, spec->send_segments, (uintptr_t)flow->out.address + offset, spec->size,
            spec->send_stride, (flow->mrs ? flow->mrs[buffer] : flow->out.mr)->lkey);
    lay_out(receive, spec->receive_segments, (uintptr_t)flow->in.address + grh + offset, spec->size,
            spec->receive_stride,
            (flow->mrs ? flow->mrs[flow->buffers + buffer] : flow->in.mr)->lkey);
    slot->out_last = (uint8_t *)flow->out.address + offset +
                     span(spec->size, spec->send_segments, spec->send_stride) - (spec->size > 0);
    slot->in_last = (uint8_t *)flow->in.address + grh + offset + spec->size - (spec->size > 0);
    receive[0].addr -= grh;
    receive[0].length += grh;
    slot->send = (struct ibv_send_wr){
        .sg_list = send,
        .num_sge = spec->size ? spec->send_segments : 0,
        .opcode = opcode_of(spec->operation),
        .send_flags = IBV_SEND_SIGNALED,
    };
    if (spec->size <= spec->inline_limit && spec->operation <= OPERATION_WRITE_IMM)
        slot->send.send_flags |= IBV_SEND_INLINE;
    fill_remote(flow, &slot->send, buffer, offset);
    set_destination(&slot->send, slot->endpoint);
    if (spec->notify) {
        slot->notice = (struct ibv_send_wr){ .opcode = IBV_WR_SEND };
        set_destination(&slot->notice, slot->endpoint);
        slot->send.next = &slot->notice;
    }
    slot->receive = (struct ibv_recv_wr){ .wr_id = index,
                                          .sg_list = receive,
                                          .num_sge = spec->receive_segments };
}

static int prepare_slots(struct flow *flow)
{
    const struct flow_spec *spec = &flow->spec;

    flow->slots = calloc(flow->slot_count, sizeof(*flow->slots));
    flow->segments = calloc(flow->slot_count * (spec->send_segments + spec->receive_segments),
                            sizeof(*flow->segments));
    if (!flow->slots || !flow->segments)
        return bench_fail(flow->bench, "out of memory");
    for (unsigned int i = 0; i < flow->slot_count; i++)
        prepare_slot(flow, i);
    return BENCH_OK;
}

static struct ibv_mr *register_buffer(struct flow *flow, const struct region *region,
                                      unsigned int buffer)
{
    size_t start = buffer * flow->spec.buffer_stride, length = region->length - start;
    struct ibv_mr *mr =
        ibv_reg_mr(flow->bench->adapter->pd, (char *)region->address + start,
                   length < flow->spec.buffer_stride ? length : flow->spec.buffer_stride,
                   adapter_access(flow->bench->adapter) |
                       (flow->spec.relaxed ? IBV_ACCESS_RELAXED_ORDERING : 0));

    if (!mr)
        bench_fail(flow->bench, "ibv_reg_mr, region %u of %u: %s", buffer + 1, flow->buffers,
                   strerror(errno));
    return mr;
}

/* Registers each buffer by itself and exchanges the keys. */
static int register_buffers(struct flow *flow)
{
    unsigned int buffers = flow->buffers;
    size_t keys = (size_t)buffers * sizeof(uint32_t);
    uint32_t *mine = malloc(keys), *all = malloc(keys * flow->bench->ranks);
    int status = BENCH_FAILED;

    flow->mrs = calloc(2ul * buffers, sizeof(*flow->mrs));
    flow->peer_rkeys = malloc(keys);
    if (!mine || !all || !flow->mrs || !flow->peer_rkeys) {
        bench_fail(flow->bench, "out of memory");
        goto out;
    }
    for (unsigned int i = 0; i < 2 * buffers; i++) {
        flow->mrs[i] = register_buffer(flow, i < buffers ? &flow->out : &flow->in, i % buffers);
        if (!flow->mrs[i])
            goto out;
    }
    for (unsigned int i = 0; i < buffers; i++)
        mine[i] = flow->mrs[buffers + i]->rkey;
    status = bench_exchange(flow->bench, mine, keys, all);
    if (!status && flow->spec.peer >= 0)
        memcpy(flow->peer_rkeys, all + (size_t)flow->spec.peer * buffers, keys);
out:
    free(mine);
    free(all);
    return status;
}

static void deregister_buffers(struct flow *flow)
{
    for (unsigned int i = 0; flow->mrs && i < 2 * flow->buffers; i++) {
        if (flow->mrs[i])
            ibv_dereg_mr(flow->mrs[i]);
    }
    free(flow->mrs);
    free(flow->peer_rkeys);
}

/* Opens memory for every buffer that a slot uses. */
static int open_memory(struct flow *flow)
{
    struct flow_spec *spec = &flow->spec;
    size_t out_span = span(spec->size, spec->send_segments, spec->send_stride);
    size_t in_span = span(spec->size, spec->receive_segments, spec->receive_stride);
    size_t longest = (out_span > in_span ? out_span : in_span) + spec->offset + grh_size(spec);
    struct remote mine, *all;
    int status;

    if (operation_is_atomic(spec->operation) && longest < 8)
        longest = 8;
    if (!spec->buffer_stride)
        spec->buffer_stride = round_up(longest, sysconf(_SC_PAGESIZE));
    flow->buffers = spec->buffers ? spec->buffers : 1;
    for (unsigned int i = 0; spec->buffer_of && i < flow->slot_count; i++) {
        if (spec->buffer_of[i] >= flow->buffers)
            flow->buffers = spec->buffer_of[i] + 1;
    }
    longest += (flow->buffers - 1) * spec->buffer_stride;
    if (adapter_region_open(flow->bench, longest, &flow->out) ||
        adapter_region_open(flow->bench, longest, &flow->in))
        return BENCH_FAILED;
    all = calloc(flow->bench->ranks, sizeof(*all));
    if (!all)
        return bench_fail(flow->bench, "out of memory");
    mine.address = (uintptr_t)flow->in.address + grh_size(spec);
    mine.rkey = flow->in.mr->rkey;
    status = bench_exchange(flow->bench, &mine, sizeof(mine), all);
    if (!status && spec->peer >= 0)
        flow->peer = all[spec->peer];
    free(all);
    return status || !spec->mr_per_buffer ? status : register_buffers(flow);
}

/* The shared queue is as deep as the receive queues that it replaces, if the device allows it. */
static int open_shared_queue(struct flow *flow)
{
    struct flow_spec *spec = &flow->spec;
    struct adapter *adapter = flow->bench->adapter;
    struct ibv_srq_init_attr_ex init = {
        .attr = { .max_sge = spec->receive_segments > spec->max_segments ? spec->receive_segments
                                                                         : spec->max_segments },
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
        .srq_type = IBV_SRQT_BASIC,
        .pd = adapter->pd,
    };

    if (!adapter->limits.max_srq)
        return bench_skip(flow->bench, "the device has no shared receive queues");
    if (flow->receive_capacity > (uint64_t)adapter->limits.max_srq_wr)
        flow->receive_capacity = adapter->limits.max_srq_wr;
    init.attr.max_wr = flow->receive_capacity;
    if (spec->transport == TRANSPORT_XRC) {
        struct ibv_xrcd_init_attr domain = {
            .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
            .fd = -1,
            .oflags = O_CREAT,
        };

        flow->xrcd = ibv_open_xrcd(adapter->context, &domain);
        if (!flow->xrcd)
            return bench_fail(flow->bench, "ibv_open_xrcd: %s", strerror(errno));
        init.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
        init.srq_type = IBV_SRQT_XRC;
        init.xrcd = flow->xrcd;
        init.cq = flow->receives.cq;
    }
    flow->srq = ibv_create_srq_ex(adapter->context, &init);
    if (!flow->srq)
        return bench_fail(flow->bench, "ibv_create_srq_ex of %u receives: %s", init.attr.max_wr,
                          strerror(errno));
    return BENCH_OK;
}

static int open_endpoints(struct flow *flow)
{
    const struct flow_spec *spec = &flow->spec;
    uint32_t segments = spec->max_segments;
    struct endpoint_spec endpoint = {
        .transport = spec->transport,
        .send_depth = spec->depth * (spec->notify ? 2 : 1),
        .receive_depth = spec->depth,
        .send_segments = spec->send_segments > segments ? spec->send_segments : segments,
        .receive_segments = spec->receive_segments > segments ? spec->receive_segments : segments,
        .inline_limit = spec->inline_limit,
        .mtu = spec->mtu,
        .sl = spec->sl,
        .port = spec->port,
        .send_cq = flow->sends.cq,
        .receive_cq = flow->receives.cq,
        .srq = flow->srq,
        .xrcd = flow->xrcd,
    };

    flow->endpoints = calloc(spec->qps, sizeof(*flow->endpoints));
    if (!flow->endpoints)
        return bench_fail(flow->bench, "out of memory");
    for (unsigned int i = 0; i < spec->qps; i++) {
        if (spec->port_of)
            endpoint.port = spec->port_of[i];
        if (spec->cq_per_qp) {
            endpoint.send_cq = flow->sends.cqs[i];
            endpoint.receive_cq = flow->receives.cqs[i];
        }
        if (endpoint_create(flow->bench, &endpoint, &flow->endpoints[i]))
            return BENCH_FAILED;
    }
    return endpoints_connect(flow->bench, spec->peer, flow->endpoints, spec->qps);
}

static uint32_t queue_entries(const struct flow *flow, uint64_t wanted)
{
    uint64_t limit = flow->bench->adapter->limits.max_cqe;

    return wanted < limit ? wanted : limit;
}

/* A queue holds two signalled intervals, and every queue pair may have one in flight: otherwise a
 * waiting sender would never see a completion. */
static void set_capacities(struct flow *flow)
{
    struct flow_spec *spec = &flow->spec;
    uint64_t intervals = (uint64_t)spec->signal * spec->qps;

    if (spec->depth < 2 * spec->signal)
        spec->depth = 2 * spec->signal;
    flow->send_capacity = spec->depth / 2 > intervals ? spec->depth / 2 : intervals;
    flow->receive_capacity = (uint64_t)spec->depth * spec->qps;
}

static int open_queues(struct flow *flow)
{
    const struct flow_spec *spec = &flow->spec;
    bool waits_for_send = spec->operation >= OPERATION_READ;
    uint32_t entries = queue_entries(flow, flow->receive_capacity);
    struct bench *bench = flow->bench;

    if (spec->cq_per_qp)
        return completions_open_round_robin(bench, spec->depth, spec->qps, &flow->sends) ||
                       completions_open_round_robin(bench, spec->depth, spec->qps, &flow->receives)
                   ? BENCH_FAILED
                   : BENCH_OK;
    return completions_open(bench, entries, waits_for_send ? spec->wait : spec->send_wait,
                            &flow->sends) ||
                   completions_open(bench, entries, waits_for_send ? WAIT_POLL : spec->wait,
                                    &flow->receives)
               ? BENCH_FAILED
               : BENCH_OK;
}

int flow_open(struct bench *bench, const struct flow_spec *spec, struct flow *out)
{
    struct flow *flow = out;
    const char *refusal;

    memset(flow, 0, sizeof(*flow));
    flow->bench = bench;
    flow->spec = *spec;
    flow->spec.send_segments += !spec->send_segments;
    flow->spec.receive_segments += !spec->receive_segments;
    flow->spec.signal = spec->signal && !spec->qp_of ? spec->signal : 1;
    flow->spec.shared_receives |= spec->transport == TRANSPORT_XRC;
    flow->slot_count = spec->slots ? spec->slots : spec->qps;
    set_capacities(flow);
    refusal = endpoint_transport_refusal(bench, spec->transport);
    if (refusal) {
        bench_skip(bench, "%s", refusal);
        goto close;
    }
    if (spec->size > endpoint_largest_message(bench, spec->transport)) {
        bench_fail(bench, "a message of %zu bytes is more than the %zu that %s takes here",
                   spec->size, endpoint_largest_message(bench, spec->transport),
                   transport_names[spec->transport]);
        goto close;
    }
    if (open_queues(flow) || open_memory(flow) ||
        (flow->spec.shared_receives && open_shared_queue(flow)) || open_endpoints(flow) ||
        prepare_slots(flow))
        goto close;
    return BENCH_OK;
close:
    flow_close(flow);
    return BENCH_FAILED;
}

void flow_close(struct flow *flow)
{
    for (unsigned int i = 0; flow->endpoints && i < flow->spec.qps; i++)
        endpoint_destroy(&flow->endpoints[i]);
    if (flow->srq)
        ibv_destroy_srq(flow->srq);
    if (flow->xrcd)
        ibv_close_xrcd(flow->xrcd);
    deregister_buffers(flow);
    adapter_region_close(&flow->out);
    adapter_region_close(&flow->in);
    completions_close(&flow->sends);
    completions_close(&flow->receives);
    free(flow->endpoints);
    free(flow->slots);
    free(flow->segments);
    memset(flow, 0, sizeof(*flow));
}

int flow_post_failed(struct flow *flow, const char *call, int error)
{
    return bench_fail(flow->bench, "%s: %s", call, strerror(error));
}

void flow_forget_unsignalled(struct flow *flow)
{
    for (unsigned int i = 0; i < flow->spec.qps; i++)
        flow->endpoints[i].unsignalled = 0;
    flow->sent = flow->completed;
}

int flow_post_receives(struct flow *flow, uint64_t ahead)
{
    while (flow->receives_posted < flow->received + ahead) {
        if (flow_post_receive(flow))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}

int flow_reap(struct flow *flow, bool wait)
{
    struct ibv_wc wc[REAP_BATCH];
    int count = wait ? completions_wait(&flow->sends, wc, REAP_BATCH)
                     : completions_poll(&flow->sends, wc, REAP_BATCH);

    /* A completion covers all sends since the previous signalled one. */
    for (int i = 0; i < count; i++) {
        if (wc[i].wr_id == IMM_WR_ID)
            flow->imms_completed++;
        else
            flow->completed += flow->spec.signal;
    }
    return count < 0 ? BENCH_FAILED : BENCH_OK;
}

int flow_settle(struct flow *flow)
{
    while (flow->covered > flow->completed || flow->imms_sent > flow->imms_completed) {
        if (flow_reap(flow, true))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}

int flow_send_imm(struct flow *flow, uint32_t imm)
{
    struct endpoint *endpoint = flow->slots[0].endpoint;
    struct ibv_send_wr *bad, wr = {
        .wr_id = IMM_WR_ID,
        .opcode = IBV_WR_SEND_WITH_IMM,
        .send_flags = IBV_SEND_SIGNALED,
        .imm_data = htobe32(imm),
    };
    int error;

    set_destination(&wr, endpoint);
    error = ibv_post_send(endpoint->qp, &wr, &bad);
    if (error)
        return flow_post_failed(flow, "ibv_post_send", error);
    flow->imms_sent++;
    return BENCH_OK;
}

static uint8_t pattern(uint64_t message, size_t position)
{
    return (message * 13 + position) % PERIOD;
}

static void fill_slot(struct slot *slot, uint64_t message)
{
    const struct ibv_send_wr *wr = &slot->send;
    size_t position = 0;

    for (int i = 0; i < wr->num_sge; i++) {
        uint8_t *bytes = (uint8_t *)(uintptr_t)wr->sg_list[i].addr;

        for (size_t k = 0; k < wr->sg_list[i].length; k++)
            bytes[k] = pattern(message, position++);
    }
}

void flow_fill(struct flow *flow, uint64_t message)
{
    fill_slot(flow_slot(flow, message), message);
}

void flow_fill_all(struct flow *flow)
{
    for (unsigned int i = 0; i < flow->slot_count; i++)
        fill_slot(&flow->slots[i], 0);
}

static int check_slot(struct flow *flow, const struct slot *slot, uint64_t message)
{
    bool is_read = flow->spec.operation == OPERATION_READ;
    const struct ibv_sge *list = is_read ? slot->send.sg_list : slot->receive.sg_list;
    int count = is_read ? slot->send.num_sge : slot->receive.num_sge;
    size_t position = 0, skip = is_read ? 0 : grh_size(&flow->spec);
    /* The peer polls the last byte of a write as a flag, unless a notice follows the write. */
    size_t flag = flow->spec.operation == OPERATION_WRITE && !flow->spec.notify;
    size_t checked = flow->spec.size > flag ? flow->spec.size - flag : 0;

    for (int i = 0; i < count; i++) {
        const uint8_t *bytes = (const uint8_t *)(uintptr_t)list[i].addr;

        for (size_t k = skip; k < list[i].length && position < checked; k++, position++) {
            if (bytes[k] != pattern(message, position))
                return bench_fail(
                    flow->bench, "message %llu: byte %zu is 0x%02x, not 0x%02x as it was sent",
                    (unsigned long long)message, position, bytes[k], pattern(message, position));
        }
        skip = 0;
    }
    return BENCH_OK;
}

int flow_check(struct flow *flow, uint64_t message)
{
    return check_slot(flow, flow_slot(flow, message), message);
}

/* Does not erase what it has seen, because several receives may share a buffer. */
int flow_check_slot(struct flow *flow, unsigned int slot)
{
    return check_slot(flow, &flow->slots[slot], 0);
}
