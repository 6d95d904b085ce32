/* SPDX-License-Identifier: BSD-2-Clause */
/* What the transport calls: work requests, receives, and the memory of this process. Inside an
 * epoch, with the lock of the QP's send queue held. */
#include "wire/wire.h"

#include "hca/qp.h"
#include "hca/responder.h"
#include "hca/shm_lock.h"
#include "transport/verbs/work.h"
#include "util/bytes.h"

#include <endian.h>
#include <string.h>

/* A service level tells nothing over Ethernet. UCX expects there what mlx5 reports: the kind of the
 * IP header in front of a datagram. */
#define SL_OF_IPV4 2

static struct wire_qp *qp_of(struct transport_qp *transport)
{
    return container_of(transport, struct wire_qp, transport);
}

static const void *bytes_of(const struct packet_payload *payload)
{
    return (const void *)(uintptr_t)payload->source;
}

/* ---- the requester ---- */

static bool place_read(struct transport_qp *transport, uint32_t index, uint32_t offset,
                       const struct packet_payload *payload)
{
    struct wire_qp *qp = qp_of(transport);
    const struct wire_slot *slot = &qp->slots[index % WIRE_SLOTS];

    return slot->wqe && wire_memory_scatter(qp, slot->wqe, (uint64_t)slot->offset + offset,
                                            bytes_of(payload), payload->length);
}

static bool place_atomic(struct transport_qp *transport, uint32_t index, uint64_t original)
{
    struct wire_qp *qp = qp_of(transport);
    const struct wire_slot *slot = &qp->slots[index % WIRE_SLOTS];

    return slot->wqe && wire_memory_scatter(qp, slot->wqe, 0, &original, sizeof(original));
}

/* ---- receives ---- */

static uint32_t header_bytes(const struct wire_qp *qp)
{
    return qp->shared->type == IBV_QPT_UD ? HCA_GRH_BYTES : 0;
}

static enum transport_status receive_begin(struct transport_qp *transport,
                                           const struct packet *packet)
{
    struct wire_qp *qp = qp_of(transport);

    if (!deliver_find_target(qp->shared, packet->srq, qp->shared->type == IBV_QPT_UD, &qp->target))
        return TRANSPORT_INVALID_REQUEST;
    return deliver_take(&qp->target) ? TRANSPORT_SUCCESS : TRANSPORT_NOT_READY;
}

static bool scatter(const struct deliver_target *target, uint64_t offset, const uint8_t *bytes,
                    uint32_t length)
{
    uint32_t max_sge;
    const volatile struct recv_wqe *wqe = rq_wqe(target->rq.rq, target->rq.slot, &max_sge);

    if (!wqe)
        return false;
    for (uint32_t i = 0; i < max_sge && i < wqe->num_sge && length; i++) {
        uint64_t address = wqe->sge[i].addr;
        uint32_t n = wqe->sge[i].length, key = wqe->sge[i].lkey;
        struct mem_ref ref;

        if (offset >= n) {
            offset -= n;
            continue;
        }
        n = n - offset < length ? n - offset : length;
        if (!mr_local_of(target->proc, key, target->pd, address + offset, n, true, &ref) ||
            !wire_memory_write(&ref, key, bytes, n))
            return false;
        offset = 0;
        length -= n;
        bytes += n;
    }
    return !length;
}

static enum transport_status receive_place(struct transport_qp *transport, uint32_t offset,
                                           const struct packet_payload *payload)
{
    struct wire_qp *qp = qp_of(transport);
    uint64_t at = (uint64_t)offset + header_bytes(qp);
    enum transport_status status = work_check_receive(
        rq_recv_capacity(qp->target.rq.rq, qp->target.rq.slot), at + payload->length);

    if (status == TRANSPORT_SUCCESS &&
        !scatter(&qp->target, at, bytes_of(payload), payload->length))
        return TRANSPORT_LOCAL_PROTECTION;
    return status;
}

/* In front of a datagram: its IPv6 header, or in the last 20 bytes its IPv4 header. */
static void make_grh(const struct roce_flow *flow, uint32_t length, uint8_t grh[HCA_GRH_BYTES])
{
    memset(grh, 0, HCA_GRH_BYTES);
    if (roce_flow_is_ipv4(flow)) {
        grh[20] = 0x45;
        bytes_put(grh + 22, 2, 20 + 8 + length);
        grh[26] = 0x40;
        grh[28] = 64;
        grh[29] = 17;
        memcpy(grh + 32, flow->source + 12, 4);
        memcpy(grh + 36, flow->destination + 12, 4);
        return;
    }
    grh[0] = 0x60;
    bytes_put(grh + 4, 2, 8 + length);
    grh[6] = 17;
    grh[7] = 64;
    memcpy(grh + 8, flow->source, 16);
    memcpy(grh + 24, flow->destination, 16);
}

