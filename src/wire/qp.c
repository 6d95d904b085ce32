/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/wire.h"

#include "hca/epoch.h"
#include "hca/mr.h"
#include "hca/mw.h"
#include "hca/qp.h"
#include "hca/responder.h"
#include "hca/send_wqe.h"
#include "hca/traffic.h"
#include "transport/psn.h"
#include "transport/verbs/work.h"
#include "util/fault.h"
#include "util/list.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_BYTES (256u << 10) /* unacknowledged */
#define FILL_BYTES   1024         /* longer payload is copied while its ICRC is made */
/* 537 ms. Probes repeat what is lost; the timeout only notices that the peer is gone, and the peer
 * is a process that a busy machine may not run for a while. */
#define MIN_TIMEOUT    17
#define FIRST_PROBE_NS 2000000
#define IMPOSSIBLE     UINT32_MAX /* length of a WQE that fails */

/* QPs with transport state, for the timers. */
static struct spinlock list_lock;
static struct wire_qp *list;

/* ---- states ---- */

/* Packets of the middle of a message that fit into a batch. */
static uint32_t frames_of_batch(uint32_t path_mtu)
{
    uint32_t frames = WIRE_BATCH_BYTES / (path_mtu + BTH_BYTES + ICRC_BYTES);

    return frames < WIRE_BATCH_FRAMES ? frames : WIRE_BATCH_FRAMES;
}

static void start_transport(struct wire_qp *qp)
{
    struct transport_attributes attributes = work_attributes(qp->hca, wire_port_mtu());

    /* Each acknowledgement makes room for a full batch, and the window for a few of them: a short
     * one at its end would return with each turn. */
    attributes.ack_every = frames_of_batch(attributes.path_mtu);
    attributes.window = WINDOW_BYTES / attributes.path_mtu;
    attributes.window -= attributes.window % attributes.ack_every;
    if (attributes.timeout && attributes.timeout < MIN_TIMEOUT)
        attributes.timeout = MIN_TIMEOUT;
    if (attributes.max_reads > WINDOW_BYTES / WIRE_READ_BYTES)
        attributes.max_reads = WINDOW_BYTES / WIRE_READ_BYTES;
    attributes.resources = qp->resources;
    attributes.counters = &qp->counters;
    qp->counters = (struct transport_counters){ 0 };
    qp->full_window = attributes.window;
    qp->full_reads = attributes.max_reads;
    qp->losses = 0;
    qp->refused = false;
    transport_init(&qp->transport, &wire_transport_ops, &attributes);
}

/* With the send queue's lock held. */
static struct wire_qp *make(struct hca_qp *hca)
{
    struct wire_qp *qp = calloc(1, sizeof(*qp));

    if (!qp)
        return NULL;
    qp->hca = hca;
    qp->shared = hca->shared;
    qp->end = &qp->next_wqe;
    qp->deadline = TRANSPORT_NEVER;
    qp->from = &wire_port.gids[0];
    hca->engine_qp = qp;
    spin_lock(&list_lock);
    list_push(list, qp, next, link);
    spin_unlock(&list_lock);
    return qp;
}

static void find_peer(struct wire_qp *qp)
{
    const struct ibv_global_route *route = &qp->hca->attr.ah_attr.grh;

    if (qp->hca->ibv.qp_type == IBV_QPT_UD || route->sgid_index >= wire_port.count)
        return;
    qp->from = &wire_port.gids[route->sgid_index];
    memcpy(qp->peer_gid, route->dgid.raw, sizeof(qp->peer_gid));
    if (!wire_port_address(qp->from, qp->peer_gid, &qp->to))
        qp->to.any.sa_family = AF_UNSPEC; /* nothing that is sent there arrives */
    epoch_enter();
    wire_port_find_near(qp->peer_gid, qp->hca->attr.dest_qp_num, &qp->to);
    epoch_exit();
    qp->path = qp->to.any.sa_family == AF_UNSPEC ? NULL : wire_path_find(qp->from, &qp->to);
    wire_peer_leave(qp);
    if (qp->hca->ibv.qp_type != IBV_QPT_UC)
        qp->peer = wire_peer_find(qp->peer_gid);
}

