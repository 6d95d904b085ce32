/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/guest/guest.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool guest_on;

bool guest_is_one(void)
{
    return guest_on;
}

void guest_leave(void)
{
    guest_inside--;
    spin_watch();
    turns->computes();
}

void guest_restart(struct vthread *reserved)
{
    guest_on = turns->begin(reserved);
    if (guest_on)
        spin_prepare();
}

/* Before the constructors of all other libraries: some of them measure time. The C library itself
 * comes later, too, and with it the environment. */
__attribute__((constructor)) static void start(int argc, char **argv, char **envp)
{
    const char *adapter;

    if (!environ)
        environ = envp;
    adapter = getenv("VERBENA_ADAPTER");
    if (!adapter || !*adapter || !strcmp(adapter, "live"))
        return;
    guest_find_internal();
    guest_thread_begins = spin_prepare;
    guest_thread_ends = spin_finish;
    guest_inside++;
    guest_on = turns->begin(NULL);
    if (guest_on) {
        tsc_prepare();
        spin_prepare();
    }
    guest_inside--;
}

__attribute__((destructor)) static void end(void)
{
    if (!guest_on)
        return;
    guest_inside++; /* and never back */
    turns->ending();
}
