/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DMA_DELIVER_H
#define DMA_DELIVER_H

/* Delivers a message to a receive: fills the receive and completes it. */

#include "dma/copy.h"
#include "hca/objects.h"

enum { DELIVER_NO_RECEIVE = -1 };

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

/* An enum ibv_wc_status for the sender, or DELIVER_NO_RECEIVE. Inside an epoch. */
int deliver_message(struct shared_qp *peer, const struct delivery *delivery);
bool deliver_has_receive(struct shared_qp *peer, const struct send_wqe *wqe);

#endif
