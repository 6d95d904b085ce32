/* The adapters of this process, and the paths into the network: one per port in use. */
#ifndef MTL_DEVICE_H
#define MTL_DEVICE_H

#include "mtl/wire.h"

#include <infiniband/verbs.h>
#include <stdbool.h>

struct device {
    uint32_t index;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    uint32_t cq_room;
    uint32_t cq_used; /* completions that could come at a time */
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

/* As others see a path. */
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

/* Opens those that the parameters name. Returns 0, or an errno value with the reason in the log. */
int devices_open(void);
void devices_close(void);

/* Room for so many more completions. Returns 0 or an errno value. */
int device_reserve(struct device *device, uint32_t completions);

/* Its port is up, as far as the adapter knows. */
bool path_is_active(const struct path *path);

/* How a queue pair on that path reaches another one. */
void path_vector(const struct path *path, const struct path_address *to,
                 struct ibv_ah_attr *vector);

#endif