void wire_qp_modified(struct hca_qp *hca, enum ibv_qp_state from, enum ibv_qp_state to)
{
    struct wire_qp *qp;

    spin_lock(&hca->sq_lock);
    qp = hca->engine_qp ? hca->engine_qp : make(hca);
    if (!qp) {
        qp_set_error(hca->shared);
    } else if (to == IBV_QPS_RTR) {
        find_peer(qp);
        start_transport(qp);
    } else if (from == IBV_QPS_RTR) {
        struct responder kept = qp->transport.responder; /* the peer may have begun to send */

        start_transport(qp);
        qp->transport.responder = kept;
        qp->fetched = qp->completed = qp->transport.requester.current.index;
    }
    spin_unlock(&hca->sq_lock);
    if (qp && from == IBV_QPS_SQD) {
        epoch_enter();
        wire_qp_kick(hca, true);
        epoch_exit();
    }
}

static void free_wqes(struct wire_qp *qp)
{
    for (uint32_t i = qp->completed; i != qp->fetched; i++) {
        struct wire_slot *slot = &qp->slots[i % WIRE_SLOTS];

        if (slot->wqe && slot->last)
            free(slot->wqe);
    }
    while (qp->next_wqe) {
        struct wire_wqe *wqe = qp->next_wqe;

        qp->next_wqe = wqe->next;
        free(wqe);
    }
}

static void answer(struct wire_qp *qp);

void wire_qp_flush(struct hca_qp *hca)
{
    struct wire_qp *qp;

    spin_lock(&hca->sq_lock);
    qp = hca->engine_qp;
    if (qp) {
        epoch_enter();
        answer(qp);
        if (qp_state(hca) == IBV_QPS_ERR) {
            transport_stop(&qp->transport);
            transport_flush(&qp->transport);
        }
        epoch_exit();
        spin_lock(&list_lock);
        list_remove(qp, next, link);
        spin_unlock(&list_lock);
        hca->engine_qp = NULL;
        wire_peer_leave(qp);
        free_wqes(qp);
        free(qp);
    }
    spin_unlock(&hca->sq_lock);
}

/* ---- posting ---- */

static struct wire_wqe *copy_wqe(const struct send_wqe *send)
{
    struct wire_wqe *wqe = malloc(sizeof(*wqe) + send_wqe_extra(send));

    if (!wqe)
        return NULL;
    *wqe = (struct wire_wqe){ .bad = IBV_WC_SUCCESS };
    send_wqe_copy(&wqe->send, send, wqe->sge);
    for (uint32_t i = 0; i < send->num_sge; i++)
        wqe->length += send->sge[i].length;
    return wqe;
}

static enum ibv_wc_status check_wqe(const struct wire_qp *qp, const struct wire_wqe *wqe)
{
    const struct send_wqe *send = &wqe->send;
    bool atomic =
        send->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || send->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    struct mem_ref ref;

    for (uint32_t i = 0; i < send->num_sge; i++)
        if (!(send->flags & IBV_SEND_INLINE) && wqe->sge[i].length &&
            !mr_local(wqe->sge[i].lkey, qp->hca->pd->id, wqe->sge[i].addr, wqe->sge[i].length,
                      !work_reads_memory(send), &ref))
            return IBV_WC_LOC_PROT_ERR;
    return atomic && wqe->length != sizeof(uint64_t) ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS;
}

static void append(struct wire_qp *qp, const struct send_wqe *send)
{
    struct wire_wqe *wqe = copy_wqe(send);

    if (!wqe) {
        qp_complete_send(qp->hca, send, IBV_WC_GENERAL_ERR, 0);
        qp_set_error(qp->shared);
        return;
    }
    wqe->bad = check_wqe(qp, wqe);
    if (qp->hca->ibv.qp_type == IBV_QPT_UD &&
        (send->sgid_index >= wire_port.count ||
         !wire_port_address(&wire_port.gids[send->sgid_index], send->dgid.raw, &wqe->to)))
        wqe->to.any.sa_family = AF_UNSPEC;
    *qp->end = wqe;
    qp->end = &wqe->next;
}

void wire_qp_skip(struct wire_qp *qp)
{
    qp->next_wqe = qp->next_wqe->next;
    qp->next_offset = 0;
    if (!qp->next_wqe)
        qp->end = &qp->next_wqe;
}

