/* SPDX-License-Identifier: BSD-2-Clause */
/* The adapters of this process, and its paths into the network: one for each port in use. */
#ifndef MTL_DEVICE_H
#define MTL_DEVICE_H

#include "mtl/wire.h"

#include <infiniband/verbs.h>
#include <stdbool.h>

struct device {
    uint32_t index;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_td *td;
    struct ibv_pd *domain; /* 'pd' with the thread domain 'td', or NULL */
    struct ibv_comp_channel *channel; /* for the progress thread */
    struct ibv_cq *cq;
    uint32_t cq_size;
    uint32_t cq_reserved; /* the most completions that can be outstanding */
};

struct path {
    struct device *device;
    uint8_t port;
    uint8_t mtu; /* enum ibv_mtu */
    uint8_t gid_index;
    bool global; /* addressed by GID */
    uint16_t lid;
    union ibv_gid gid;
};

/* The address of a path, as published to peers. */
struct path_address {
    union ibv_gid gid;
    uint16_t lid;
    uint8_t mtu;
    uint8_t unused;
};

struct devices {
    uint32_t count;
    uint32_t path_count;
    struct device device[DEVICES_MAX];
    struct path path[PATHS_MAX];
};

extern struct devices devices;

/* Opens the devices that the parameters name. Returns 0, or an errno value after logging why. */
int devices_open(void);
void devices_close(void);

/* Grows the CQ for this many more completions. Returns 0 or an errno value. */
int device_reserve(struct device *device, uint32_t completions);

/* Creates an RC queue pair on the path, in the INIT state. 'access' is what the peer may do.
 * Returns NULL after logging why. */
struct ibv_qp *device_create_qp(const struct path *path, uint32_t sends, uint32_t receives,
                                int access);

/* Connects an RC queue pair in the INIT state to a peer's. Returns 0, or an errno value after
 * logging why. */
int device_connect_qp(const struct path *path, const struct path_address *to, struct ibv_qp *qp,
                      uint32_t qp_num);

bool device_path_is_active(const struct path *path);

/* Fills in the address vector from a local path to a peer's. */
void device_path_ah_attr(const struct path *path, const struct path_address *to,
                         struct ibv_ah_attr *ah_attr);

#endif
