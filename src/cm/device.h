/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CM_DEVICE_H
#define CM_DEVICE_H

/* The adapters of this node, each opened once for all ids of the process. */

#include "cm/address.h"

#include <infiniband/verbs.h>

/* Returns 0 or an errno value. The caller must not hold cm_lock. */
int device_open_all(void);
void device_forget(void);

int device_find(const struct cm_dev_addr *dev_addr, struct ibv_context **verbs, struct ibv_pd **pd,
                uint8_t *port);
struct ibv_xrcd *device_xrcd(struct ibv_context *verbs);
const struct ibv_device_attr *device_attr(struct ibv_context *verbs);
enum ibv_mtu device_mtu(struct ibv_context *verbs, uint8_t port);

unsigned device_own_node(void);
uint16_t device_lid(const struct cm_dev_addr *dev_addr);
void device_gid(const struct cm_dev_addr *dev_addr, union ibv_gid *gid);

#endif
