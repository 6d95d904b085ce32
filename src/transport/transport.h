/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TRANSPORT_TRANSPORT_H
#define TRANSPORT_TRANSPORT_H

/* The InfiniBand transport of one queue pair, as three state machines: a requester that turns work
 * requests into packets, a responder that executes requests, a completer that processes responses.
 * They know no clock, no wire and no memory. Their driver passes the time in, pulls packets when it
 * can send, passes received packets in, and accesses queues and memory in its operations.
 *
 *      transport_pull_request()   ─►  a packet, or none
 *      transport_pull_response()  ─►  a packet, or none
 *      transport_receive()        ─►  operations are called
 *      transport_timeout()        at transport_deadline()
 *
 * There may be something to pull after transport_receive(), transport_timeout() and posting a work
 * request. Packets of one QP must be sent in the order in which they are pulled. Time is any
 * nanosecond count that never decreases. Two threads must not use one QP at once, and operations
 * must not call back into it. */

#include "transport/packet.h"
#include "transport/requester.h"
#include "transport/responder.h"

#define TRANSPORT_MAX_MESSAGE_BYTES 0x80000000u
#define TRANSPORT_RETRY_FOREVER     7 /* as rnr_retry_count */
#define TRANSPORT_NEVER             UINT64_MAX

enum transport_operation {
    TRANSPORT_SEND,
    TRANSPORT_SEND_IMMEDIATE,
    TRANSPORT_SEND_INVALIDATE,
    TRANSPORT_WRITE,
    TRANSPORT_WRITE_IMMEDIATE,
    TRANSPORT_READ,
    TRANSPORT_COMPARE_SWAP,
    TRANSPORT_FETCH_ADD,
};

/* A work request as the requester sees it. The service must support its operation. */
struct transport_wqe {
    enum transport_operation operation;
    bool fence;
    bool solicited;
    uint32_t length; /* of an atomic: 8 */
    uint64_t data;   /* source of its packets' payload */
    uint64_t remote_address;
    uint32_t remote_key;
    uint32_t immediate; /* or the key to invalidate */
    uint64_t swap_or_add;
    uint64_t compare;
    uint32_t remote_srq; /* XRC */
    uint32_t remote_qpn; /* UD, with qkey and route */
    uint32_t qkey;
    uint64_t route;
};

enum transport_access {
    TRANSPORT_ACCESS_WRITE,
    TRANSPORT_ACCESS_READ,
    TRANSPORT_ACCESS_ATOMIC,
};

struct transport_qp;

/* What the driver provides. It embeds the QP in an object of its own and finds that by
 * container_of(). Operations of the responder return TRANSPORT_SUCCESS, or the error for the
 * NAK. */
struct transport_ops {
    /* Work request number `index`, or NULL if it is not posted yet. Numbers count from 0 and wrap.
     * A work request stays available until it is completed. */
    const struct transport_wqe *(*wqe_at)(struct transport_qp *qp, uint32_t index);
    /* Called once for each work request, in order. */
    void (*complete)(struct transport_qp *qp, uint32_t index, enum transport_status status);
    /* Response data for the oldest work request. False: its buffers cannot be written. */
    bool (*place_read)(struct transport_qp *qp, uint32_t index, uint32_t offset,
                       const struct packet_payload *payload);
    bool (*place_atomic)(struct transport_qp *qp, uint32_t index, uint64_t original);

    /* Takes a receive for the message of this packet, or returns TRANSPORT_NOT_READY. The receive
     * stays taken until receive_end(): after a UC message is cut off, the next one uses it. */
    enum transport_status (*receive_begin)(struct transport_qp *qp, const struct packet *packet);
    /* Places bytes of a SEND in the receive that was taken; TRANSPORT_LOCAL_LENGTH if too short. */
    enum transport_status (*receive_place)(struct transport_qp *qp, uint32_t offset,
                                           const struct packet_payload *payload);
    /* The message is complete. Its last packet has immediate data and the solicited flag. */
    void (*receive_end)(struct transport_qp *qp, const struct packet *last, uint32_t length);
    enum transport_status (*invalidate)(struct transport_qp *qp, uint32_t key);

    /* Checks an access by the peer. `region` identifies the memory in later calls. */
    enum transport_status (*check_remote)(struct transport_qp *qp, enum transport_access access,
                                          uint32_t key, uint64_t address, uint32_t length,
                                          uint64_t *region);
    enum transport_status (*place_write)(struct transport_qp *qp, uint64_t region, uint64_t address,
                                         const struct packet_payload *payload);
    enum transport_status (*atomic)(struct transport_qp *qp, uint64_t region,
                                    const struct packet *request, uint64_t *original);

