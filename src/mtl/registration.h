/* Registered memory of the user, kept for the next time. What the program unmaps is forgotten. */
#ifndef MTL_REGISTRATION_H
#define MTL_REGISTRATION_H

#include "mtl/device.h"

struct registration {
    uintptr_t start, end;
    uint32_t users;
    bool stale; /* not to be found any more; goes when nobody uses it */
    uint64_t used_at;
    struct ibv_mr *regions[DEVICES_MAX];
};

int registrations_init(uint32_t room);
void registrations_free(void);

/* Of all that memory, on all devices; NULL with the reason in the log. */
struct registration *registration_get(const void *start, uint64_t length);
void registration_put(struct registration *registration);

#endif
