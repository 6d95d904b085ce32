/* SPDX-License-Identifier: BSD-2-Clause */
/* Verbs calls that wait for a descriptor wait in virtual time, like those in io.c. */
#include "sim/guest/guest.h"

#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#undef ibv_get_cq_event
#undef ibv_get_async_event

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context)
{
    if (IS_GUEST_CALL())
        io_wait(channel->fd, "waits for a completion event", false);
    return REAL(ibv_get_cq_event)(channel, cq, context);
}

EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    if (IS_GUEST_CALL())
        io_wait(context->async_fd, "waits for an asynchronous event", false);
    return REAL(ibv_get_async_event)(context, event);
}

EXPORT int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
    if (IS_GUEST_CALL())
        io_wait(channel->fd, "waits for an event of the connection manager", true);
    return REAL(rdma_get_cm_event)(channel, event);
}
