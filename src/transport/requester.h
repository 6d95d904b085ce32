#ifndef TRANSPORT_REQUESTER_H
#define TRANSPORT_REQUESTER_H

/* From work requests to packets (IBA volume 1, 9.7.3), and going back when some were lost. */

#include "transport/packet.h"
#include "transport/status.h"

struct transport_qp;
struct transport_wqe;

enum requester_timer {
    TIMER_OFF,
    TIMER_ANSWER, /* an answer is due */
    TIMER_RNR,    /* the peer asked us to wait */
};

/* A work request and the PSN of its first packet. A read takes as many PSNs as its answer. */
struct requester_position {
    uint32_t index;
    uint32_t psn;
};

/* oldest <= current, unacknowledged <= next_psn <= sent_end. `unacknowledged` lies in the oldest
 * work request, `next_psn` in the current one. */
struct requester {
    struct requester_position oldest;  /* not completed */
    struct requester_position current; /* to send from */
    uint32_t unacknowledged;           /* PSN of the first packet that is */
    uint32_t next_psn;
    uint32_t in_flight;         /* request packets from unacknowledged up to next_psn */
    uint32_t sent_end;          /* one after the highest PSN that was ever sent */
    uint32_t since_ack_request; /* packets */
    uint8_t reads;              /* reads and atomics from oldest up to current */
    uint8_t retries_left;
    uint8_t rnr_retries_left;
    bool rewound; /* for a loss that was reported, since the last progress or timeout */
    enum requester_timer timer;
    uint64_t deadline;
};

void requester_init(struct transport_qp *qp);
bool requester_pull(struct transport_qp *qp, uint64_t now, struct packet *packet);
void requester_timeout(struct transport_qp *qp);

/* Completed only by an answer that brings data: a read or an atomic. */
bool requester_awaits_data(const struct transport_wqe *wqe);

/* The oldest work request is done. `unacknowledged` is past it already, or failure follows. */
void requester_complete_oldest(struct transport_qp *qp, const struct transport_wqe *wqe);

/* Acknowledgements moved `unacknowledged` forward from there. */
void requester_progressed(struct transport_qp *qp, uint64_t now, uint32_t from);

/* Go back to the first unacknowledged packet, if the retries allow it. */
void requester_retry(struct transport_qp *qp);

/* The peer has no receive. */
void requester_wait_for_receive(struct transport_qp *qp, uint64_t now, uint8_t timer_code);

/* The oldest work request fails, and the QP with it. */
void requester_fail(struct transport_qp *qp, enum transport_status why);

#endif
