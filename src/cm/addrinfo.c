/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_resolve_addrinfo() and rdma_write_cm_event(). */

#include "cm/cm.h"

#include <stdlib.h>
#include <string.h>

#define EXPORT             __attribute__((visibility("default")))

#define ASK_SUBNET_MANAGER 0x10 /* RAI_SA: service records, which the fabric does not have */

/* Headers before rdma-core 59 do not declare these. */
EXPORT int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
                                 const struct rdma_addrinfo *hints);
EXPORT int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);
EXPORT int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status,
                               uint64_t arg);

static int look_up(struct cm_id *cm, const char *node, const char *service,
                   const struct rdma_addrinfo *hints)
{
    struct rdma_addrinfo *found;
    int err;

    if (rdma_getaddrinfo(node, service, hints, &found))
        return EADDRNOTAVAIL;
    cm_lock();
    struct cm_event *event = event_make(cm, CM_EVENT_ADDRINFO_RESOLVED, 0);
    err = cm->addrinfo ? EBUSY : event ? 0 : ENOMEM;
    if (!err) {
        cm->addrinfo = found;
        event_queue(event);
    }
    cm_unlock();
    if (err) {
        free(event);
        rdma_freeaddrinfo(found);
    }
    return err;
}

int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
                          const struct rdma_addrinfo *hints)
{
    int err;

    if (!id)
        return cm_fail(EINVAL);
    if (hints && hints->ai_flags & ASK_SUBNET_MANAGER)
        return cm_fail(EOPNOTSUPP);
    err = look_up(to_cm(id), node, service, hints);
    return err ? cm_fail(err) : event_complete(to_cm(id), CM_EVENT_ADDRINFO_RESOLVED);
}

int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info)
{
    if (!id || !info)
        return cm_fail(EINVAL);
    cm_lock();
    struct rdma_addrinfo *found = to_cm(id)->addrinfo;
    to_cm(id)->addrinfo = NULL;
    cm_unlock();
    if (!found)
        return cm_fail(ENOENT);
    *info = found;
    return 0;
}

int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status,
                        uint64_t arg)
{
    struct cm_event *event;

    if (!id || type != CM_EVENT_USER)
        return cm_fail(EINVAL);
    cm_lock();
    event = event_make(to_cm(id), type, status);
    if (event) {
        memcpy(&event->event.param, &arg, sizeof(arg)); /* param.arg of newer headers */
        event_queue(event);
    }
    cm_unlock();
    return cm_fail(event ? 0 : ENOMEM);
}
