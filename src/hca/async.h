/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HCA_ASYNC_H
#define HCA_ASYNC_H

/* Asynchronous events: a bit in the object concerned, set by the process that detects the cause. */

#include "hca/objects.h"

void async_raise(unsigned proc, struct event_box *box, enum ibv_event_type type);
/* Takes the lowest pending event; false: none is pending. */
bool async_take(struct event_box *box, enum ibv_event_type *type);

/* The object is destroyed: pending events must not leave the descriptor readable. */
void async_withdraw(struct event_box *box, int fd);

void async_cq_error(struct shared_cq *cq);

#endif