static void complete_receive(struct wire_qp *qp, const struct packet *last, uint32_t length,
                             enum ibv_wc_status status)
{
    const struct opcode_info *info = opcode_info(last->opcode);
    bool writes = info->flags & OPCODE_WRITE;
    struct send_wqe send = {
        .opcode = IBV_WR_SEND,
        .flags = last->solicited ? IBV_SEND_SOLICITED : 0,
    };
    struct delivery delivery = {
        .wqe = &send,
        .length = length,
        .opcode = writes ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
        .datagram = qp->shared->type == IBV_QPT_UD,
        .src_qp =
            qp->shared->type == IBV_QPT_UD ? last->source_qpn : qp->transport.attributes.remote_qpn,
    };
    unsigned flags = 0;

    if (info->headers & HEADER_IMMEDIATE) {
        send.opcode = IBV_WR_SEND_WITH_IMM;
        send.imm = htobe32(last->immediate);
    } else if (info->headers & HEADER_IETH) {
        send.opcode = IBV_WR_SEND_WITH_INV;
        send.imm = last->invalidate_key;
    }
    if (delivery.datagram) {
        uint8_t grh[HCA_GRH_BYTES];

        if (roce_flow_is_ipv4(&qp->arrival->flow))
            send.sl = SL_OF_IPV4;
        make_grh(&qp->arrival->flow, length, grh);
        if (scatter(&qp->target, 0, grh, sizeof(grh)))
            flags = CQE_GRH_PLACED;
    }
    if (unlikely(!load_relaxed(&qp->shared->comm_est)))
        deliver_note_first_message(qp->shared);
    deliver_complete(&qp->target, &delivery, status, flags);
}

static void receive_end(struct transport_qp *transport, const struct packet *last, uint32_t length)
{
    complete_receive(qp_of(transport), last, length, IBV_WC_SUCCESS);
}

static enum transport_status invalidate(struct transport_qp *transport, uint32_t key)
{
    return responder_invalidate(qp_of(transport)->shared, key) ? TRANSPORT_SUCCESS
                                                               : TRANSPORT_ACCESS_ERROR;
}

/* ---- remote access ---- */

/* A region is a key and, for XRC, the SRQ whose PD counts: it is looked up for each packet, since
 * the program may deregister it at any time. */
static uint64_t region_of(uint32_t key, uint32_t srqn)
{
    return (uint64_t)srqn << 32 | key;
}

static bool translate(const struct wire_qp *qp, uint64_t region, uint64_t address, uint64_t length,
                      enum transport_access access, struct mem_ref *ref)
{
    return work_translate(qp->shared, region >> 32, access, region, address, length, ref);
}

static enum transport_status check_remote(struct transport_qp *transport,
                                          enum transport_access access, uint32_t key,
                                          uint64_t address, uint32_t length, uint64_t *region)
{
    struct wire_qp *qp = qp_of(transport);
    uint32_t srqn = qp->arrival ? qp->arrival->packet.srq : 0;
    struct mem_ref ref;

    *region = region_of(key, srqn);
    return work_check_remote(qp->shared, srqn, access, key, address, length, &ref);
}

static enum transport_status place_write(struct transport_qp *transport, uint64_t region,
                                         uint64_t address, const struct packet_payload *payload)
{
    struct mem_ref ref;

    if (!translate(qp_of(transport), region, address, payload->length, TRANSPORT_ACCESS_WRITE,
                   &ref))
        return TRANSPORT_ACCESS_ERROR;
    return wire_memory_write(&ref, region, bytes_of(payload), payload->length)
               ? TRANSPORT_SUCCESS
               : TRANSPORT_OPERATIONAL_ERROR;
}

bool wire_memory_response(const struct wire_qp *qp, const struct packet_payload *payload,
                          void *bytes)
{
    struct mem_ref ref;

    return translate(qp, payload->source, payload->offset, payload->length, TRANSPORT_ACCESS_READ,
                     &ref) &&
           wire_memory_read(&ref, payload->source, bytes, payload->length);
}

const uint8_t *wire_memory_responded(const struct wire_qp *qp, const struct packet_payload *payload)
{
    struct mem_ref ref;

    return translate(qp, payload->source, payload->offset, payload->length, TRANSPORT_ACCESS_READ,
                     &ref)
               ? wire_memory_own(&ref, payload->source)
               : NULL;
}