bool wire_qp_fetch(struct wire_qp *qp)
{
    struct wire_wqe *wqe = qp->next_wqe;
    struct wire_slot *slot = &qp->slots[qp->fetched % WIRE_SLOTS];

    if (!wqe || qp->fetched - qp->completed == WIRE_SLOTS || qp_state(qp->hca) == IBV_QPS_SQD)
        return false;
    const struct send_wqe *send = &wqe->send;
    uint32_t left = wqe->length - qp->next_offset;
    bool in_parts = send->opcode == IBV_WR_RDMA_READ && left > WIRE_READ_BYTES;
    uint32_t length = in_parts ? WIRE_READ_BYTES : left;
    *slot = (struct wire_slot){
        .wqe = wqe,
        .offset = qp->next_offset,
        .last = length == left,
        .transport = work_request(send, wqe->bad ? IMPOSSIBLE : length),
    };
    slot->transport.data = slot->transport.route = (uintptr_t)wqe;
    slot->transport.fence &= !qp->next_offset;
    slot->transport.remote_address += qp->next_offset;
    if (send->opcode != IBV_WR_SEND_WITH_INV) /* there it is a key, in the host's byte order */
        slot->transport.immediate = be32toh(send->imm);
    qp->fetched++;
    qp->next_offset += length;
    if (slot->last || wqe->bad) {
        slot->last = true;
        wire_qp_skip(qp);
    }
    return true;
}

void wire_qp_complete(struct wire_qp *qp, struct wire_wqe *wqe, enum ibv_wc_status status)
{
    qp_complete_send(qp->hca, &wqe->send, status, wqe->length);
    free(wqe);
}

/* ---- sending ---- */

/* What UDP carries of a packet. */
static size_t frame_bytes(const struct packet *packet)
{
    return opcode_info(packet->opcode)->header_bytes + packet->payload.length +
           packet_pad_bytes(packet) + ICRC_BYTES;
}

static const uint8_t *payload_of(const struct wire_qp *qp, const struct packet *packet,
                                 const struct wire_wqe *wqe)
{
    uint32_t length = packet->payload.length;

    if (length < FILL_BYTES)
        return NULL;
    return wqe ? wire_memory_gathered(qp, wqe, packet->payload.offset, length)
               : wire_memory_responded(qp, &packet->payload);
}

static bool copy_payload(const struct wire_qp *qp, const struct packet *packet,
                         const struct wire_wqe *wqe, uint8_t *to)
{
    uint32_t length = packet->payload.length;

    return !length || (wqe ? wire_memory_gather(qp, wqe, packet->payload.offset, to, length)
                           : wire_memory_response(qp, &packet->payload, to));
}

struct filled_frame {
    const struct roce_flow *flow;
    uint8_t *frame;
    const uint8_t *payload;
    size_t header_bytes, bytes;
    uint32_t length;
    uint16_t identification;
};

static void fill(void *context)
{
    struct filled_frame *filled = context;

    filled->bytes = roce_datagram_fill(filled->flow, filled->frame, filled->header_bytes,
                                       filled->payload, filled->length, filled->identification);
}

/* The program has deregistered or unmapped the memory of a request or response. The peer drops what
 * is sent in place of the request; in place of the response it gets a NAK. */
static size_t give_up_frame(struct wire_qp *qp, const struct packet *packet, struct wire_wqe *wqe,
                            uint8_t *frame, uint32_t *length)
{
    struct packet nak = *packet;

    if (wqe) {
        wqe->unreadable = true;
        qp_set_error(qp->shared);
        memset(frame, 0xff, BTH_BYTES);
        memset(frame + BTH_BYTES, 0, frame_bytes(packet) - BTH_BYTES);
        return opcode_info(packet->opcode)->header_bytes;
    }
    work_fail_responder(qp->shared, TRANSPORT_OPERATIONAL_ERROR);
    qp->refused = true;
    nak.opcode = (packet->opcode & SERVICE_MASK) | OPCODE_ACKNOWLEDGE;
    nak.syndrome = NAK_OPERATIONAL;
    nak.payload.length = *length = 0;
    return packet_encode(&nak, frame);
}

