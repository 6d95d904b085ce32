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
#include <sys/syscall.h>
#include <unistd.h>

#define MESSAGES      8
#define MESSAGE_BYTES 65536
#define LONG_DATAGRAM 8192
#define TOUCHED       64
#define OTHERS_EVERY  16
#define LATELY        4096 /* rounds */
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
static unsigned busy_source;         /* the one that had something last */
static unsigned rounds, last_found[2 * HCA_GIDS + 1]; /* the round in which each had something */
/* Numbers of QPs that may have something to send now; they may be destroyed meanwhile. */
static uint32_t touched[TOUCHED];
static atomic_uint touched_count;
static atomic_uint held_bytes, held_polls; /* since the last answer, and since the last datagram */

/* ---- one packet ---- */

static void kick_touched(void)
{
    unsigned count = load_relaxed(&touched_count);

    for (unsigned i = 0; i < count; i++) {
        struct hca_qp *qp = qp_by_number(touched[i]);

        if (qp)
            wire_qp_kick(qp);
    }
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

/* Packets for one other process that lie behind each other in a datagram: its socket takes few
 * messages, so they go in one. */
static struct {
    unsigned proc;
    const uint8_t *bytes;
    size_t length, segment;
} foreign;

static void pass_on(const struct wire_arrival *arrival)
{
    if (foreign.length)
        wire_forward_send(foreign.proc, arrival->to - wire_port.gids, &arrival->flow, foreign.bytes,
                          foreign.length, foreign.segment);
    foreign.length = 0;
}

static void to_other_process(unsigned proc, const struct wire_arrival *arrival,
                             const uint8_t *bytes, size_t length)
{
    bool joins = foreign.length && proc == foreign.proc &&
                 bytes == foreign.bytes + foreign.length && length <= foreign.segment &&
                 foreign.length % foreign.segment == 0 &&
                 foreign.length + length <= MESSAGE_BYTES - WIRE_FORWARD_HEAD;

    if (!joins) {
        pass_on(arrival);
        foreign.proc = proc;
        foreign.bytes = bytes;
        foreign.segment = length;
    }
    foreign.length += length;
    if (unlikely(wire_injects))
        pass_on(arrival); /* `bytes` may be a copy */
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
        to_other_process(qp->proc, arrival, bytes, length);
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
    unsigned count;

    set_source(&arrival.flow, message->msg_name);
    memcpy(arrival.flow.destination, to->raw, 16);
    take_packets(&arrival, bytes, length, segment, true);
    count = take_packets(&arrival, bytes, length, segment, false);
    pass_on(&arrival);
    return count;
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

/* Not libc's functions: a thread that is cancelled there would keep its locks, and to allow that takes
 * longer than what they add to the system calls. For one datagram, recvmsg() is faster. */
static int receive_messages(int fd)
{
    ssize_t length;

    reset_lengths();
    if (expected > 1)
        return syscall(SYS_recvmmsg, fd, messages, expected, MSG_DONTWAIT, NULL);
    length = syscall(SYS_recvmsg, fd, &messages[0].msg_hdr, MSG_DONTWAIT);
    messages[0].msg_len = length;
    return length < 0 ? -1 : 1;
}

static unsigned take_from_socket(const struct wire_gid *gid, int fd)
{
    unsigned count = 0;
    int got = receive_messages(fd);

    note_long_datagrams(got);
    for (int i = 0; i < got; i++)
        count += take_datagram(gid, &messages[i].msg_hdr, messages[i].msg_len);
    expect(got);
    return count;
}

static void take_forwarded_packet(struct wire_arrival *arrival, const uint8_t *frame, size_t length)
{
    if (length < BTH_BYTES + ICRC_BYTES ||
        packet_decode(&arrival->packet, frame, length - ICRC_BYTES))
        return;
    if (arrival->packet.destination_qpn == WIRE_QP1)
        wire_mad_receive_forwarded(arrival);
    else
        to_own_qp(arrival);
}

/* Other processes of this host have checked these. */
static unsigned take_forwarded(void)
{
    struct wire_arrival arrival;
    const uint8_t *frames;
    unsigned count = 0, gid;
    size_t length, segment;

    while (count < MESSAGES * 8 &&
           (length = wire_forward_take(buffers[0].bytes, MESSAGE_BYTES, &gid, &arrival.flow,
                                       &frames, &segment))) {
        arrival.time = now_ns();
        arrival.to = &wire_port.gids[gid];
        for (size_t at = 0; at < length; at += segment, count++)
            take_forwarded_packet(&arrival, frames + at,
                                  length - at < segment ? length - at : segment);
    }
    return count;
}

void wire_receive_forget(void)
{
    receive_lock = (struct spinlock){ 0 };
    store_relaxed(&touched_count, 0);
    foreign.length = 0;
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
    if (count) {
        busy_source = source;
        last_found[source] = rounds;
    }
    return count;
}

/* A system call that finds nothing takes a fraction of a microsecond, and a port has several sockets:
 * most of the time, look only where something was found last; now and then where something was found
 * lately, and into one of the others. */
static unsigned take_from_sources(bool all)
{
    unsigned sources = 2 * wire_port.count + 1, busy = busy_source, count = 0;
    unsigned other = ++rounds / OTHERS_EVERY % sources;

    if (!all && busy < sources && rounds % OTHERS_EVERY)
        return take_from(busy);
    for (unsigned i = 0; i < sources; i++)
        if (all || i == busy || i == other || rounds - last_found[i] < LATELY)
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
