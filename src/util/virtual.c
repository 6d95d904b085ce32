#include "util/virtual.h"

#include <dlfcn.h>
#include <stddef.h>

struct virtual_time virtual_time;

void virtual_find(void)
{
    static const struct {
        const char *name;
        void **slot;
    } calls[] = {
        { "verbena_now", (void **)&virtual_time.now },
        { "verbena_compute", (void **)&virtual_time.compute },
        { "verbena_copy", (void **)&virtual_time.copy },
        { "verbena_changes", (void **)&virtual_time.changes },
        { "verbena_spin", (void **)&virtual_time.spin },
        { "verbena_wrote", (void **)&virtual_time.wrote },
        { "verbena_together_begin", (void **)&virtual_time.together_begin },
        { "verbena_together_end", (void **)&virtual_time.together_end },
        { "verbena_leave", (void **)&virtual_time.leave },
        { "verbena_parameter", (void **)&virtual_time.parameter },
    };
    int (*is_virtual)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "verbena_is_virtual");

    if (!is_virtual || !is_virtual())
        return;
    virtual_time.on = true;
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        *calls[i].slot = dlsym(RTLD_DEFAULT, calls[i].name);
        virtual_time.on = virtual_time.on && *calls[i].slot;
    }
}
