/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/guest/guest.h"

#include "util/rank_env.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool guest_on;

bool guest_thread_joined(void)
{
    return guest_on;
}

void guest_leave(void)
{
    guest_bypass--;
    spin_watch();
    vsched->compute_begin();
}

void guest_restart(struct vthread *reserved)
{
    guest_on = vsched->begin(reserved);
    if (guest_on)
        spin_prepare();
}

/* Runs before the constructors of all other libraries, some of which measure time, and before the C
 * library has set up 'environ'. */
__attribute__((constructor)) static void start(int argc, char **argv, char **envp)
{
    const char *adapter;

    if (!environ)
        environ = envp;
    adapter = getenv("VERBENA_ADAPTER");
    if (!adapter || !*adapter || !strcmp(adapter, "live"))
        return;
    rank_env_set(); /* before this process attaches to a node */
    guest_find_internal();
    guest_on_thread_start = spin_prepare;
    guest_on_thread_exit = spin_finish;
    guest_bypass++;
    guest_on = vsched->begin(NULL);
    if (guest_on) {
        tsc_prepare();
        spin_prepare();
    }
    guest_bypass--;
}

__attribute__((destructor)) static void end(void)
{
    if (!guest_on)
        return;
    guest_bypass++; /* for good */
    vsched->exiting();
}
