/* SPDX-License-Identifier: BSD-2-Clause */
/* Port state changes and their events; port counters. */

#include "verbena.h"
#include "verbs/verbs.h"

#include "check/inject.h"
#include "hca/addr.h"
#include "hca/async.h"
#include "hca/qp.h"

/* Contexts beyond the size of this table get no port events. */
void verbs_list_device(struct hca_context *c)
{
    struct proc_slot *slot = proc_slot(proc_self);

    for (unsigned i = 0; i < MAX_OPEN_DEVICES; i++) {
        struct open_device *open = &slot->open[i];
        uint32_t unused = 0;
        if (!atomic_compare_exchange_strong(&open->used, &unused, 1))
            continue;
        open->device = c->device->index;
        for (unsigned p = 0; p < MAX_PORTS; p++) {
            open->events[p].fd = c->verbs.context.async_fd;
            open->events[p].id = c->async_id;
            store_relaxed(&open->events[p].bits, 0);
        }
        store_release(&open->used, 2);
        c->listed = open;
        return;
    }
}

void verbs_unlist_device(struct hca_context *c)
{
    if (c->listed && c->owner == proc_self)
        store_release(&c->listed->used, 0);
}

static void tell_everybody(unsigned node, unsigned device, unsigned port, enum ibv_event_type type)
{
    for (unsigned p = 0; p < load_acquire(&seg->proc_high) && p < MAX_PROCS; p++) {
        struct proc_slot *slot = proc_slot(p);
        if (load_acquire(&slot->state) != PROC_ALIVE || slot->node != node)
            continue;
        for (unsigned i = 0; i < MAX_OPEN_DEVICES; i++)
            if (load_acquire(&slot->open[i].used) == 2 && slot->open[i].device == device)
                async_raise(p, &slot->open[i].events[port - 1], type);
    }
}

EXPORT int verbena_query_port_counters(struct ibv_context *context, uint8_t port_num,
                                       struct verbena_port_counters *counters)
{
    struct hca_context *c = to_context(context);
    struct traffic sum;

    if (port_num < 1 || port_num > seg->ports)
        return EINVAL;
    hca_engine->port_traffic(addr_lid(c->node, c->device->index, port_num), &sum);
    *counters = (struct verbena_port_counters){ sum.xmit_bytes, sum.xmit_packets, sum.rcv_bytes,
                                                sum.rcv_packets };
    return 0;
}

void verbs_lose_device(struct ibv_context *context)
{
    struct hca_context *c = to_context(context);

    inject_device_gone();
    pthread_mutex_lock(&qp_list_mutex);
    for (struct hca_qp *qp = qp_list; qp; qp = qp->next) {
        if (qp->ibv.context == context)
            qp_set_error(qp->shared);
    }
    pthread_mutex_unlock(&qp_list_mutex);
    if (c->listed)
        async_raise(proc_self, &c->listed->events[0], IBV_EVENT_DEVICE_FATAL);
}

EXPORT int verbena_set_port(struct ibv_context *context, uint8_t port_num, int up)
{
    struct hca_context *c = to_context(context);

    if (port_num < 1 || port_num > seg->ports)
        return EINVAL;
    uint16_t lid = addr_lid(c->node, c->device->index, port_num);
    _Atomic uint32_t *word = &seg->port_down[addr_port_bit(lid) / 32];
    uint32_t bit = 1u << addr_port_bit(lid) % 32;
    if (up && atomic_fetch_and(word, ~bit) & bit) {
        atomic_fetch_sub(&seg->ports_down, 1);
        tell_everybody(c->node, c->device->index, port_num, IBV_EVENT_PORT_ACTIVE);
    } else if (!up && !(atomic_fetch_or(word, bit) & bit)) {
        atomic_fetch_add(&seg->ports_down, 1);
        tell_everybody(c->node, c->device->index, port_num, IBV_EVENT_PORT_ERR);
    }
    return 0;
}