    /* The QP has entered the error state. Called once. */
    void (*failed)(struct transport_qp *qp, enum transport_status why);
    /* A machine enters a state. May be NULL. */
    void (*trace)(struct transport_qp *qp, const char *machine, const char *state);
};

struct transport_attributes {
    enum transport_service service;
    uint32_t local_qpn;
    uint32_t remote_qpn; /* of a connected QP */
    uint16_t pkey;
    uint32_t qkey;        /* of a UD QP */
    uint32_t path_mtu;    /* bytes; a power of two */
    uint32_t send_psn;    /* of the first request */
    uint32_t receive_psn; /* of the first expected request */

    uint32_t window;     /* request packets that may be unacknowledged; not 0 */
    uint32_t ack_every;  /* request an ACK every N packets; 0: at message ends only */
    uint8_t timeout;     /* 4.096 us * 2^timeout; 0: wait for ever */
    uint8_t retry_count; /* retransmissions without progress */
    uint8_t rnr_retry_count;
    uint8_t max_reads; /* reads and atomics that may be outstanding; not 0 if any is posted */

    uint8_t responder_resources; /* for the peer's, up to RESPONDER_MAX_RESOURCES */
    uint8_t rnr_timer;           /* code of the delay in our RNR NAKs */
    struct responder_resource *resources; /* memory for these, and for one if there are none */
    struct transport_counters *counters;  /* where the QP counts; QPs may share it */
};

struct transport_counters {
    uint64_t requests;  /* packets */
    uint64_t resent;    /* of them, retransmitted */
    uint64_t responses; /* packets */
    uint64_t timeouts;
    uint64_t rewinds; /* went back to the first unacknowledged packet */
    uint64_t rnr_waits;
    uint64_t duplicates; /* requests that were executed before */
    uint64_t gaps;       /* requests ahead of the expected PSN */
    uint64_t dropped;    /* packets that do not belong to the QP */
};

struct transport_qp {
    const struct transport_ops *ops;
    struct transport_attributes attributes;
    uint8_t mtu_shift;
    bool in_error;
    struct requester requester;
    struct responder responder;
};

void transport_init(struct transport_qp *qp, const struct transport_ops *ops,
                    const struct transport_attributes *attributes);

/* The next packet of the requester, or of the responder; false if there is none now. */
bool transport_pull_request(struct transport_qp *qp, uint64_t now, struct packet *packet);
bool transport_pull_response(struct transport_qp *qp, struct packet *packet);
bool transport_has_response(const struct transport_qp *qp);
/* For a driver that pulls requests without knowing the time: they have left now. */
void transport_sent(struct transport_qp *qp, uint64_t now);

/* A packet has arrived for this QP. */
void transport_receive(struct transport_qp *qp, uint64_t now, const struct packet *packet);

/* When to call transport_timeout(), or TRANSPORT_NEVER. */
uint64_t transport_deadline(const struct transport_qp *qp);
void transport_timeout(struct transport_qp *qp, uint64_t now);

/* Sends everything unacknowledged again, without waiting for the timeout and without counting it as
 * a retry: for a driver that believes that the last packets were lost. */
void transport_probe(struct transport_qp *qp);

/* The driver moves the QP to the error state; failed() is not called. */
void transport_stop(struct transport_qp *qp);

/* In the error state: completes all posted work requests as flushed. */
void transport_flush(struct transport_qp *qp);

/* Durations of the codes for local ACK timeout and RNR NAK timer. */
uint64_t transport_timeout_ns(uint8_t code);
uint64_t transport_rnr_ns(uint8_t code);

static inline bool transport_is_reliable(const struct transport_qp *qp)
{
    return qp->attributes.service == SERVICE_RC || qp->attributes.service == SERVICE_XRC;
}

static inline void transport_trace(struct transport_qp *qp, const char *machine, const char *state)
{
    if (__builtin_expect(qp->ops->trace != NULL, 0))
        qp->ops->trace(qp, machine, state);
}

/* The number of packets of a message; an empty message takes one. */
static inline uint32_t transport_packets(const struct transport_qp *qp, uint32_t length)
{
    return length ? ((length - 1) >> qp->mtu_shift) + 1 : 1;
}

/* For the machines: moves the QP to the error state. */
void transport_fail(struct transport_qp *qp, enum transport_status why);

#endif
