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
#define JUST_NOW      64
#define GUESSES       64
#define SHORT_BYTES   256 /* of a datagram */
#define SHORT_ONES    64  /* in a row: the next one is likely to be another */
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
static unsigned expected = 1; /* datagrams at once */
static unsigned busy_source;  /* the one that had something last */
static unsigned rounds, last_found[2 * HCA_GIDS + WIRE_PATHS + 1]; /* when each had something */
/* Numbers of QPs that may have something to send now; they may be destroyed meanwhile. */
static uint32_t touched[TOUCHED];
static atomic_uint touched_count;
static atomic_uint held_bytes, held_polls; /* since the last answer, and since the last datagram */

/* ---- one packet ---- */

static void kick_touched(bool wait)
{
    unsigned count = load_relaxed(&touched_count), left = 0;

    for (unsigned i = 0; i < count; i++) {
        struct hca_qp *qp = qp_by_number(touched[i]);

        if (qp && !wire_qp_kick(qp, wait))
            touched[left++] = touched[i];
    }
    store_relaxed(&touched_count, left);
    store_relaxed(&held_bytes, 0);
}

void wire_receive_touch(uint32_t qpn)
{
    unsigned count = load_relaxed(&touched_count);

    for (unsigned i = 0; i < count; i++)
        if (touched[i] == qpn)
            return;
    if (count == TOUCHED) {
        kick_touched(true);
        count = 0;
    }
    touched[count] = qpn;
    store_relaxed(&touched_count, count + 1);
}

/* The QP that takes packets. Those of a datagram are mostly for one. */
static struct hca_qp *receiver;

static void end_receiver(const struct wire_arrival *arrival)
{
    struct hca_qp *qp = receiver;

    if (!qp)
        return;
    receiver = NULL;
    wire_qp_receive_end(qp, arrival->time);
    wire_receive_touch(qp->ibv.qp_num);
}

static void to_own_qp(struct wire_arrival *arrival)
{
    struct hca_qp *qp = qp_by_number(arrival->packet.destination_qpn);

    if (qp != receiver) {
        end_receiver(arrival);
        if (!qp)
            return;
        wire_qp_receive_begin(qp);
        receiver = qp;
    }
    if (qp)
        wire_qp_receive(qp, arrival);
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
                    uint16_t index)
{
    uint16_t identification = arrival->identification + index;
    const char *wrong;
    struct shared_qp *qp;

    if (arrival->checked)
        wrong = packet_decode(&arrival->packet, bytes, length - ICRC_BYTES);
    else
        wrong = roce_datagram_decode(&arrival->flow, bytes, length, &identification,
                                     &arrival->packet);
    if (wrong) {
        log_debug("wire: dropped a packet: %s", wrong);
        return;
    }
    arrival->identification = identification - index;
    if (unlikely(arrival->packet.destination_qpn == WIRE_QP1)) {
        end_receiver(arrival);
        wire_mad_receive(arrival, bytes, length);
        return;
    }
    qp = shared_qp_find(arrival->packet.destination_qpn);
    if (!qp || qp->proc >= MAX_PROCS)
        return;
    if (qp->proc == proc_self) {
        to_own_qp(arrival);
        return;
    }
    end_receiver(arrival);
    to_other_process(qp->proc, arrival, bytes, length);
}

/* ---- datagrams ---- */

/* A socket that datagrams arrive at. */
struct source {
    const struct wire_gid *gid;
    int fd;
    bool near;
    struct wire_path *path; /* NULL: from anywhere */
};

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

/* To solve for the identification of a packet takes longer than to process it. Senders count them up by
 * one with each datagram, or not at all: guess that a host goes on as it did. */
static struct identifications {
    uint16_t last, step;
} known_identifications[GUESSES];

static struct identifications *identifications_of(const struct roce_flow *flow)
{
    return &known_identifications[(flow->source[15] ^ flow->source_port) % GUESSES];
}

