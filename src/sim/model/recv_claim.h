/* SPDX-License-Identifier: BSD-2-Clause */
/* Receive WQEs that arriving messages have claimed. The responder claims one with the first packet
 * of a message; delivery consumes it. */
#ifndef SIM_MODEL_RECV_CLAIM_H
#define SIM_MODEL_RECV_CLAIM_H

#include "sim/model/sim_qp.h"

/* Stores the capacity and SGEs of the next unclaimed receive in 'qp'. Returns false if the receive
 * queue has none. */
bool recv_claim_peek(struct sim_qp *qp, uint32_t srqn);

/* Peeks, and claims the receive. Returns TRANSPORT_NOT_READY if there is none. */
enum transport_status recv_claim_take(struct sim_qp *qp, uint32_t srqn);

/* Releases one claim on the receive queue: its message is being delivered, or never will be. The
 * caller is inside an epoch. */
void recv_claim_release(struct sim_qp *qp, uint32_t srqn);

/* Releases the claim of a message that has only partly arrived, if there is one. */
void recv_claim_cancel(struct sim_qp *qp);

#endif