/* Returns the length of the frame. */
static size_t fill_frame(struct wire_qp *qp, const struct packet *packet, struct wire_wqe *wqe,
                         uint8_t *frame, const struct roce_flow *flow, uint16_t identification)
{
    size_t headers = packet_encode(packet, frame);
    uint32_t length = packet->payload.length;
    const uint8_t *payload = payload_of(qp, packet, wqe);
    struct filled_frame filled = { flow, frame, payload, headers, 0, length, identification };

    if (payload && fault_survive(payload, length, fill, &filled))
        return filled.bytes;
    if (!copy_payload(qp, packet, wqe, frame + headers))
        headers = give_up_frame(qp, packet, wqe, frame, &length);
    return roce_datagram_seal(flow, frame, headers, length, identification);
}

static void add_frame(struct wire_batch *batch, struct wire_qp *qp, const struct packet *packet,
                      struct wire_wqe *wqe)
{
    bool datagram = qp->hca->ibv.qp_type == IBV_QPT_UD;
    const struct wire_gid *from = datagram ? &wire_port.gids[wqe->send.sgid_index] : qp->from;
    const union netif_address *to = datagram ? &wqe->to : &qp->to;
    struct roce_flow flow = { .source_port = ROCE_UDP_PORT };
    uint16_t identification;

    if (to->any.sa_family == AF_UNSPEC)
        return;
    uint8_t *frame =
        wire_batch_frame(batch, from, to, qp->path, frame_bytes(packet), &identification);
    if (!frame)
        return;
    traffic_add(&qp->shared->requests.xmit_packets, 1);
    traffic_add(&qp->shared->requests.xmit_bytes, frame_bytes(packet));
    memcpy(flow.source, from->raw, 16);
    memcpy(flow.destination, datagram ? wqe->send.dgid.raw : qp->peer_gid, 16);
    wire_batch_add(batch, fill_frame(qp, packet, wqe, frame, &flow, identification));
}

/* Keeps the average time between two acknowledgements that bring progress. */
static void note_progress(struct wire_qp *qp, uint64_t now)
{
    if (qp->waits_since)
        qp->ack_gap_ns += ((int64_t)(now - qp->waits_since) - (int64_t)qp->ack_gap_ns) / 8;
    qp->waits_since = now;
    qp->probe_ns = FIRST_PROBE_NS + 4 * qp->ack_gap_ns;
    qp->probed_psn = qp->transport.requester.unacknowledged;
}

/* The loss of the last packets of a burst goes unnoticed by the peer. The timeout of the program is
 * meant to notice that the peer is gone, and is too long to wait for: probe, less and less often.
 */
static void set_deadline(struct wire_qp *qp, uint64_t now)
{
    const struct requester *requester = &qp->transport.requester;

    qp->deadline = transport_deadline(&qp->transport);
    if (requester->timer == TIMER_ACK) {
        if (requester->unacknowledged != qp->probed_psn || !qp->waits_since)
            note_progress(qp, now);
        if (now + qp->probe_ns < qp->deadline)
            qp->deadline = now + qp->probe_ns;
    } else {
        qp->waits_since = 0;
    }
    if (qp->waits && now + FIRST_PROBE_NS < qp->deadline)
        qp->deadline = now + FIRST_PROBE_NS; /* look again, should nobody wake it */
    if (qp->deadline != TRANSPORT_NEVER)
        wire_service_timer(qp->deadline);
}

static void run_timer(struct wire_qp *qp, uint64_t now)
{
    if (transport_deadline(&qp->transport) <= now) {
        transport_timeout(&qp->transport, now);
        return;
    }
    if (qp->transport.requester.timer != TIMER_ACK || now - qp->waits_since < qp->probe_ns)
        return;
    qp->probe_ns *= 2;
    transport_probe(&qp->transport);
}

static void add_responses(struct wire_batch *batch, struct wire_qp *qp)
{
    struct packet packet;

    while (!qp->refused && transport_pull_response(&qp->transport, &packet))
        add_frame(batch, qp, &packet, NULL);
}

/* Sends what the peer waits for, before the QP is gone. */
static void answer(struct wire_qp *qp)
{
    struct wire_batch batch;

    wire_batch_begin(&batch);
    add_responses(&batch, qp);
    wire_batch_end(&batch);
}