static void note_identification(struct identifications *known, uint16_t found)
{
    known->step = found - known->last;
    known->last = found;
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
 * rely on the completion of a request before the answer's. `segment` is the length of each packet
 * but the last, 0: unknown. */
static unsigned take_datagram(const struct source *source, const union netif_address *from,
                              const uint8_t *bytes, size_t length, size_t segment)
{
    struct wire_arrival arrival = { .time = now_ns(), .to = source->gid };
    struct identifications *known;
    uint16_t guess;
    unsigned count;

    set_source(&arrival.flow, from);
    if (source->near)
        arrival.flow.source_port = ROCE_UDP_PORT; /* for which the ICRC is made */
    memcpy(arrival.flow.destination, source->gid->raw, 16);
    known = identifications_of(&arrival.flow);
    arrival.identification = guess = known->last + known->step;
    if (!segment) {
        segment = roce_datagram_segment(&arrival.flow, bytes, length, &arrival.identification);
        if (!segment)
            return 0;
        arrival.checked = true;
    }
    take_packets(&arrival, bytes, length, segment, true);
    count = take_packets(&arrival, bytes, length, segment, false);
    end_receiver(&arrival);
    if (source->path && length <= SHORT_BYTES && arrival.identification == guess)
        source->path->short_ones++;
    else if (source->path)
        source->path->short_ones = 0;
    note_identification(known, arrival.identification);
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

static void note_length(size_t length)
{
    if (length <= LONG_DATAGRAM)
        return;
    store_relaxed(&held_bytes, load_relaxed(&held_bytes) + length);
    store_relaxed(&held_polls, 0);
}

/* The peer of a connected socket need not be asked for. */
static void ask_for_senders(bool asked)
{
    for (unsigned i = 0; i < expected; i++)
        messages[i].msg_hdr.msg_name = asked ? &buffers[i].from : NULL;
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

/* From a peer that has sent one short datagram at a time. To be told where its packets end takes
 * longer than to find that out. */
static unsigned take_short_one(const struct source *source)
{
    struct wire_path *path = source->path;
    uint8_t *bytes = buffers[0].bytes;
    ssize_t length =
        syscall(SYS_recvfrom, source->fd, bytes, MESSAGE_BYTES, MSG_DONTWAIT, NULL, NULL);
    bool another = path->found_one;
    unsigned count;

    path->found_one = length >= 0;
    if (length < 0)
        return 0;
    note_length(length);
    count = take_datagram(source, &path->to, bytes, length, 0);
    if (another || !count)
        path->short_ones = 0;
    return count;
}

static unsigned take_from_socket(const struct source *source)
{
    struct wire_path *path = source->path;
    unsigned count = 0;
    int got;

    if (path && path->short_ones >= SHORT_ONES && !path->may_hold_others && !wire_injects)
        return take_short_one(source);
    ask_for_senders(!path || path->may_hold_others);
    got = receive_messages(source->fd);
    if (path && got < 0)
        path->may_hold_others = false;
    for (int i = 0; i < got; i++) {
        struct msghdr *message = &messages[i].msg_hdr;
        size_t length = messages[i].msg_len;

        note_length(length);
        count += take_datagram(source, message->msg_name ? message->msg_name : &path->to,
                               buffers[i].bytes, length, segment_bytes(message, length));
    }
    if (path && got > 1)
        path->short_ones = 0;
    expect(got);
    return count;
}

static void take_forwarded_packet(struct wire_arrival *arrival, const uint8_t *frame, size_t length)
{
    if (length < BTH_BYTES + ICRC_BYTES ||
        packet_decode(&arrival->packet, frame, length - ICRC_BYTES))
        return;
    if (arrival->packet.destination_qpn != WIRE_QP1) {
        to_own_qp(arrival);
        return;
    }
    end_receiver(arrival);
    wire_mad_receive_forwarded(arrival);
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
        end_receiver(&arrival);
    }
    return count;
}

void wire_receive_forget(void)
{
    receive_lock = (struct spinlock){ 0 };
    receiver = NULL;
    store_relaxed(&touched_count, 0);
    foreign.length = 0;
}

/* Sockets are numbered: those of the GIDs, near ones, paths. The last source are packets from other
 * processes. */
static struct source source_at(unsigned index)
{
    unsigned gids = wire_port.count;

    if (index < gids)
        return (struct source){ &wire_port.gids[index], wire_port.gids[index].fd, false, NULL };
    if (index < 2 * gids)
        return (struct source){ &wire_port.gids[index - gids], wire_port.gids[index - gids].near_fd,
                                true, NULL };
    struct wire_path *path = &wire_paths[index - 2 * gids];
    return (struct source){ path->from, path->fd,
                            wire_port_source(path->from, &path->to) != path->from->fd, path };
}

static unsigned take_from(unsigned index, unsigned sources)
{
    unsigned count;

    if (index == sources - 1) {
        count = take_forwarded();
    } else {
        struct source source = source_at(index);

        count = take_from_socket(&source);
    }
    if (count) {
        busy_source = index;
        last_found[index] = rounds;
    }
    return count;
}

static unsigned next_of(unsigned index, unsigned sources)
{
    return index + 1 < sources ? index + 1 : 0;
}

/* A system call that finds nothing takes a fraction of a microsecond, and a port has several sockets:
 * most of the time, look only where something was found last, and then where something was found just
 * before; now and then where something was found lately, and into one of the others. */
static unsigned take_from_sources(bool all)
{
    unsigned sources = 2 * wire_port.count + load_acquire(&wire_path_count) + 1, count = 0;

    rounds++;
    if (busy_source >= sources)
        busy_source = 0;
    if (!all && rounds % OTHERS_EVERY) {
        count = take_from(busy_source, sources);
        for (unsigned i = next_of(busy_source, sources); !count && i != busy_source;
             i = next_of(i, sources))
            if (rounds - last_found[i] < JUST_NOW) {
                busy_source = i;
                break;
            }
        return count;
    }
    for (unsigned i = 0, busy = busy_source, other = rounds / OTHERS_EVERY % sources; i < sources;
         i++)
        if (all || i == busy || i == other || rounds - last_found[i] < LATELY)
            count += take_from(i, sources);
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

bool wire_receive_is_busy(void)
{
    return load_relaxed(&receive_lock.held);
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

void wire_receive_answer(bool wait)
{
    if (!wire_receive_owes() || !spin_trylock(&receive_lock))
        return;
    epoch_enter();
    kick_touched(wait);
    epoch_exit();
    spin_unlock(&receive_lock);
}
