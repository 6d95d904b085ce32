/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/async.h"

#include "hca/notify.h"
#include "hca/proc.h"

void async_raise(unsigned proc, struct event_box *box, enum ibv_event_type type)
{
    if (unlikely(proc >= MAX_PROCS) || atomic_fetch_or(&box->bits, 1u << type) & 1u << type)
        return;
    proc_attention(proc);
    notify_raise(proc, box->fd, box->id);
}

bool async_take(struct event_box *box, enum ibv_event_type *type)
{
    uint32_t bits = load_acquire(&box->bits);

    if (!bits)
        return false;
    *type = __builtin_ctz(bits);
    return atomic_fetch_and(&box->bits, ~(1u << *type)) & 1u << *type;
}

void async_withdraw(struct event_box *box, int fd)
{
    for (uint32_t bits = atomic_exchange(&box->bits, 0); bits; bits &= bits - 1)
        notify_lower(fd);
}

void async_cq_error(struct shared_cq *cq)
{
    async_raise(cq->proc, &cq->events, IBV_EVENT_CQ_ERR);
}
