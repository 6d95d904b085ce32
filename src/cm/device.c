/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/device.h"

#include "cm/exported.h"
#include "hca/addr.h"
#include "hca/engine.h"
#include "hca/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_DEVICES 8

static struct device {
    struct ibv_context *verbs;
    struct ibv_pd *pd;
    struct ibv_xrcd *xrcd;
    struct ibv_device_attr attr;
    enum ibv_mtu mtu;
} devices[MAX_DEVICES];
static unsigned device_count;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static int open_device(struct ibv_device *ibdev)
{
    unsigned index;
    struct ibv_port_attr port;
    int err = EIO;

    if (sscanf(ibv_get_device_name(ibdev), "verbena%u", &index) != 1 || index >= MAX_DEVICES)
        return 0;
    struct device *d = &devices[index];
    d->verbs = ibv_open_device(ibdev);
    if (!d->verbs)
        return errno ? errno : ENODEV;
    d->pd = ibv_alloc_pd(d->verbs);
    if (!d->pd) {
        err = errno ? errno : ENOMEM;
        goto close_device;
    }
    if ((err = ibv_query_device(d->verbs, &d->attr)) || (err = ibv_query_port(d->verbs, 1, &port)))
        goto free_pd;
    d->mtu = port.active_mtu;
    if (index >= device_count)
        device_count = index + 1;
    return 0;

free_pd:
    ibv_dealloc_pd(d->pd);
close_device:
    ibv_close_device(d->verbs);
    d->verbs = NULL;
    return err;
}

int device_open_all(void)
{
    int err = 0, count = 0;

    pthread_mutex_lock(&mutex);
    if (device_count)
        goto out;
    struct ibv_device **list = ibv_get_device_list(&count);
    if (!list) {
        err = errno ? errno : ENODEV;
        goto out;
    }
    for (int i = 0; i < count && !err; i++)
        err = open_device(list[i]);
    ibv_free_device_list(list);
    if (!device_count && !err)
        err = ENODEV;
out:
    pthread_mutex_unlock(&mutex);
    return err;
}

void device_forget(void)
{
    device_count = 0;
    for (unsigned i = 0; i < MAX_DEVICES; i++)
        devices[i] = (struct device){ 0 };
    pthread_mutex_init(&mutex, NULL);
}

int device_find(const struct cm_dev_addr *dev_addr, struct ibv_context **verbs, struct ibv_pd **pd,
                uint8_t *port)
{
    unsigned index = dev_addr->port_index / seg->ports;

    if (index >= device_count || !devices[index].verbs)
        return ENODEV;
    *verbs = devices[index].verbs;
    *pd = devices[index].pd;
    *port = dev_addr->port_index % seg->ports + 1;
    return 0;
}

static struct device *find_device(struct ibv_context *verbs)
{
    for (unsigned i = 0; i < device_count; i++)
        if (devices[i].verbs == verbs)
            return &devices[i];
    return NULL;
}

const struct ibv_device_attr *device_attr(struct ibv_context *verbs)
{
    struct device *d = find_device(verbs);

    return d ? &d->attr : NULL;
}

enum ibv_mtu device_mtu(struct ibv_context *verbs, uint8_t port)
{
    struct device *d = find_device(verbs);

    return d ? d->mtu : IBV_MTU_1024;
}

/* One XRC domain for all ids of the device: QPs and SRQs of an XRC target must share it. */
struct ibv_xrcd *device_xrcd(struct ibv_context *verbs)
{
    struct ibv_xrcd_init_attr attr = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
        .fd = -1,
        .oflags = O_CREAT,
    };
    struct device *d = find_device(verbs);

    if (!d) {
        errno = EINVAL;
        return NULL;
    }
    pthread_mutex_lock(&mutex);
    if (!d->xrcd)
        d->xrcd = ibv_open_xrcd(verbs, &attr);
    pthread_mutex_unlock(&mutex);
    return d->xrcd;
}

unsigned device_own_node(void)
{
    return proc_slot(proc_self)->node;
}

uint16_t device_lid(const struct cm_dev_addr *dev_addr)
{
    unsigned node = dev_addr->node == ANY_NODE ? device_own_node() : (unsigned)dev_addr->node;

    return addr_lid(node, dev_addr->port_index / seg->ports, dev_addr->port_index % seg->ports + 1);
}

void device_gid(const struct cm_dev_addr *dev_addr, union ibv_gid *gid)
{
    unsigned node = dev_addr->node == ANY_NODE ? device_own_node() : (unsigned)dev_addr->node;

    if (hca_is_ethernet()) {
        hca_engine->gid(dev_addr->gid_index, gid);
        return;
    }
    addr_gid(node, dev_addr->port_index / seg->ports, dev_addr->port_index % seg->ports + 1, gid);
}

/* ---- exported ---- */

struct ibv_context **rdma_get_devices(int *num_devices)
{
    struct ibv_context **list = NULL;
    unsigned n = 0;
    int err = device_open_all();

    if (!err && !(list = calloc(device_count + 1, sizeof(*list))))
        err = ENOMEM;
    for (unsigned i = 0; list && i < device_count; i++)
        if (devices[i].verbs)
            list[n++] = devices[i].verbs;
    if (num_devices)
        *num_devices = n;
    if (err)
        errno = err;
    return list;
}

void rdma_free_devices(struct ibv_context **list)
{
    free(list);
}
