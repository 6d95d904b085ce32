#include "sim/carry.h"

#include "hca/epoch.h"
#include "hca/mr.h"
#include "hca/proc.h"
#include "hca/rq.h"
#include "live/live.h"
#include "sim/models/hca.h"
#include "sim/turn.h"

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

static struct place place_of(const struct request *request, uint32_t index)
{
    const struct stretch *stretch = &request->list[index];

    return (struct place){ .kind = stretch->kind,
                           .proc = request->queue->proc,
                           .addr = stretch->address,
                           .length = stretch->length };
}

static uint32_t places_of(const struct request *request, struct place *places)
{
    for (uint32_t i = 0; i < request->stretches; i++)
        places[i] = place_of(request, i);
    return request->stretches;
}

static bool fetch(const struct place *places, uint32_t count, uint8_t *to)
{
    for (uint32_t i = 0; i < count; i++) {
        struct local_list piece = { .iov = { { to, places[i].length } },
                                    .count = 1,
                                    .length = places[i].length };

        if (copy_in(&piece, &places[i]))
            return false;
        to += places[i].length;
    }
    return true;
}

/* As a list in this process, if that is where all of them are. */
static bool list_here(const struct place *places, uint32_t count, uint64_t length,
                      struct local_list *list)
{
    list->count = count;
    list->length = length;
    list->unmapped = false;
    for (uint32_t i = 0; i < count; i++) {
        if (places[i].kind == PLACE_SEGMENT)
            list->iov[i].iov_base = (char *)seg + places[i].addr;
        else if (places[i].proc == (uint32_t)proc_self)
            list->iov[i].iov_base = (char *)places[i].addr;
        else
            return false;
        list->iov[i].iov_len = places[i].length;
    }
    return true;
}

/* The same wherever they are: what is not here is fetched. */
static bool list_fetched(const struct place *places, uint32_t count, uint64_t length,
                         struct local_list *list)
{
    uint8_t *here;

    if (list_here(places, count, length, list))
        return true;
    here = staging_of(length);
    if (!here || !fetch(places, count, here))
        return false;
    list->count = 1;
    list->iov[0] = (struct iovec){ here, length };
    return true;
}

/* Straight into memory of this process. */
static bool move_here(const struct place *from, const struct place *to, uint32_t to_count,
                      uint64_t length)
{
    struct local_list list;

    return list_here(to, to_count, length, &list) && !copy_in(&list, from);
}

/* What was kept of it when it was posted or reported. */
static const uint8_t *kept_payload(const struct request *request)
{
    if (request->copy)
        return request->copy;
    return request->flags & IBV_SEND_INLINE ? request->inline_data : NULL;
}

static bool payload_here(const struct request *request, struct local_list *list)
{
    const uint8_t *kept = kept_payload(request);
    struct place places[HCA_MAX_SGE];

    if (!kept)
        return list_fetched(places, places_of(request, places), request->length, list);
    list->length = request->length;
    list->unmapped = false;
    list->count = request->length > 0;
    list->iov[0] = (struct iovec){ (void *)kept, request->length };
    return true;
}

void carry_forget_copy(struct request *request)
{
    if (request->copy)
        block_give(request->copy, request->length);
    request->copy = NULL;
}

void carry_snapshot(struct request *request)
{
    struct place places[HCA_MAX_SGE];

    if (request->carried_out || request->copy || !request->length || request->users < 2 ||
        request->flags & IBV_SEND_INLINE || request->wqe.operation >= TRANSPORT_READ)
        return;
    request->copy = block_take(request->length);
    if (request->copy && !fetch(places, places_of(request, places), request->copy))
        carry_forget_copy(request);
}

/* ---- keys ---- */

/* Whose memory the peer of this queue may touch; an XRC target stands in for its SRQ's owner. */
static uint32_t responder_pd(const struct queue *queue, uint32_t srqn, unsigned int *proc)
{
    const struct shared_srq *srq;

    *proc = queue->shared->proc;
    if (queue->shared->type != IBV_QPT_XRC_RECV)
        return queue->shared->pd;
    srq = shared_srq_find(srqn);
    if (!srq || srq->xrcd != queue->shared->xrcd)
        return 0;
    *proc = srq->proc;
    return srq->pd;
}

