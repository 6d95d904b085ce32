/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/model/payload.h"

#include "dma/copy.h"
#include "dma/deliver.h"
#include "hca/epoch.h"
#include "hca/observer.h"
#include "hca/proc.h"
#include "hca/responder.h"
#include "sim/model/hca.h"
#include "sim/model/recv_claim.h"
#include "sim/sched/sched.h"
#include "transport/verbs/work.h"

#include <stdlib.h>
#include <string.h>

/* ---- gathering the payload of a WQE ---- */

/* Buffer for payloads of other processes. It only grows. */

static uint8_t *staging;
static uint64_t staging_capacity;

static uint8_t *staging_buffer(uint64_t size)
{
    if (size > staging_capacity) {
        free(staging);
        staging_capacity = round_up_pow2(size);
        staging = malloc(staging_capacity);
        if (!staging)
            staging_capacity = 0;
    }
    return staging;
}

static struct mem_ref mem_ref_of(const struct sim_wqe *wqe, uint32_t index)
{
    const struct sim_sge *sge = &wqe->sge[index];

    return (struct mem_ref){
        .kind = sge->kind, .proc = wqe->qp->proc, .addr = sge->address, .length = sge->length
    };
}

static uint32_t mem_refs_of(const struct sim_wqe *wqe, struct mem_ref *refs)
{
    for (uint32_t i = 0; i < wqe->num_sge; i++)
        refs[i] = mem_ref_of(wqe, i);
    return wqe->num_sge;
}

static bool fetch(const struct mem_ref *refs, uint32_t count, uint8_t *to)
{
    for (uint32_t i = 0; i < count; i++) {
        struct local_list piece = { .iov = { { to, refs[i].length } },
                                    .count = 1,
                                    .length = refs[i].length };

        if (copy_in(&piece, &refs[i]))
            return false;
        to += refs[i].length;
    }
    return true;
}

/* Lists memory that this process can access directly. Returns false if any of it is elsewhere. */
static bool make_local_list(const struct mem_ref *refs, uint32_t count, uint64_t length,
                            struct local_list *list)
{
    list->count = count;
    list->length = length;
    list->unmapped = false;
    for (uint32_t i = 0; i < count; i++) {
        if (refs[i].kind == MEM_SEGMENT)
            list->iov[i].iov_base = (char *)seg + refs[i].addr;
        else if (refs[i].proc == (uint32_t)proc_self)
            list->iov[i].iov_base = (char *)refs[i].addr;
        else
            return false;
        list->iov[i].iov_len = refs[i].length;
    }
    return true;
}

/* Lists the memory, after copying it to the staging buffer if this process cannot access it. */
static bool make_local_list_copying(const struct mem_ref *refs, uint32_t count, uint64_t length,
                                    struct local_list *list)
{
    uint8_t *here;

    if (make_local_list(refs, count, length, list))
        return true;
    here = staging_buffer(length);
    if (!here || !fetch(refs, count, here))
        return false;
    list->count = 1;
    list->iov[0] = (struct iovec){ here, length };
    return true;
}

/* Copies in one step if the target is memory that this process can access. */
static bool copy_direct(const struct mem_ref *from, const struct mem_ref *to, uint32_t to_count,
                        uint64_t length)
{
    struct local_list list;

    return make_local_list(to, to_count, length, &list) && !copy_in(&list, from);
}

/* The inline data or snapshot of a WQE, or NULL. */
static const uint8_t *saved_payload(const struct sim_wqe *wqe)
{
    if (wqe->snapshot)
        return wqe->snapshot;
    return wqe->flags & IBV_SEND_INLINE ? wqe->inline_data : NULL;
}

static bool gather_payload(const struct sim_wqe *wqe, struct local_list *list)
{
    const uint8_t *saved = saved_payload(wqe);
    struct mem_ref refs[HCA_MAX_SGE];

    if (!saved)
        return make_local_list_copying(refs, mem_refs_of(wqe, refs), wqe->length, list);
    list->length = wqe->length;
    list->unmapped = false;
    list->count = wqe->length > 0;
    list->iov[0] = (struct iovec){ (void *)saved, wqe->length };
    return true;
}

