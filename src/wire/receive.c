/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/mad.h"

#include "hca/epoch.h"
#include "hca/proc.h"
#include "hca/qp.h"
#include "hca/table.h"
#include "util/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define MESSAGES      8
#define MESSAGE_BYTES 65536
#define LONG_DATAGRAM 8192
#define TOUCHED       64
#define QUIET_EVERY   16
#define HOLD_BYTES    (100 << 10) /* a peer sends more than twice as much without an answer */
#define HOLD_POLLS    2

/* Guarded by receive_lock: one thread receives at a time, so that packets stay in order. */
static struct spinlock receive_lock;
static struct receive_message {
    uint8_t bytes[MESSAGE_BYTES];
    union netif_address from;
    char control[CMSG_SPACE(sizeof(int))];
    struct iovec iov;
} * buffers;
static struct mmsghdr messages[MESSAGES];
static unsigned expected = 1;        /* datagrams at once */
static unsigned busy_source, rounds; /* the one that had something last */
/* Numbers of QPs that may have something to send now; they may be destroyed meanwhile. */
static uint32_t touched[TOUCHED];
static atomic_uint touched_count;
static atomic_uint held_bytes, held_polls; /* since the last answer, and since the last datagram */

/* ---- one packet ---- */

static void kick_touched(void)
{
    unsigned count = load_relaxed(&touched_count);
    struct wire_batch responses;

    wire_batch_begin(&responses);
    for (unsigned i = 0; i < count; i++) {
        struct hca_qp *qp = qp_by_number(touched[i]);

        if (qp)
            wire_qp_kick(qp, &responses);
    }
    wire_batch_end(&responses);
    store_relaxed(&touched_count, 0);
    store_relaxed(&held_bytes, 0);
}

void wire_receive_touch(uint32_t qpn)
{
    unsigned count = load_relaxed(&touched_count);

    for (unsigned i = 0; i < count; i++)
        if (touched[i] == qpn)
            return;
    if (count == TOUCHED) {
        kick_touched();
        count = 0;
    }
    touched[count] = qpn;
    store_relaxed(&touched_count, count + 1);
}

static void to_own_qp(struct wire_arrival *arrival)
{
    struct hca_qp *qp = qp_by_number(arrival->packet.destination_qpn);

    if (!qp)
        return;
    wire_qp_receive(qp, arrival);
    wire_receive_touch(arrival->packet.destination_qpn);
}

static void deliver(struct wire_arrival *arrival, const uint8_t *bytes, size_t length,
                    uint16_t identification)
{
    const char *wrong =
        roce_datagram_decode(&arrival->flow, bytes, length, identification, &arrival->packet);
    struct shared_qp *qp;

    if (wrong) {
        log_debug("wire: dropped a packet: %s", wrong);
        return;
    }
    if (unlikely(arrival->packet.destination_qpn == WIRE_QP1)) {
        wire_mad_receive(arrival, bytes, length);
        return;
    }
    qp = shared_qp_find(arrival->packet.destination_qpn);
    if (!qp || qp->proc >= MAX_PROCS)
        return;
    if (qp->proc == proc_self)
        to_own_qp(arrival);
    else
        wire_forward_send(qp->proc, arrival->to - wire_port.gids, &arrival->flow, bytes, length);
}

/* ---- datagrams ---- */

static void set_source(struct roce_flow *flow, const union netif_address *from)
{
    if (from->any.sa_family == AF_INET6) {
        memcpy(flow->source, &from->v6.sin6_addr, 16);
        flow->source_port = ntohs(from->v6.sin6_port);
        return;
    }
    memcpy(flow->source, ROCE_IPV4_PREFIX, 12);
    memcpy(flow->source + 12, &from->v4.sin_addr, 4);
    flow->source_port = ntohs(from->v4.sin_port);
}

/* The length of the packets from which the kernel made one datagram, or `length`. */
static size_t segment_bytes(struct msghdr *message, size_t length)
{
    int segment;

    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header;
         header = CMSG_NXTHDR(message, header))
        if (header->cmsg_level == IPPROTO_UDP && header->cmsg_type == UDP_GRO) {
            memcpy(&segment, CMSG_DATA(header), sizeof(segment));
            return segment > 0 ? (size_t)segment : length;
        }
    return length;
}

static bool is_response(const uint8_t *frame)
{
    const struct opcode_info *info = opcode_info(frame[0]);

    return info && info->flags & OPCODE_RESPONSE;
}

/* The responses of a datagram, or all the others. Returns the number of its packets. */
static unsigned take_packets(struct wire_arrival *arrival, const uint8_t *bytes, size_t length,
                             size_t segment, bool responses)
{
    unsigned count = 0;

    for (size_t at = 0; at < length; at += segment, count++) {
        size_t part = length - at < segment ? length - at : segment;

        if (is_response(bytes + at) != responses)
            continue;
        if (unlikely(wire_injects))
            wire_inject(arrival, bytes + at, part, count, deliver);
        else
            deliver(arrival, bytes + at, part, count);
    }
    return count;
}

/* An acknowledgement may stand behind the answer to what it acknowledges (pump() in qp.c). Programs
 * rely on the completion of a request before the answer's. */