static unsigned int access_flag(enum transport_access access)
{
    static const unsigned int flags[] = {
        [TRANSPORT_ACCESS_WRITE] = IBV_ACCESS_REMOTE_WRITE,
        [TRANSPORT_ACCESS_READ] = IBV_ACCESS_REMOTE_READ,
        [TRANSPORT_ACCESS_ATOMIC] = IBV_ACCESS_REMOTE_ATOMIC,
    };

    return flags[access];
}

static bool remote_place(struct queue *queue, uint32_t srqn, enum transport_access access,
                         uint32_t key, uint64_t address, uint64_t length, struct place *place)
{
    unsigned int proc;
    uint32_t pd = responder_pd(queue, srqn, &proc);

    return proc < MAX_PROCS &&
           mr_remote(key, proc, pd, queue->qpn, address, length, access_flag(access), place);
}

enum transport_status carry_check_remote(struct queue *queue, enum transport_access access,
                                         uint32_t key, uint64_t address, uint64_t length)
{
    uint32_t srqn = queue->arriving ? queue->arriving->packet.srq : 0;
    struct place place = { 0 };
    bool good = true;

    if (!(queue->shared->access & access_flag(access)))
        return TRANSPORT_INVALID_REQUEST;
    if (length) {
        epoch_enter();
        good = remote_place(queue, srqn, access, key, address, length, &place);
        epoch_exit();
    }
    queue->remote_device_memory = place.kind == PLACE_SEGMENT;
    return good ? TRANSPORT_SUCCESS : TRANSPORT_ACCESS_ERROR;
}

bool carry_invalidate(struct queue *queue, uint32_t key)
{
    struct shared_mr *mr;
    bool good;

    epoch_enter();
    mr = shared_mr_find(key);
    good = mr && mr->proc == queue->shared->proc && mr->pd == queue->shared->pd &&
           mr->kind == MW_TYPE_2 && mr->bound_qpn == queue->qpn;
    if (good)
        atomic_store(&mr->key, 0);
    epoch_exit();
    return good;
}

/* ---- the payload of one packet ---- */

/* From the pieces that a request names, 'length' bytes from 'offset' on. */
static bool fetch_part(const struct request *request, uint64_t offset, uint32_t length, uint8_t *to)
{
    for (uint32_t i = 0; i < request->stretches && length; i++) {
        struct place place = place_of(request, i);
        uint64_t part;

        if (offset >= place.length) {
            offset -= place.length;
            continue;
        }
        part = place.length - offset < length ? place.length - offset : length;
        place.addr += offset;
        place.length = part;
        struct local_list piece = { .iov = { { to, part } }, .count = 1, .length = part };

        if (copy_in(&piece, &place))
            return false;
        offset = 0;
        length -= part;
        to += part;
    }
    return !length;
}

/* The read that this packet answers: the oldest one of the peer that names its bytes. */
static const struct request *answered_read(const struct flight *flight)
{
    const struct queue *asker = queue_by_number(flight->packet.destination_qpn);
    const struct packet_payload *payload = &flight->packet.payload;

    if (!asker)
        return NULL;
    for (uint32_t i = asker->completed; i != asker->fetched; i++) {
        const struct request *request = queue_message(asker, i);
        const struct transport_wqe *wqe = &request->wqe;

        if (wqe->operation == TRANSPORT_READ && payload->offset >= wqe->remote_address &&
            payload->offset + payload->length <= wqe->remote_address + wqe->length)
            return request;
    }
    return NULL;
}

static bool fetch_answer(const struct flight *flight, uint8_t *to)
{
    const struct packet_payload *payload = &flight->packet.payload;
    const struct request *read = answered_read(flight);
    struct local_list piece = { .iov = { { to, payload->length } },
                                .count = 1,
                                .length = payload->length };
    struct place place;
    bool good;

    if (!read)
        return false;
    epoch_enter();
    good = remote_place(flight->from, read->wqe.remote_srq, TRANSPORT_ACCESS_READ,
                        read->wqe.remote_key, payload->offset, payload->length, &place) &&
           !copy_in(&piece, &place);
    epoch_exit();
    return good;
}

