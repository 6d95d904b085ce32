#include "sim/model/payload.h"

#include "dma/copy.h"
#include "dma/deliver.h"
#include "hca/epoch.h"
#include "hca/proc.h"
#include "hca/responder.h"
#include "sim/model/hca.h"
#include "sim/sched/sched.h"

#include <stdlib.h>
#include <string.h>

/* ---- the payload of a request, wherever it is ---- */

static uint8_t *staging;
static uint64_t staging_room;

static uint8_t *staging_of(uint64_t size)
{
    if (size > staging_room) {
        free(staging);
        staging_room = round_up_pow2(size);
        staging = malloc(staging_room);
        if (!staging)
            staging_room = 0;
    }
    return staging;
}

static struct mem_ref place_of(const struct sim_wqe *wqe, uint32_t index)
{
    const struct sim_sge *sge = &wqe->list[index];

    return (struct mem_ref){ .kind = sge->kind,
                           .proc = wqe->qp->proc,
                           .addr = sge->address,
                           .length = sge->length };
}

static uint32_t places_of(const struct sim_wqe *wqe, struct mem_ref *refs)
{
    for (uint32_t i = 0; i < wqe->num_sge; i++)
        refs[i] = place_of(wqe, i);
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

/* As a list in this process, if that is where all of them are. */
static bool list_here(const struct mem_ref *refs, uint32_t count, uint64_t length,
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

/* The same wherever they are: what is not here is fetched. */
static bool list_fetched(const struct mem_ref *refs, uint32_t count, uint64_t length,
                         struct local_list *list)
{
    uint8_t *here;

    if (list_here(refs, count, length, list))
        return true;
    here = staging_of(length);
    if (!here || !fetch(refs, count, here))
        return false;
    list->count = 1;
    list->iov[0] = (struct iovec){ here, length };
    return true;
}

/* Straight into memory of this process. */
static bool move_here(const struct mem_ref *from, const struct mem_ref *to, uint32_t to_count,
                      uint64_t length)
{
    struct local_list list;

    return list_here(to, to_count, length, &list) && !copy_in(&list, from);
}

/* What was kept of it when it was posted or reported. */
static const uint8_t *kept_payload(const struct sim_wqe *wqe)
{
    if (wqe->copy)
        return wqe->copy;
    return wqe->flags & IBV_SEND_INLINE ? wqe->inline_data : NULL;
}

static bool payload_here(const struct sim_wqe *wqe, struct local_list *list)
{
    const uint8_t *kept = kept_payload(wqe);
    struct mem_ref refs[HCA_MAX_SGE];

    if (!kept)
        return list_fetched(refs, places_of(wqe, refs), wqe->length, list);
    list->length = wqe->length;
    list->unmapped = false;
    list->count = wqe->length > 0;
    list->iov[0] = (struct iovec){ (void *)kept, wqe->length };
    return true;
}

void payload_drop_snapshot(struct sim_wqe *wqe)
{
    if (wqe->copy)
        pool_give_block(wqe->copy, wqe->length);
    wqe->copy = NULL;
}

void payload_snapshot(struct sim_wqe *wqe)
{
    struct mem_ref refs[HCA_MAX_SGE];

    if (wqe->carried_out || wqe->copy || !wqe->length || wqe->users < 2 ||
        wqe->flags & IBV_SEND_INLINE || wqe->transport.operation >= TRANSPORT_READ)
        return;
    wqe->copy = pool_take_block(wqe->length);
    if (wqe->copy && !fetch(refs, places_of(wqe, refs), wqe->copy))
        payload_drop_snapshot(wqe);
}

/* ---- keys ---- */

static unsigned int access_flag(enum transport_access access)
{
    static const unsigned int flags[] = {
        [TRANSPORT_ACCESS_WRITE] = IBV_ACCESS_REMOTE_WRITE,
        [TRANSPORT_ACCESS_READ] = IBV_ACCESS_REMOTE_READ,
        [TRANSPORT_ACCESS_ATOMIC] = IBV_ACCESS_REMOTE_ATOMIC,
    };

    return flags[access];
}

static bool remote_place(struct sim_qp *qp, uint32_t srqn, enum transport_access access,
                         uint32_t key, uint64_t address, uint64_t length, struct mem_ref *ref)
{
    return responder_translate(qp->shared, srqn, key, address, length, access_flag(access), ref);
}

enum transport_status payload_check_remote(struct sim_qp *qp, enum transport_access access,
                                         uint32_t key, uint64_t address, uint64_t length)
{
    uint32_t srqn = qp->arriving ? qp->arriving->packet.srq : 0;
    struct mem_ref ref = { 0 };
    enum responder_status status;

    epoch_enter();
    status = responder_check(qp->shared, srqn, key, address, length, access_flag(access), &ref);
    epoch_exit();
    if (status == RESPONDER_NOT_ENABLED)
        return TRANSPORT_INVALID_REQUEST;
    qp->remote_device_memory = ref.kind == MEM_SEGMENT;
    return status == RESPONDER_OK ? TRANSPORT_SUCCESS : TRANSPORT_ACCESS_ERROR;
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

/* From the pieces that a request names, 'length' bytes from 'offset' on. */
static bool fetch_part(const struct sim_wqe *wqe, uint64_t offset, uint32_t length, uint8_t *to)
{
    for (uint32_t i = 0; i < wqe->num_sge && length; i++) {
        struct mem_ref ref = place_of(wqe, i);
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

/* The read that this packet answers: the oldest one of the peer that names its bytes. */
static const struct sim_wqe *answered_read(const struct sim_packet *pkt)
{
    const struct sim_qp *asker = sim_qp_find(pkt->packet.destination_qpn);
    const struct packet_payload *payload = &pkt->packet.payload;

    if (!asker)
        return NULL;
    for (uint32_t i = asker->completed; i != asker->fetched; i++) {
        const struct sim_wqe *wqe = sim_qp_wqe(asker, i);
        const struct transport_wqe *swqe = &wqe->transport;

        if (swqe->operation == TRANSPORT_READ && payload->offset >= swqe->remote_address &&
            payload->offset + payload->length <= swqe->remote_address + swqe->length)
            return wqe;
    }
    return NULL;
}

static bool fetch_answer(const struct sim_packet *pkt, uint8_t *to)
{
    const struct packet_payload *payload = &pkt->packet.payload;
    const struct sim_wqe *read = answered_read(pkt);
    struct local_list piece = { .iov = { { to, payload->length } },
                                .count = 1,
                                .length = payload->length };
    struct mem_ref ref;
    bool good;

    if (!read)
        return false;
    epoch_enter();
    good = remote_place(pkt->from, read->transport.remote_srq, TRANSPORT_ACCESS_READ,
                        read->transport.remote_key, payload->offset, payload->length, &ref) &&
           !copy_in(&piece, &ref);
    epoch_exit();
    return good;
}

void payload_of_packet(const struct sim_packet *pkt, uint8_t *to)
{
    const struct packet_payload *payload = &pkt->packet.payload;
    const struct sim_wqe *wqe = pkt->wqe;
    const uint8_t *kept = wqe ? kept_payload(wqe) : NULL;
    bool good;

    if (!payload->length)
        return;
    if (!wqe)
        good = fetch_answer(pkt, to);
    else if (kept)
        good = memcpy(to, kept + payload->offset, payload->length);
    else
        good = fetch_part(wqe, payload->offset, payload->length, to);
    if (!good)
        memset(to, 0, payload->length);
}

/* ---- receives ---- */

static bool open_receives(const struct sim_qp *qp, uint32_t srqn, struct rq_view *view)
{
    struct shared_srq *srq;

    if (qp->transport.attributes.service != SERVICE_XRC)
        srqn = qp->srqn;
    return (srqn || !qp->dead) && responder_open_rq(qp->shared, srqn, &srq, view);
}

static void note_segments(struct sim_qp *qp, const struct recv_wqe *swqe)
{
    uint32_t count = swqe ? swqe->num_sge : 0;

    qp->receive_segments = count < HCA_MAX_SGE ? count : HCA_MAX_SGE;
    for (uint32_t i = 0; i < qp->receive_segments; i++)
        qp->receive_list[i] =
            (struct sim_sge){ .address = swqe->sge[i].addr, .length = swqe->sge[i].length };
}

static uint32_t behind_grh(uint32_t length)
{
    return length < HCA_GRH_BYTES ? 0 : length - HCA_GRH_BYTES;
}

static bool look(struct sim_qp *qp, uint32_t srqn, struct rq_view *view)
{
    uint32_t head, number, max_sge;
    const struct recv_wqe *swqe;

    if (!open_receives(qp, srqn, view))
        return false;
    head = load_relaxed(&view->rq->head);
    number = head + view->rq->claimed;
    if ((int32_t)(load_acquire(&view->rq->posted) - number) <= 0)
        return false;
    swqe = rq_wqe(view->rq, rq_slot(view, number), &max_sge);
    qp->receive_room = rq_room(view->rq, rq_slot(view, number));
    note_segments(qp, swqe);
    if (qp->shared->type == IBV_QPT_UD) {
        qp->receive_room.capacity = behind_grh(qp->receive_room.capacity);
        qp->receive_room.reach = behind_grh(qp->receive_room.reach);
    }
    return true;
}

bool recv_claim_peek(struct sim_qp *qp, uint32_t srqn)
{
    struct rq_view view;
    bool there;

    epoch_enter();
    there = look(qp, srqn, &view);
    epoch_exit();
    return there;
}

enum transport_status recv_claim_take(struct sim_qp *qp, uint32_t srqn)
{
    struct rq_view view;
    bool there;

    epoch_enter();
    there = look(qp, srqn, &view);
    if (there) {
        view.rq->claimed++;
        qp->claimed_srqn = srqn;
    }
    epoch_exit();
    return there ? TRANSPORT_SUCCESS : TRANSPORT_NOT_READY;
}

static void unclaim(struct sim_qp *qp, uint32_t srqn)
{
    struct rq_view view;

    if (open_receives(qp, srqn, &view) && view.rq->claimed)
        view.rq->claimed--;
}

void recv_claim_return(struct sim_qp *qp)
{
    epoch_enter();
    if (qp->transport.responder.message.receive_taken)
        unclaim(qp, qp->claimed_srqn);
    epoch_exit();
}

/* ---- delivery ---- */

/* False: the payload is not there any more. That its target is not is the receiver's affair. */
static bool write_memory(struct sim_packet *last)
{
    const struct sim_wqe *wqe = last->wqe;
    const struct transport_wqe *swqe = &wqe->transport;
    struct local_list payload;
    struct mem_ref to, from;

    if (!wqe->length ||
        !remote_place(last->to, last->packet.srq, TRANSPORT_ACCESS_WRITE, swqe->remote_key,
                      swqe->remote_address, wqe->length, &to))
        return true;
    if (!kept_payload(wqe) && wqe->num_sge == 1) {
        from = place_of(wqe, 0);
        if (move_here(&from, &to, 1, wqe->length))
            return true;
    }
    if (!payload_here(wqe, &payload))
        return false;
    copy_out(&payload, &to, 1);
    return true;
}

/* Without a payload: that of a write is in memory by now. */
static void take_receive(struct sim_packet *last, const struct local_list *payload)
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

    unclaim(last->to, last->packet.srq);
    deliver_message(last->to->shared, &delivery);
}

static bool bring(struct sim_packet *last)
{
    enum transport_operation operation = last->wqe->transport.operation;
    bool writes = operation == TRANSPORT_WRITE || operation == TRANSPORT_WRITE_IMMEDIATE;
    struct local_list payload;

    if (last->to->dead || !proc_word_alive(last->to->process))
        return false;
    if (!(writes ? write_memory(last) : payload_here(last->wqe, &payload)))
        return false;
    if (last->takes_receive)
        take_receive(last, writes ? NULL : &payload);
    return true;
}

void payload_deliver(struct sim_packet *last)
{
    bool brought;

    epoch_enter();
    brought = bring(last);
    if (!brought && last->takes_receive)
        unclaim(last->to, last->packet.srq);
    epoch_exit();
    if (brought)
        sched_wake(last->to->proc, last->takes_receive ? CHANGE_RECEIVED : CHANGE_MEMORY);
    last->wqe->carried_out = true;
    last->wqe->marks[MARK_DELIVERED] = sched->now;
    sim_packet_put(last);
}

/* ---- answers ---- */

static int put(const struct sim_wqe *wqe, const struct local_list *list)
{
    struct mem_ref refs[HCA_MAX_SGE];
    uint32_t count = places_of(wqe, refs);

    return copy_out(list, refs, count) ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS;
}

/* If one step does not do, two show on which side the memory is missing. */
static int put_read(const struct sim_wqe *wqe)
{
    struct sim_qp *from = sim_qp_find(wqe->qp->transport.attributes.remote_qpn);
    struct mem_ref refs[HCA_MAX_SGE], ref;
    struct local_list list;

    if (!wqe->length)
        return IBV_WC_SUCCESS;
    if (!from ||
        !remote_place(from, wqe->transport.remote_srq, TRANSPORT_ACCESS_READ, wqe->transport.remote_key,
                      wqe->transport.remote_address, wqe->length, &ref))
        return IBV_WC_REM_OP_ERR;
    if (move_here(&ref, refs, places_of(wqe, refs), wqe->length))
        return IBV_WC_SUCCESS;
    return list_fetched(&ref, 1, wqe->length, &list) ? put(wqe, &list)
                                                           : IBV_WC_REM_OP_ERR;
}

static int put_original(struct sim_wqe *wqe)
{
    struct local_list word = { .iov = { { &wqe->original, wqe->length } },
                               .count = 1,
                               .length = wqe->length };

    return put(wqe, &word);
}

int payload_read_response(struct sim_wqe *wqe)
{
    int status;

    epoch_enter();
    status = wqe->transport.operation == TRANSPORT_READ ? put_read(wqe) : put_original(wqe);
    epoch_exit();
    return status;
}

enum transport_status payload_atomic(struct sim_qp *qp, const struct packet *wqe,
                                   uint64_t *original)
{
    bool adds = (wqe->opcode & ~SERVICE_MASK) == OPCODE_FETCH_ADD;
    struct mem_ref ref;
    uint64_t after;
    bool good;

    epoch_enter();
    good = remote_place(qp, wqe->srq, TRANSPORT_ACCESS_ATOMIC, wqe->remote_key,
                        wqe->remote_address, sizeof(after), &ref) &&
           !copy_word(&ref, original, false);
    if (good) {
        after = responder_atomic(adds, *original, wqe->compare, wqe->swap_or_add);
        good = after == *original || !copy_word(&ref, &after, true);
    }
    epoch_exit();
    if (good)
        sched_wake(qp->proc, CHANGE_MEMORY);
    return good ? TRANSPORT_SUCCESS : TRANSPORT_OPERATIONAL_ERROR;
}
