#ifndef LIVE_LIVE_H
#define LIVE_LIVE_H

/* The live engine: the process that posts a request carries it out, now, by itself. */

#include "hca/engine.h"
#include "live/copy.h"

/* What became of a request: an enum ibv_wc_status, or one of these, and it is tried again later. */
enum { WAIT_RNR = -1, WAIT_ANSWER = -2 };

extern const struct hca_engine live_engine;

/* ---- run.c: one request, from checks to completion ---- */
int wqe_execute(struct hca_qp *qp, const struct send_wqe *wqe, uint32_t *byte_len);
/* The other end of a connected QP, if it is there and listens to us. Inside an epoch. */
struct shared_qp *wqe_find_peer(const struct hca_qp *qp);

/* ---- short.c: a short send to a connected peer, along a route that is remembered ---- */
bool send_fast(struct hca_qp *qp, const struct ibv_sge *sge, unsigned flags);

/* ---- deliver.c: the part of a request that takes a receive ---- */
struct delivery {
    const struct send_wqe *wqe;
    const struct local_list *payload; /* NULL: nothing to place (RDMA write with immediate) */
    uint32_t length;
    uint16_t slid;
    uint8_t opcode; /* of the receive's completion */
    bool datagram;
    uint32_t src_qp;
};
int deliver(struct shared_qp *peer, const struct delivery *m);
bool deliver_has_receive(struct shared_qp *peer, const struct send_wqe *wqe);

/* ---- retry.c: requests that have to wait ---- */
void sq_submit(struct hca_qp *qp, struct send_wqe *wqe);
void sq_progress(void);
void sq_flush(struct hca_qp *qp);
bool sq_any_stalled(void);

/* ---- service.c: a thread that starts when something needs it ---- */
int agent_init(void);
void agent_start(void);
/* Something waits and the program may not poll: the thread should tick. */
void agent_watch(void);
bool agent_is_running(void);

#endif
