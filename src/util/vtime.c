/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/vtime.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct vtime vtime;

void vtime_find(void)
{
    static const struct {
        const char *name;
        void **slot;
    } calls[] = {
        { "verbena_now", (void **)&vtime.now },
        { "verbena_compute", (void **)&vtime.compute },
        { "verbena_copy", (void **)&vtime.copy },
        { "verbena_changes", (void **)&vtime.changes },
        { "verbena_spin", (void **)&vtime.spin },
        { "verbena_poll_only", (void **)&vtime.poll_only },
        { "verbena_polls_on", (void **)&vtime.polls_on },
        { "verbena_stalled", (void **)&vtime.stalled },
        { "verbena_icm_memory", (void **)&vtime.icm_memory },
        { "verbena_memory_written", (void **)&vtime.memory_written },
        { "verbena_barrier_begin", (void **)&vtime.barrier_begin },
        { "verbena_barrier_end", (void **)&vtime.barrier_end },
        { "verbena_leave", (void **)&vtime.leave },
        { "verbena_parameter", (void **)&vtime.parameter },
    };
    int (*is_virtual)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "verbena_is_virtual");

    if (!is_virtual || !is_virtual())
        return;
    vtime.on = true;
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        *calls[i].slot = dlsym(RTLD_DEFAULT, calls[i].name);
        vtime.on = vtime.on && *calls[i].slot;
    }
}

bool vtime_is_deterministic(void)
{
    const char *compute = getenv("VERBENA_COMPUTE");

    return vtime.on && (!compute || strncmp(compute, "measured", strlen("measured")));
}