void payload_drop_snapshot(struct sim_wqe *wqe)
{
    if (wqe->snapshot)
        pool_give_block(wqe->snapshot, wqe->length);
    wqe->snapshot = NULL;
}

void payload_snapshot(struct sim_wqe *wqe)
{
    struct mem_ref refs[HCA_MAX_SGE];

    if (wqe->qp->owner || wqe->delivered || wqe->snapshot || !wqe->length || wqe->refcount < 2 ||
        wqe->flags & IBV_SEND_INLINE || wqe->transport.operation >= TRANSPORT_READ)
        return;
    wqe->snapshot = pool_take_block(wqe->length);
    if (wqe->snapshot && !fetch(refs, mem_refs_of(wqe, refs), wqe->snapshot))
        payload_drop_snapshot(wqe);
}

/* ---- keys ---- */

enum transport_status payload_check_remote(struct sim_qp *qp, enum transport_access access,
                                           uint32_t key, uint64_t address, uint64_t length)
{
    uint32_t srqn = qp->arriving ? qp->arriving->packet.srq : 0;
    struct mem_ref ref = { 0 };
    enum transport_status status;

    if (qp->owner)
        return TRANSPORT_SUCCESS;
    epoch_enter();
    status = work_check_remote(qp->shared, srqn, access, key, address, length, &ref);
    epoch_exit();
    if (status == TRANSPORT_SUCCESS)
        qp->remote_device_memory = ref.kind == MEM_SEGMENT;
    return status;
}

bool payload_invalidate(struct sim_qp *qp, uint32_t key)
{
    bool good;

    epoch_enter();
    good = responder_invalidate(qp->shared, key);
    epoch_exit();
    return good;
}

/* ---- the payload of one packet ---- */

/* Copies 'length' bytes from 'offset' of a WQE's SGEs. */
static bool fetch_range(const struct sim_wqe *wqe, uint64_t offset, uint32_t length, uint8_t *to)
{
    for (uint32_t i = 0; i < wqe->num_sge && length; i++) {
        struct mem_ref ref = mem_ref_of(wqe, i);
        uint64_t part;

        if (offset >= ref.length) {
            offset -= ref.length;
            continue;
        }
        part = ref.length - offset < length ? ref.length - offset : length;
        ref.addr += offset;
        ref.length = part;
        struct local_list piece = { .iov = { { to, part } }, .count = 1, .length = part };

        if (copy_in(&piece, &ref))
            return false;
        offset = 0;
        length -= part;
        to += part;
    }
    return !length;
}

/* The RDMA read that a response belongs to: the oldest one of the peer that covers its bytes. */
static const struct sim_wqe *read_wqe_of_response(const struct sim_packet *pkt)
{
    const struct sim_qp *requester = sim_qp_find(pkt->packet.destination_qpn);
    const struct packet_payload *payload = &pkt->packet.payload;

    if (!requester)
        return NULL;
    for (uint32_t i = requester->completed; i != requester->fetched; i++) {
        const struct sim_wqe *wqe = sim_qp_wqe(requester, i);
        const struct transport_wqe *twqe = &wqe->transport;

        if (twqe->operation == TRANSPORT_READ && payload->offset >= twqe->remote_address &&
            payload->offset + payload->length <= twqe->remote_address + twqe->length)
            return wqe;
    }
    return NULL;
}

static bool fetch_read_response(const struct sim_packet *pkt, uint8_t *to)
{
    const struct packet_payload *payload = &pkt->packet.payload;
    const struct sim_wqe *read = read_wqe_of_response(pkt);
    struct local_list piece = { .iov = { { to, payload->length } },
                                .count = 1,
                                .length = payload->length };
    struct mem_ref ref;
    bool good;

    if (!read)
        return false;
    epoch_enter();
    good = work_translate(pkt->from->shared, read->transport.remote_srq, TRANSPORT_ACCESS_READ,
                          read->transport.remote_key, payload->offset, payload->length, &ref) &&
           !copy_in(&piece, &ref);
    epoch_exit();
    return good;
}

