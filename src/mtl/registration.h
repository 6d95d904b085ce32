/* SPDX-License-Identifier: BSD-2-Clause */
/* A registration cache for user memory. Entries go when the program unmaps their memory. */
#ifndef MTL_REGISTRATION_H
#define MTL_REGISTRATION_H

#include "mtl/device.h"

struct registration {
    uintptr_t start, end;
    uint32_t users;
    bool stale; /* no longer in the cache; deregistered after its last use */
    uint64_t used_at;
    struct ibv_mr *regions[DEVICES_MAX];
};

int registrations_init(uint32_t entries);
void registrations_free(void);

/* Registers the range on all devices; NULL after logging why. */
struct registration *registration_get(const void *start, uint64_t length);
void registration_put(struct registration *registration);

#endif
