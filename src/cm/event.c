/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/cm.h"

#include "check/check.h"
#include "cm/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct cm_event *event_make(struct cm_id *cm, enum rdma_cm_event_type type, int status)
{
    struct cm_event *event = calloc(1, sizeof(*event));

    if (!event)
        return NULL;
    event->event.id = &cm->id;
    event->event.event = type;
    event->event.status = status;
    event->owner = cm;
    return event;
}

void event_set_private(struct cm_event *event, const void *data, uint8_t length)
{
    memcpy(event->private_data, data, length);
    if (cm_is_ud(to_cm(event->event.id))) {
        event->event.param.ud.private_data = event->private_data;
        event->event.param.ud.private_data_len = length;
    } else {
        event->event.param.conn.private_data = event->private_data;
        event->event.param.conn.private_data_len = length;
    }
}

void event_queue(struct cm_event *event)
{
    channel_push(event->owner->channel, event);
}

void event_post(struct cm_id *cm, enum rdma_cm_event_type type, int status)
{
    struct cm_event *event = event_make(cm, type, status);

    if (event)
        event_queue(event);
}

/* A REQ returned to the program frees a slot of the listener's backlog. */
static void count_taken(struct cm_event *event)
{
    struct cm_id *owner = event->owner;

    if (event->group)
        event->group->reported++;
    else
        owner->reported++;
    if (event->event.event == RDMA_CM_EVENT_CONNECT_REQUEST && owner->binding >= 0) {
        struct cm_binding *b = binding_at(owner->binding);
        if (b && b->pending > 0)
            b->pending--;
    }
}

static struct cm_event *next_event(struct cm_channel *channel, bool *must_poll)
{
    cm_lock();
    if (channel->destroyed) {
        cm_unlock();
        channel_leave(channel);
    }
    if (!channel->events)
        channel_check(channel);
    struct cm_event *event = channel_pop(channel);
    if (event)
        count_taken(event);
    *must_poll = channel_must_poll(channel);
    cm_unlock();
    return event;
}

/* Verbs calls that the program's own thread must make before it gets the event. */
static void deliver(struct cm_event *event)
{
    struct cm_id *cm = to_cm(event->event.id);

    switch (event->event.event) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
        if (event->owner->sync)
            id_migrate(cm, NULL);
        break;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        if (cm->id.qp)
            connect_finish_reply(event);
        break;
    case RDMA_CM_EVENT_REJECTED:
        qp_to_error(cm);
        break;
    case RDMA_CM_EVENT_MULTICAST_JOIN:
        multicast_attach(event);
        break;
    default:
        break;
    }
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
    struct cm_channel *ch;
    struct cm_event *next;
    bool must_poll;

    if (!channel || !event)
        return cm_fail(EINVAL);
    ch = to_channel(channel);
    if (ch->owner != getpid())
        return cm_fail(EINVAL);
    channel_enter(ch);
    while (!(next = next_event(ch, &must_poll)))
        if (channel_wait(ch, must_poll))
            break;
    channel_leave(ch);
    if (!next)
        return -1;
    deliver(next);
    if (next->event.event == RDMA_CM_EVENT_ESTABLISHED && !cm_is_ud(to_cm(next->event.id)) &&
        check_cm(PLAN_CM_DISCONNECT))
        connect_lose(to_cm(next->event.id));
    *event = &next->event;
    return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
    if (!event)
        return cm_fail(EINVAL);
    struct cm_event *e = container_of(event, struct cm_event, event);
    cm_lock();
    if (e->group)
        e->group->completed++;
    else
        e->owner->completed++;
    cm_wake_acknowledged();
    cm_unlock();
    free(e);
    return 0;
}

void event_discard_own(struct cm_id *cm)
{
    struct rdma_cm_event *event = cm->id.event;

    cm->id.event = NULL;
    if (event)
        rdma_ack_cm_event(event);
}

int event_complete(struct cm_id *cm, enum rdma_cm_event_type expected)
{
    if (!cm->sync)
        return 0;
    event_discard_own(cm);
    if (rdma_get_cm_event(cm->id.channel, &cm->id.event))
        return -1;
    const struct rdma_cm_event *event = cm->id.event;
    if (event->event == RDMA_CM_EVENT_REJECTED)
        return cm_fail(ECONNREFUSED);
    if (event->status)
        return cm_fail(event->status < 0 ? -event->status : ECONNREFUSED);
    /* Without a QP on the id, the program handles the rest after the REP itself. */
    if (event->event == expected ||
        (expected == RDMA_CM_EVENT_ESTABLISHED && event->event == RDMA_CM_EVENT_CONNECT_RESPONSE))
        return 0;
    return cm_fail(ECONNRESET);
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
    static const char *const names[] = {
        [RDMA_CM_EVENT_ADDR_RESOLVED] = "RDMA_CM_EVENT_ADDR_RESOLVED",
        [RDMA_CM_EVENT_ADDR_ERROR] = "RDMA_CM_EVENT_ADDR_ERROR",
        [RDMA_CM_EVENT_ROUTE_RESOLVED] = "RDMA_CM_EVENT_ROUTE_RESOLVED",
        [RDMA_CM_EVENT_ROUTE_ERROR] = "RDMA_CM_EVENT_ROUTE_ERROR",
        [RDMA_CM_EVENT_CONNECT_REQUEST] = "RDMA_CM_EVENT_CONNECT_REQUEST",
        [RDMA_CM_EVENT_CONNECT_RESPONSE] = "RDMA_CM_EVENT_CONNECT_RESPONSE",
        [RDMA_CM_EVENT_CONNECT_ERROR] = "RDMA_CM_EVENT_CONNECT_ERROR",
        [RDMA_CM_EVENT_UNREACHABLE] = "RDMA_CM_EVENT_UNREACHABLE",
        [RDMA_CM_EVENT_REJECTED] = "RDMA_CM_EVENT_REJECTED",
        [RDMA_CM_EVENT_ESTABLISHED] = "RDMA_CM_EVENT_ESTABLISHED",
        [RDMA_CM_EVENT_DISCONNECTED] = "RDMA_CM_EVENT_DISCONNECTED",
        [RDMA_CM_EVENT_DEVICE_REMOVAL] = "RDMA_CM_EVENT_DEVICE_REMOVAL",
        [RDMA_CM_EVENT_MULTICAST_JOIN] = "RDMA_CM_EVENT_MULTICAST_JOIN",
        [RDMA_CM_EVENT_MULTICAST_ERROR] = "RDMA_CM_EVENT_MULTICAST_ERROR",
        [RDMA_CM_EVENT_ADDR_CHANGE] = "RDMA_CM_EVENT_ADDR_CHANGE",
        [RDMA_CM_EVENT_TIMEWAIT_EXIT] = "RDMA_CM_EVENT_TIMEWAIT_EXIT",
        [CM_EVENT_ADDRINFO_RESOLVED] = "RDMA_CM_EVENT_ADDRINFO_RESOLVED",
        [CM_EVENT_ADDRINFO_ERROR] = "RDMA_CM_EVENT_ADDRINFO_ERROR",
        [CM_EVENT_USER] = "RDMA_CM_EVENT_USER",
    };

    return (unsigned)event < ARRAY_SIZE(names) ? names[event] : "UNKNOWN EVENT";
}