void payload_of_packet(const struct sim_packet *pkt, uint8_t *to)
{
    const struct packet_payload *payload = &pkt->packet.payload;
    const struct sim_wqe *wqe = pkt->wqe;
    const uint8_t *saved = wqe ? saved_payload(wqe) : NULL;
    bool good;

    if (!payload->length)
        return;
    if (pkt->from->owner)
        good = false; /* its payload has a length only */
    else if (!wqe)
        good = fetch_read_response(pkt, to);
    else if (saved)
        good = memcpy(to, saved + payload->offset, payload->length);
    else
        good = fetch_range(wqe, payload->offset, payload->length, to);
    if (!good)
        memset(to, 0, payload->length);
}

/* ---- delivery ---- */

static bool is_write(const struct sim_wqe *wqe)
{
    enum transport_operation operation = wqe->transport.operation;

    return operation == TRANSPORT_WRITE || operation == TRANSPORT_WRITE_IMMEDIATE;
}

/* Returns false if the payload is gone. A target that is gone is not the sender's error. */
static bool write_memory(struct sim_packet *last)
{
    const struct sim_wqe *wqe = last->wqe;
    const struct transport_wqe *twqe = &wqe->transport;
    struct local_list payload;
    struct mem_ref to, from;

    if (!wqe->length || !work_translate(last->to->shared, last->packet.srq, TRANSPORT_ACCESS_WRITE,
                                        twqe->remote_key, twqe->remote_address, wqe->length, &to))
        return true;
    if (!saved_payload(wqe) && wqe->num_sge == 1) {
        from = mem_ref_of(wqe, 0);
        if (copy_direct(&from, &to, 1, wqe->length))
            return true;
    }
    if (!gather_payload(wqe, &payload))
        return false;
    copy_out(&payload, &to, 1);
    return true;
}

/* 'payload' is NULL for an RDMA write with immediate, whose data is in memory already. */
static void complete_receive(struct sim_packet *last, const struct local_list *payload)
{
    struct sim_wqe *wqe = last->wqe;
    struct send_wqe swqe = {
        .imm = wqe->transport.immediate,
        .flags = wqe->flags,
        .opcode = wqe->opcode,
        .sl = wqe->sl,
        .srqn = wqe->transport.remote_srq,
        .has_grh = wqe->has_grh,
        .dgid = wqe->dgid,
    };
    struct delivery delivery = {
        .wqe = &swqe,
        .payload = payload,
        .length = wqe->length,
        .slid = wqe->qp->shared->lid,
        .opcode = payload ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM,
        .datagram = last->to->shared->type == IBV_QPT_UD,
        .src_qp = wqe->qp->qpn,
    };

    recv_claim_release(last->to, last->packet.srq);
    deliver_message(last->to->shared, &delivery);
}

static bool deliver_payload(struct sim_packet *last)
{
    bool writes = is_write(last->wqe);
    struct local_list payload;

    if (last->to->dead || !proc_word_alive(last->to->process))
        return false;
    if (!(writes ? write_memory(last) : gather_payload(last->wqe, &payload)))
        return false;
    if (last->consumes_recv)
        complete_receive(last, writes ? NULL : &payload);
    return true;
}

/* Writes the part of the message from byte `from` on. */
static bool write_tail(const struct sim_packet *last, uint64_t from)
{
    const struct sim_wqe *wqe = last->wqe;
    const struct transport_wqe *twqe = &wqe->transport;
    uint64_t length = wqe->length - from;
    const uint8_t *saved = saved_payload(wqe);
    struct local_list list = { .count = 1, .length = length };
    struct mem_ref to;

    if (!work_translate(last->to->shared, last->packet.srq, TRANSPORT_ACCESS_WRITE,
                        twqe->remote_key, twqe->remote_address + from, length, &to))
        return false;
    list.iov[0] = (struct iovec){ saved ? (void *)(saved + from) : staging_buffer(length), length };
    if (!list.iov[0].iov_base ||
        (!saved && !fetch_range(wqe, from, length, list.iov[0].iov_base)))
        return false;
    return !copy_out(&list, &to, 1);
}

