/* SPDX-License-Identifier: BSD-2-Clause */
/* The virtual-time calls of include/verbena.h, looked up in the preloaded library. `on` is false on
 * every device but a modelled adapter. */
#ifndef UTIL_VTIME_H
#define UTIL_VTIME_H

#include <stdbool.h>
#include <stdint.h>

struct ibv_cq;

struct vtime {
    bool on; /* the pointers below are set */
    uint64_t (*now)(void);
    void (*compute)(uint64_t ns);
    void (*copy)(uint64_t bytes);
    uint32_t (*changes)(void);
    int (*spin)(uint32_t changes, uint64_t until);
    void (*poll_only)(struct ibv_cq *cq);
    void (*polls_on)(int on);
    uint64_t (*stalled)(void);
    uint64_t (*icm_memory)(void);
    void (*memory_written)(int pid);
    void (*barrier_begin)(uint32_t count);
    void (*barrier_end)(int all);
    void (*leave)(void);
    int (*parameter)(const char *key, double *value);
};

extern struct vtime vtime;

void vtime_find(void);

/* Virtual time in which computation does not take the CPU time that it used. */
bool vtime_is_deterministic(void);

#endif
