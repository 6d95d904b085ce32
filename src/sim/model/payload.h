/* SPDX-License-Identifier: BSD-2-Clause */
/* Moves the bytes of messages between processes, writes receive completions, executes atomics and
 * checks remote keys. Whichever process runs does this work; it need not be the sender or the
 * receiver. */
#ifndef SIM_MODEL_PAYLOAD_H
#define SIM_MODEL_PAYLOAD_H

#include "sim/model/sim_qp.h"

/* Copies the payload of a WQE whose process may reuse the buffer before delivery. */
void payload_snapshot(struct sim_wqe *wqe);
void payload_drop_snapshot(struct sim_wqe *wqe);

/* Delivers a message, of which 'last' is the last packet, into the memory of its receiver. */
void payload_deliver(struct sim_packet *last);

/* Makes the second half of an RDMA write visible, of which 'last' is the last packet, before the
 * message is delivered. */
void payload_show_tail(struct sim_packet *last);

/* Stores the result of an RDMA read or atomic in the SGEs of its WQE. Returns an enum
 * ibv_wc_status. */
int payload_read_response(struct sim_wqe *wqe);

/* Copies the payload of a packet from the sender's current memory; zeros if it cannot be read. */
void payload_of_packet(const struct sim_packet *pkt, uint8_t *to);

/* Invalidates a type 2 memory window that is bound to this QP. */
bool payload_invalidate(struct sim_qp *qp, uint32_t key);
enum transport_status payload_check_remote(struct sim_qp *qp, enum transport_access access,
                                           uint32_t key, uint64_t address, uint64_t length);
enum transport_status payload_atomic(struct sim_qp *qp, const struct packet *request,
                                     uint64_t *original);

#endif