void payload_show_tail(struct sim_packet *last)
{
    const struct sim_wqe *wqe = last->wqe;
    uint64_t from = hca_tail_of(wqe->transport.remote_address, wqe->length);
    bool shown;

    if (!from || !is_write(wqe) || last->to->dead || !proc_word_alive(last->to->process))
        return;
    epoch_enter();
    shown = write_tail(last, from);
    epoch_exit();
    if (shown)
        sched_wake(last->to->proc, CHANGE_MEMORY, NULL);
}

static void deliver_to_process(struct sim_packet *last)
{
    bool delivered;

    epoch_enter();
    delivered = deliver_payload(last);
    if (!delivered && last->consumes_recv)
        recv_claim_release(last->to, last->packet.srq);
    epoch_exit();
    if (delivered)
        sched_wake(last->to->proc, last->consumes_recv ? CHANGE_RECEIVED : CHANGE_MEMORY, NULL);
}

void payload_deliver(struct sim_packet *last)
{
    if (last->to->owner)
        last->to->owner->delivered(last);
    else
        deliver_to_process(last);
    last->wqe->delivered = true;
    last->wqe->marks[MARK_DELIVERED] = sched->now;
    sim_packet_put(last);
}

/* ---- results of reads and atomics ---- */

static int scatter_to_wqe(const struct sim_wqe *wqe, const struct local_list *list)
{
    struct mem_ref refs[HCA_MAX_SGE];
    uint32_t count = mem_refs_of(wqe, refs);

    return copy_out(list, refs, count) ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS;
}

/* If the direct copy fails, copying in two steps shows which side's memory is missing. */
static int place_read_data(const struct sim_wqe *wqe)
{
    struct sim_qp *from = sim_qp_find(wqe->qp->transport.attributes.remote_qpn);
    struct mem_ref refs[HCA_MAX_SGE], ref;
    struct local_list list;

    if (!wqe->length)
        return IBV_WC_SUCCESS;
    if (!from || !work_translate(from->shared, wqe->transport.remote_srq, TRANSPORT_ACCESS_READ,
                                 wqe->transport.remote_key, wqe->transport.remote_address,
                                 wqe->length, &ref))
        return IBV_WC_REM_OP_ERR;
    if (copy_direct(&ref, refs, mem_refs_of(wqe, refs), wqe->length))
        return IBV_WC_SUCCESS;
    return make_local_list_copying(&ref, 1, wqe->length, &list) ? scatter_to_wqe(wqe, &list)
                                                                : IBV_WC_REM_OP_ERR;
}

static int place_atomic_result(struct sim_wqe *wqe)
{
    struct local_list word = { .iov = { { &wqe->original, wqe->length } },
                               .count = 1,
                               .length = wqe->length };

    return scatter_to_wqe(wqe, &word);
}

int payload_read_response(struct sim_wqe *wqe)
{
    int status;

    epoch_enter();
    status = wqe->transport.operation == TRANSPORT_READ ? place_read_data(wqe)
                                                        : place_atomic_result(wqe);
    epoch_exit();
    return status;
}

enum transport_status payload_atomic(struct sim_qp *qp, const struct packet *request,
                                     uint64_t *original)
{
    bool adds = (request->opcode & ~SERVICE_MASK) == OPCODE_FETCH_ADD;
    struct mem_ref ref;
    uint64_t after;
    bool good;

    epoch_enter();
    good = work_translate(qp->shared, request->srq, TRANSPORT_ACCESS_ATOMIC, request->remote_key,
                          request->remote_address, sizeof(after), &ref) &&
           !copy_word(&ref, original, false);
    if (good) {
        after = responder_atomic(adds, *original, request->compare, request->swap_or_add);
        good = after == *original || !copy_word(&ref, &after, true);
    }
    epoch_exit();
    if (good)
        sched_wake(qp->proc, CHANGE_MEMORY, NULL);
    return good ? TRANSPORT_SUCCESS : TRANSPORT_OPERATIONAL_ERROR;
}