/* Bytes on their way in either direction: requests, and what reads have asked for. */
static int64_t bytes_in_flight(struct wire_qp *qp)
{
    const struct requester *requester = &qp->transport.requester;
    int64_t bytes = (int64_t)requester->in_flight << qp->transport.mtu_shift;
    unsigned reads = requester->reads;

    for (uint32_t i = requester->oldest.index; reads && i != requester->current.index; i++) {
        const struct transport_wqe *wqe = &qp->slots[i % WIRE_SLOTS].transport;

        if (!requester_awaits_data(wqe))
            continue;
        bytes += wqe->length;
        reads--;
    }
    return bytes;
}

static void note_in_flight(struct wire_qp *qp, uint64_t now)
{
    uint64_t losses = qp->counters.rewinds - qp->counters.rnr_waits;

    wire_peer_note(qp, bytes_in_flight(qp), losses != qp->losses, now);
    if (unlikely(losses != qp->losses))
        wire_path_doubt(qp->path);
    qp->losses = losses;
}

static bool has_request(struct wire_qp *qp)
{
    return qp->next_wqe || qp->transport.requester.current.index != qp->fetched;
}

/* Whether the next packet belongs to a message of which more than `room` bytes are left. */
static bool next_exceeds(struct wire_qp *qp, int64_t room)
{
    const struct requester *requester = &qp->transport.requester;
    uint32_t sent = psn_distance(requester->current.psn, requester->next_psn);

    if (requester->current.index != qp->fetched)
        return qp->slots[requester->current.index % WIRE_SLOTS].transport.length -
                   ((int64_t)sent << qp->transport.mtu_shift) >
               room;
    return qp->next_wqe && qp->next_wqe->length > room;
}

/* A QP takes of the limit what makes full batches, and leaves the rest to messages that fit there:
 * a batch costs about as much with one packet as with many. False: there is no room for anything. */
static bool limit_requests(struct wire_qp *qp)
{
    struct transport_attributes *attributes = &qp->transport.attributes;
    int64_t left = wire_peer_room(qp) - bytes_in_flight(qp);
    uint32_t packets = left > 0 ? left >> qp->transport.mtu_shift : 0;
    uint32_t window;

    if (!qp->full_window)
        return false; /* the QP was never connected */
    if (packets >= attributes->ack_every || next_exceeds(qp, left))
        packets -= packets % attributes->ack_every;
    window = qp->transport.requester.in_flight + packets;
    attributes->window = window < qp->full_window ? window : qp->full_window;
    attributes->max_reads = left < WIRE_READ_BYTES ? qp->transport.requester.reads : qp->full_reads;
    return attributes->window;
}

/* A QP that the limit of its peer has stopped waits for the others. */
static void wait_for_room(struct wire_qp *qp)
{
    const struct transport_attributes *attributes = &qp->transport.attributes;

    if (qp->peer && has_request(qp) &&
        (attributes->window < qp->full_window || attributes->max_reads < qp->full_reads))
        wire_peer_wait(qp);
}

/* With the send queue's lock held, inside an epoch. The clock is read after the packets have left,
 * while they are on their way. */
static void pump(struct wire_qp *qp)
{
    struct wire_batch batch;
    struct packet packet;
    bool may_send = limit_requests(qp), sends = false;
    uint64_t now;

    wire_batch_begin(&batch);
    while (may_send && transport_pull_request(&qp->transport, 0, &packet)) {
        sends = true;
        add_frame(&batch, qp, &packet, (struct wire_wqe *)(uintptr_t)packet.route);
        if (qp->sent)
            wire_qp_complete(qp, qp->sent,
                             qp->sent->unreadable ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS);
        qp->sent = NULL;
        /* Behind the first request, the shorter acknowledgement fits into the same datagram, and the
         * peer takes it first. */
        add_responses(&batch, qp);
    }
    add_responses(&batch, qp);
    wire_batch_end(&batch);
    now = now_ns();
    if (sends)
        transport_sent(&qp->transport, now);
    note_in_flight(qp, now);
    wait_for_room(qp);
    set_deadline(qp, now);
}