void carry_payload(const struct flight *flight, uint8_t *to)
{
    const struct packet_payload *payload = &flight->packet.payload;
    const struct request *request = flight->message;
    const uint8_t *kept = request ? kept_payload(request) : NULL;
    bool good;

    if (!payload->length)
        return;
    if (!request)
        good = fetch_answer(flight, to);
    else if (kept)
        good = memcpy(to, kept + payload->offset, payload->length);
    else
        good = fetch_part(request, payload->offset, payload->length, to);
    if (!good)
        memset(to, 0, payload->length);
}

/* ---- receives ---- */

static bool open_receives(const struct queue *queue, uint32_t srqn, struct rq_view *view)
{
    const struct shared_srq *srq;

    if (queue->transport.attributes.service != SERVICE_XRC)
        srqn = queue->srqn;
    if (!srqn)
        return !queue->dead && rq_open(queue->shared->rq, view);
    srq = shared_srq_find(srqn);
    return srq && rq_open(srq->rq, view);
}

static void note_segments(struct queue *queue, const struct recv_wqe *wqe)
{
    uint32_t count = wqe ? wqe->num_sge : 0;

    queue->receive_segments = count < HCA_MAX_SGE ? count : HCA_MAX_SGE;
    for (uint32_t i = 0; i < queue->receive_segments; i++)
        queue->receive_list[i] =
            (struct stretch){ .address = wqe->sge[i].addr, .length = wqe->sge[i].length };
}

static bool look(struct queue *queue, uint32_t srqn, struct rq_view *view)
{
    uint32_t head, number;
    const struct recv_wqe *wqe;

    if (!open_receives(queue, srqn, view))
        return false;
    head = load_relaxed(&view->rq->head);
    number = head + view->rq->claimed;
    if ((int32_t)(load_acquire(&view->rq->posted) - number) <= 0)
        return false;
    wqe = rq_wqe(view->rq, rq_slot(view, number));
    queue->receive_capacity = rq_capacity(view->rq, rq_slot(view, number));
    note_segments(queue, wqe);
    if (queue->shared->type == IBV_QPT_UD && queue->receive_capacity != RECV_BROKEN)
        queue->receive_capacity -=
            queue->receive_capacity < HCA_GRH_BYTES ? queue->receive_capacity : HCA_GRH_BYTES;
    return true;
}

bool carry_look_at_receive(struct queue *queue, uint32_t srqn)
{
    struct rq_view view;
    bool there;

    epoch_enter();
    there = look(queue, srqn, &view);
    epoch_exit();
    return there;
}

enum transport_status carry_claim_receive(struct queue *queue, uint32_t srqn)
{
    struct rq_view view;
    bool there;

    epoch_enter();
    there = look(queue, srqn, &view);
    if (there) {
        view.rq->claimed++;
        queue->claimed_srqn = srqn;
    }
    epoch_exit();
    if (!there)
        return TRANSPORT_NOT_READY;
    return queue->receive_capacity == RECV_BROKEN ? TRANSPORT_LOCAL_PROTECTION : TRANSPORT_SUCCESS;
}

static void unclaim(struct queue *queue, uint32_t srqn)
{
    struct rq_view view;

    if (open_receives(queue, srqn, &view) && view.rq->claimed)
        view.rq->claimed--;
}

void carry_give_back_receive(struct queue *queue)
{
    epoch_enter();
    if (queue->transport.responder.message.receive_taken)
        unclaim(queue, queue->claimed_srqn);
    epoch_exit();
}

/* ---- delivery ---- */

/* False: the payload is not there any more. That its target is not is the receiver's affair. */
static bool write_memory(struct flight *last)
{
    const struct request *request = last->message;
    const struct transport_wqe *wqe = &request->wqe;
    struct local_list payload;
    struct place to, from;

    if (!request->length ||
        !remote_place(last->to, last->packet.srq, TRANSPORT_ACCESS_WRITE, wqe->remote_key,
                      wqe->remote_address, request->length, &to))
        return true;
    if (!kept_payload(request) && request->stretches == 1) {
        from = place_of(request, 0);
        if (move_here(&from, &to, 1, request->length))
            return true;
    }
    if (!payload_here(request, &payload))
        return false;
    copy_out(&payload, &to, 1);
    return true;
}

