#ifndef LIVE_LIVE_H
#define LIVE_LIVE_H

/* The live engine: the process that posts a request carries it out, now, by itself. */

#include "hca/engine.h"
#include "live/copy.h"

/* What became of a request: an enum ibv_wc_status, or one of these, and it is tried again later. */
enum { WAIT_RNR = -1, WAIT_ANSWER = -2 };

extern const struct hca_engine live_engine;

/* ---- run.c: one request, from checks to completion ---- */
int run_request(struct hca_qp *qp, const struct send_wqe *wqe, uint32_t *byte_len);
/* The other end of a connected QP, if it is there and listens to us. Inside an epoch. */
struct shared_qp *run_find_peer(const struct hca_qp *qp);

/* ---- short.c: a short send to a connected peer, along a route that is remembered ---- */
bool short_send(struct hca_qp *qp, const struct ibv_sge *sge, unsigned flags);

/* ---- deliver.c: the part of a request that takes a receive ---- */
struct message {
    const struct send_wqe *wqe;
    const struct local_list *payload; /* NULL: nothing to place (RDMA write with immediate) */
    uint32_t length;
    uint16_t slid;
    uint8_t opcode; /* of the receive's completion */
    bool datagram;
    uint32_t src_qp;
};
int deliver(struct shared_qp *peer, const struct message *m);
bool deliver_has_receive(struct shared_qp *peer, const struct send_wqe *wqe);

/* ---- retry.c: requests that have to wait ---- */
void retry_send(struct hca_qp *qp, struct send_wqe *wqe);
void retry_progress(void);
void retry_drop(struct hca_qp *qp);
bool retry_any_waiting(void);

/* ---- service.c: a thread that starts when something needs it ---- */
int service_init(void);
void service_start(void);
/* Something waits and the program may not poll: the thread should tick. */
void service_watch(void);
bool service_is_running(void);

#endif