void wire_qp_post(struct hca_qp *hca, struct send_wqe *send)
{
    bool sends = qp_state(hca) == IBV_QPS_RTS || qp_state(hca) == IBV_QPS_SQD;
    struct wire_qp *qp = hca->engine_qp;

    /* If earlier WQEs are still to be flushed, this one joins them. */
    if (!qp) {
        qp_complete_send(hca, send, IBV_WC_WR_FLUSH_ERR, 0);
        return;
    }
    if (sends && (send->opcode == IBV_WR_BIND_MW || send->opcode == IBV_WR_LOCAL_INV)) {
        enum ibv_wc_status status =
            send->opcode == IBV_WR_BIND_MW ? mw_bind(hca, send) : mw_invalidate(hca, send);
        if (status != IBV_WC_SUCCESS)
            qp_set_error(hca->shared);
        qp_complete_send(hca, send, status, 0);
        return;
    }
    append(qp, send);
    epoch_enter();
    pump(qp);
    epoch_exit();
}

/* ---- receiving, and timers ---- */

/* IBA volume 1, 9.6.1.5: a connected QP takes packets from its peer only. */
static bool comes_from_peer(const struct wire_qp *qp, const struct wire_arrival *arrival)
{
    if (qp->hca->ibv.qp_type == IBV_QPT_UD)
        return true;
    return arrival->to == qp->from &&
           !memcmp(arrival->flow.source, qp->peer_gid, sizeof(qp->peer_gid));
}

void wire_qp_receive_begin(struct hca_qp *hca)
{
    spin_lock(&hca->sq_lock);
}

void wire_qp_receive(struct hca_qp *hca, const struct wire_arrival *arrival)
{
    struct wire_qp *qp = hca->engine_qp;

    if (!qp || !responder_is_ready(hca->shared) || !comes_from_peer(qp, arrival))
        return;
    qp->arrival = arrival;
    traffic_add(&hca->shared->requests.rcv_packets, 1);
    traffic_add(&hca->shared->requests.rcv_bytes, frame_bytes(&arrival->packet));
    transport_receive(&qp->transport, arrival->time, &arrival->packet);
    qp->arrival = NULL;
    if (unlikely(qp->transport.in_error))
        pump(qp); /* the NAK, before another thread flushes the QP */
}

void wire_qp_receive_end(struct hca_qp *hca, uint64_t now)
{
    struct wire_qp *qp = hca->engine_qp;
    struct wire_peer *peer = NULL;

    if (qp && wire_peer_has_waiting(qp->peer)) {
        note_in_flight(qp, now);
        peer = qp->peer;
    }
    spin_unlock(&hca->sq_lock);
    wire_peer_wake(peer);
}

bool wire_qp_kick(struct hca_qp *hca, bool wait)
{
    if (!spin_trylock(&hca->sq_lock)) {
        if (!wait)
            return false;
        spin_lock(&hca->sq_lock);
    }
    if (hca->engine_qp)
        pump(hca->engine_qp);
    spin_unlock(&hca->sq_lock);
    return true;
}

void wire_qp_forget(void)
{
    list_lock = (struct spinlock){ 0 };
    list = NULL;
}

#define TIMER_BATCH 64
#define BUSY_NS     500000 /* another thread uses the QP: look at it again soon */

uint64_t wire_qp_timers(uint64_t now)
{
    struct hca_qp *due[TIMER_BATCH];
    uint64_t next = TRANSPORT_NEVER;
    unsigned count = 0;

    epoch_enter();
    spin_lock(&list_lock);
    for (struct wire_qp *qp = list; qp && count < TIMER_BATCH; qp = qp->next) {
        if (!spin_trylock(&qp->hca->sq_lock)) {
            next = now + BUSY_NS < next ? now + BUSY_NS : next;
            continue;
        }
        if (qp->deadline <= now)
            due[count++] = qp->hca;
        else
            next = qp->deadline < next ? qp->deadline : next;
        if (qp->deadline > now)
            spin_unlock(&qp->hca->sq_lock);
    }
    spin_unlock(&list_lock);
    for (unsigned i = 0; i < count; i++) {
        struct wire_qp *qp = due[i]->engine_qp;

        run_timer(qp, now);
        pump(qp);
        next = qp->deadline < next ? qp->deadline : next;
        spin_unlock(&due[i]->sq_lock);
    }
    epoch_exit();
    return count == TIMER_BATCH ? now : next;
}