/* Without a payload: that of a write is in memory by now. */
static void take_receive(struct flight *last, const struct local_list *payload)
{
    struct request *request = last->message;
    struct send_wqe wqe = {
        .imm = request->wqe.immediate,
        .flags = request->flags,
        .opcode = request->opcode,
        .sl = request->sl,
        .srqn = request->wqe.remote_srq,
        .has_grh = request->has_grh,
        .dgid = request->dgid,
    };
    struct message message = {
        .wqe = &wqe,
        .payload = payload,
        .length = request->length,
        .slid = request->queue->shared->lid,
        .opcode = payload ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM,
        .datagram = last->to->shared->type == IBV_QPT_UD,
        .src_qp = request->queue->qpn,
    };

    unclaim(last->to, last->packet.srq);
    deliver(last->to->shared, &message);
}

static bool bring(struct flight *last)
{
    enum transport_operation operation = last->message->wqe.operation;
    bool writes = operation == TRANSPORT_WRITE || operation == TRANSPORT_WRITE_IMMEDIATE;
    struct local_list payload;

    if (last->to->dead || !proc_word_alive(last->to->process))
        return false;
    if (!(writes ? write_memory(last) : payload_here(last->message, &payload)))
        return false;
    if (last->takes_receive)
        take_receive(last, writes ? NULL : &payload);
    return true;
}

void queue_deliver(struct flight *last)
{
    bool brought;

    epoch_enter();
    brought = bring(last);
    if (!brought && last->takes_receive)
        unclaim(last->to, last->packet.srq);
    epoch_exit();
    if (brought)
        turn_wake(last->to->proc, last->takes_receive ? CHANGE_RECEIVED : CHANGE_MEMORY);
    last->message->carried_out = true;
    last->message->marks[MARK_DELIVERED] = world->now;
    flight_drop(last);
}

/* ---- answers ---- */

static int put(const struct request *request, const struct local_list *list)
{
    struct place places[HCA_MAX_SGE];
    uint32_t count = places_of(request, places);

    return copy_out(list, places, count) ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS;
}

/* If one step does not do, two show on which side the memory is missing. */
static int put_read(const struct request *request)
{
    struct queue *from = queue_by_number(request->queue->transport.attributes.remote_qpn);
    struct place places[HCA_MAX_SGE], place;
    struct local_list list;

    if (!request->length)
        return IBV_WC_SUCCESS;
    if (!from ||
        !remote_place(from, request->wqe.remote_srq, TRANSPORT_ACCESS_READ, request->wqe.remote_key,
                      request->wqe.remote_address, request->length, &place))
        return IBV_WC_REM_OP_ERR;
    if (move_here(&place, places, places_of(request, places), request->length))
        return IBV_WC_SUCCESS;
    return list_fetched(&place, 1, request->length, &list) ? put(request, &list)
                                                           : IBV_WC_REM_OP_ERR;
}

static int put_original(struct request *request)
{
    struct local_list word = { .iov = { { &request->original, request->length } },
                               .count = 1,
                               .length = request->length };

    return put(request, &word);
}

int carry_answer(struct request *request)
{
    int status;

    epoch_enter();
    status = request->wqe.operation == TRANSPORT_READ ? put_read(request) : put_original(request);
    epoch_exit();
    return status;
}

enum transport_status carry_atomic(struct queue *queue, const struct packet *request,
                                   uint64_t *original)
{
    bool adds = (request->opcode & ~SERVICE_MASK) == OPCODE_FETCH_ADD;
    struct place place;
    uint64_t after;
    bool good;

    epoch_enter();
    good = remote_place(queue, request->srq, TRANSPORT_ACCESS_ATOMIC, request->remote_key,
                        request->remote_address, sizeof(after), &place) &&
           !copy_word(&place, original, false);
    if (good) {
        after = adds                            ? *original + request->swap_or_add
                : *original == request->compare ? request->swap_or_add
                                                : *original;
        good = after == *original || !copy_word(&place, &after, true);
    }
    epoch_exit();
    if (good)
        turn_wake(queue->proc, CHANGE_MEMORY);
    return good ? TRANSPORT_SUCCESS : TRANSPORT_OPERATIONAL_ERROR;
}

int carry_local(struct hca_qp *qp, const struct send_wqe *wqe)
{
    uint32_t byte_len;

    return run_request(qp, wqe, &byte_len);
}
