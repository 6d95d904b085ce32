/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DMA_DELIVER_H
#define DMA_DELIVER_H

/* Delivers a message to a receive: fills the receive and completes it. */

#include "dma/copy.h"
#include "hca/objects.h"
#include "hca/rq.h"

/* No receive is posted, or the completion queue has no room and no memory to grow: try again. */
enum { DELIVER_NO_RECEIVE = -1, DELIVER_NO_ROOM = -3 };

struct delivery {
    const struct send_wqe *wqe;
    struct hca_qp *sender;            /* NULL in a modelled fabric */
    const struct local_list *payload; /* NULL: no payload (RDMA write with immediate) */
    uint32_t length;
    uint16_t slid;
    uint8_t opcode; /* of the receive's completion */
    bool datagram;
    uint32_t src_qp;
};

/* An enum ibv_wc_status for the sender, or DELIVER_NO_*. Inside an epoch. */
int deliver_message(struct shared_qp *peer, const struct delivery *delivery);
/* Why that message could not be delivered now: DELIVER_NO_*, or 0. */
int deliver_obstacle(struct shared_qp *peer, const struct send_wqe *wqe);

/* The steps of a delivery, for messages that arrive in pieces. All inside an epoch. */

/* The receive queue and completion queue that serve a message. */
struct deliver_target {
    struct rq_view rq;
    struct shared_cq *cq;
    struct shared_srq *srq;
    uint32_t qpn, srqn, pd;
    uint16_t proc;
    bool many_senders;
};

/* `srqn` is the SRQ that an XRC message names. */
bool deliver_find_target(struct shared_qp *peer, uint32_t srqn, bool datagram,
                         struct deliver_target *target);
/* Takes the next receive. A queue with one sender keeps it until deliver_complete(). */
bool deliver_take(struct deliver_target *target);
/* Raises the event that communication is established. */
void deliver_note_first_message(struct shared_qp *peer);
/* Completes the receive, whose payload is in place. False: the CQ has overrun. */
bool deliver_complete(struct deliver_target *target, const struct delivery *delivery,
                      enum ibv_wc_status status, unsigned cqe_flags);

#endif
