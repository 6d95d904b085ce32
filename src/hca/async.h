#ifndef HCA_ASYNC_H
#define HCA_ASYNC_H

/* Asynchronous events: a bit in the object they concern, raised by whoever sees the cause. */

#include "hca/objects.h"

void async_raise(unsigned proc, struct event_box *box, enum ibv_event_type type);
/* Takes the lowest waiting event; false when there is none. */
bool async_take(struct event_box *box, enum ibv_event_type *type);

/* The object goes: what nobody has taken must not leave the descriptor readable. */
void async_withdraw(struct event_box *box, int fd);

void async_cq_error(struct shared_cq *cq);

#endif
