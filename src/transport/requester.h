/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TRANSPORT_REQUESTER_H
#define TRANSPORT_REQUESTER_H

/* Turns work requests into packets (IBA volume 1, 9.7.3), and resends after a loss. */

#include "transport/packet.h"
#include "transport/status.h"

struct transport_qp;
struct transport_wqe;

enum requester_timer {
    TIMER_OFF,
    TIMER_ACK, /* local ACK timeout */
    TIMER_RNR, /* the peer had no receive */
};

/* A work request and the PSN of its first packet. A read uses the PSNs of its response. */
struct requester_position {
    uint32_t index;
    uint32_t psn;
};

/* oldest <= current, unacknowledged <= next_psn <= sent_end. `unacknowledged` lies in the oldest
 * work request, `next_psn` in the current one. */
struct requester {
    struct requester_position oldest;  /* not completed */
    struct requester_position current; /* to send from */
    uint32_t unacknowledged;           /* PSN of the first unacknowledged packet */
    uint32_t next_psn;
    uint32_t in_flight;         /* request packets from unacknowledged up to next_psn */
    uint32_t sent_end;          /* highest PSN ever sent, plus 1 */
    uint32_t since_ack_request; /* packets */
    uint8_t reads;              /* reads and atomics from oldest up to current */
    uint8_t retries_left;
    uint8_t rnr_retries_left;
    bool rewound; /* after a reported loss, since the last progress or timeout */
    bool probing; /* the timer keeps the deadline from before a probe */
    enum requester_timer timer;
    uint64_t deadline;
};

void requester_init(struct transport_qp *qp);
bool requester_pull(struct transport_qp *qp, uint64_t now, struct packet *packet);
void requester_timeout(struct transport_qp *qp);

/* Whether only a response with data completes it: a read or an atomic. */
bool requester_awaits_data(const struct transport_wqe *wqe);

/* Completes the oldest work request. `unacknowledged` is past it already, or failure follows. */
void requester_complete_oldest(struct transport_qp *qp, const struct transport_wqe *wqe);

/* `unacknowledged` has advanced from `from`. */
void requester_progressed(struct transport_qp *qp, uint64_t now, uint32_t from);

/* Goes back to the first unacknowledged packet, or fails if no retries are left. */
void requester_retry(struct transport_qp *qp);

/* The same, but the transport's timer goes on and no retry is counted. */
void requester_probe(struct transport_qp *qp);

/* The peer sent an RNR NAK. */
void requester_wait_for_receive(struct transport_qp *qp, uint64_t now, uint8_t timer_code);

/* Fails the oldest work request and the QP. */
void requester_fail(struct transport_qp *qp, enum transport_status why);

#endif