static bool change_word(const struct mem_ref *ref, uint32_t key, const struct packet *request,
                        uint64_t *original)
{
    bool adds = (request->opcode & ~SERVICE_MASK) == OPCODE_FETCH_ADD;
    struct shm_lock *lock = responder_atomic_lock(ref);
    uint64_t after;
    bool good;

    shm_lock(lock);
    good = wire_memory_read(ref, key, original, sizeof(*original));
    after = responder_atomic(adds, *original, request->compare, request->swap_or_add);
    if (good && after != *original)
        good = wire_memory_write(ref, key, &after, sizeof(after));
    shm_unlock(lock);
    return good;
}

static enum transport_status atomic(struct transport_qp *transport, uint64_t region,
                                    const struct packet *request, uint64_t *original)
{
    struct mem_ref ref;
    enum transport_status status =
        work_check_remote(qp_of(transport)->shared, region >> 32, TRANSPORT_ACCESS_ATOMIC, region,
                          request->remote_address, sizeof(*original), &ref);

    if (status == TRANSPORT_SUCCESS && !change_word(&ref, region, request, original))
        return TRANSPORT_OPERATIONAL_ERROR;
    return status;
}

/* ---- failure ---- */

static bool arrived_as_request(const struct wire_qp *qp)
{
    return qp->arrival && !(opcode_info(qp->arrival->packet.opcode)->flags & OPCODE_RESPONSE);
}

static void failed(struct transport_qp *transport, enum transport_status why)
{
    struct wire_qp *qp = qp_of(transport);
    bool local = why == TRANSPORT_LOCAL_LENGTH || why == TRANSPORT_LOCAL_PROTECTION;

    if (!arrived_as_request(qp)) {
        qp_set_error(qp->shared);
        return;
    }
    if (local && transport->responder.message.receive_taken) {
        transport->responder.message.receive_taken = false;
        complete_receive(qp, &qp->arrival->packet, 0, work_status(why));
    }
    if (local || why == TRANSPORT_RETRY_EXCEEDED)
        qp_set_error(qp->shared);
    else
        work_fail_responder(qp->shared, why);
}

/* ---- work requests ---- */

static struct wire_slot *slot_at(struct wire_qp *qp, uint32_t index)
{
    return &qp->slots[index % WIRE_SLOTS];
}

static const struct transport_wqe *wqe_at(struct transport_qp *transport, uint32_t index)
{
    struct wire_qp *qp = qp_of(transport);

    if (index == qp->fetched && !wire_qp_fetch(qp))
        return NULL;
    return &slot_at(qp, index)->transport;
}

/* Drops the other parts of a WQE that has failed. */
static void drop_parts(struct wire_qp *qp, const struct wire_wqe *wqe)
{
    for (uint32_t i = qp->completed; i != qp->fetched; i++)
        if (slot_at(qp, i)->wqe == wqe)
            slot_at(qp, i)->wqe = NULL;
    if (qp->next_wqe == wqe)
        wire_qp_skip(qp);
}

static enum ibv_wc_status status_of(const struct wire_wqe *wqe, enum transport_status status)
{
    if (wqe->unreadable)
        return IBV_WC_LOC_PROT_ERR;
    return wqe->bad && status == TRANSPORT_LOCAL_LENGTH ? wqe->bad : work_status(status);
}

static void complete(struct transport_qp *transport, uint32_t index, enum transport_status status)
{
    struct wire_qp *qp = qp_of(transport);
    struct wire_slot *slot = slot_at(qp, index);
    struct wire_wqe *wqe = slot->wqe;

    qp->completed = index + 1;
    if (!wqe || (status == TRANSPORT_SUCCESS && !slot->last))
        return;
    if (status == TRANSPORT_SUCCESS && !transport_is_reliable(transport)) {
        qp->sent = wqe; /* its payload is yet to be copied */
        return;
    }
    if (status != TRANSPORT_SUCCESS) {
        qp_set_error(qp->shared); /* before the program sees the completion */
        drop_parts(qp, wqe);
    }
    wire_qp_complete(qp, wqe, status_of(wqe, status));
}

const struct transport_ops wire_transport_ops = {
    .wqe_at = wqe_at,
    .complete = complete,
    .place_read = place_read,
    .place_atomic = place_atomic,
    .receive_begin = receive_begin,
    .receive_place = receive_place,
    .receive_end = receive_end,
    .invalidate = invalidate,
    .check_remote = check_remote,
    .place_write = place_write,
    .atomic = atomic,
    .failed = failed,
};
