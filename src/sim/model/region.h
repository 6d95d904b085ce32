/* SPDX-License-Identifier: BSD-2-Clause */
/* What registering and deregistering memory changes in the ICM of adapters: at once, or, if the process
 * is ahead, when its turn comes. */
#ifndef SIM_MODEL_REGION_H
#define SIM_MODEL_REGION_H

#include <stdint.h>

struct icm;

struct icm *region_icm(uint32_t node, uint32_t device);

enum region_change_kind {
    REGION_ADDED,    /* to every adapter of the node, which may be used with it */
    REGION_REMOVED,  /* from these */
    REGION_REMAPPED, /* whatever is at its addresses next has other translations */
};

struct region_change {
    enum region_change_kind kind;
    uint32_t node, proc;
    uint64_t address, length;
};

void region_change(const struct region_change *change);

/* EVENT_REGION: the object is what region_change() has made of its argument. */
void region_change_due(struct region_change *change);

#endif