static unsigned take_datagram(const struct wire_gid *to, struct msghdr *message, size_t length)
{
    const uint8_t *bytes = message->msg_iov->iov_base;
    size_t segment = segment_bytes(message, length);
    struct wire_arrival arrival = { .time = now_ns(), .to = to };

    set_source(&arrival.flow, message->msg_name);
    memcpy(arrival.flow.destination, to->raw, 16);
    take_packets(&arrival, bytes, length, segment, true);
    return take_packets(&arrival, bytes, length, segment, false);
}

static bool make_buffers(void)
{
    if (buffers)
        return true;
    buffers = calloc(MESSAGES, sizeof(*buffers));
    for (int i = 0; buffers && i < MESSAGES; i++) {
        buffers[i].iov = (struct iovec){ buffers[i].bytes, MESSAGE_BYTES };
        messages[i].msg_hdr = (struct msghdr){ .msg_name = &buffers[i].from,
                                               .msg_iov = &buffers[i].iov,
                                               .msg_iovlen = 1,
                                               .msg_control = buffers[i].control };
    }
    return buffers;
}

/* The kernel changes these two in the messages that it uses. */
static void reset_lengths(void)
{
    for (unsigned i = 0; i < expected; i++) {
        messages[i].msg_hdr.msg_namelen = sizeof(buffers[i].from);
        messages[i].msg_hdr.msg_controllen = sizeof(buffers[i].control);
    }
}

/* To look for a datagram that is not there takes time. After a long one, the peer waits for its
 * acknowledgement while we would take the next. */
static void expect(int got)
{
    if (got < 1 || messages[got - 1].msg_len > LONG_DATAGRAM)
        expected = 1;
    else if ((unsigned)got < expected)
        expected = got;
    else
        expected = 2 * expected < MESSAGES ? 2 * expected : MESSAGES;
}

static void note_long_datagrams(int got)
{
    for (int i = 0; i < got; i++) {
        if (messages[i].msg_len <= LONG_DATAGRAM)
            continue;
        store_relaxed(&held_bytes, load_relaxed(&held_bytes) + messages[i].msg_len);
        store_relaxed(&held_polls, 0);
    }
}

static unsigned take_from_socket(const struct wire_gid *gid, int fd)
{
    unsigned count = 0;
    int got;

    reset_lengths();
    got = recvmmsg(fd, messages, expected, MSG_DONTWAIT, NULL);
    note_long_datagrams(got);
    for (int i = 0; i < got; i++)
        count += take_datagram(gid, &messages[i].msg_hdr, messages[i].msg_len);
    expect(got);
    return count;
}

/* Other processes of this host have checked these. */
static unsigned take_forwarded(void)
{
    struct wire_arrival arrival;
    const uint8_t *frame;
    unsigned count = 0, gid;
    size_t length;

    while (count < MESSAGES * 8 && (length = wire_forward_take(buffers[0].bytes, MESSAGE_BYTES,
                                                               &gid, &arrival.flow, &frame))) {
        arrival.time = now_ns();
        arrival.to = &wire_port.gids[gid];
        count++;
        if (packet_decode(&arrival.packet, frame, length - ICRC_BYTES))
            continue;
        if (arrival.packet.destination_qpn == WIRE_QP1)
            wire_mad_receive_forwarded(&arrival);
        else
            to_own_qp(&arrival);
    }
    return count;
}

void wire_receive_forget(void)
{
    receive_lock = (struct spinlock){ 0 };
    store_relaxed(&touched_count, 0);
}

static unsigned take_from(unsigned source)
{
    unsigned gids = wire_port.count, count;

    if (source < gids)
        count = take_from_socket(&wire_port.gids[source], wire_port.gids[source].fd);
    else if (source < 2 * gids)
        count =
            take_from_socket(&wire_port.gids[source - gids], wire_port.gids[source - gids].near_fd);
    else
        count = take_forwarded();
    if (count)
        busy_source = source;
    return count;
}

/* A system call that finds nothing takes a fraction of a microsecond, and a port has several
 * sockets: most of the time, look only where something was found before. */
static unsigned take_from_sources(bool all)
{
    unsigned sources = 2 * wire_port.count + 1, count = 0;

    if (!all && rounds++ % QUIET_EVERY && busy_source < sources)
        return take_from(busy_source);
    for (unsigned i = 0; i < sources; i++)
        count += take_from(i);
    return count;
}

unsigned wire_receive(bool all)
{
    unsigned count = 0;

    if (!spin_trylock(&receive_lock))
        return 0;
    if (make_buffers()) {
        epoch_enter();
        count = take_from_sources(all);
        epoch_exit();
    }
    spin_unlock(&receive_lock);
    return count;
}

bool wire_receive_owes(void)
{
    return load_relaxed(&touched_count);
}

bool wire_receive_expects_more(void)
{
    unsigned bytes = load_relaxed(&held_bytes), polls = load_relaxed(&held_polls);

    store_relaxed(&held_polls, polls + 1);
    return bytes && bytes < HOLD_BYTES && polls < HOLD_POLLS;
}

void wire_receive_answer(void)
{
    if (!wire_receive_owes() || !spin_trylock(&receive_lock))
        return;
    epoch_enter();
    kick_touched();
    epoch_exit();
    spin_unlock(&receive_lock);
}
