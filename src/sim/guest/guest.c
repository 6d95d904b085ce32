#include "sim/guest/guest.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool guest_on;
__thread int guest_inside;

static struct {
    uintptr_t begin, end;
} internal;

static int find_library(struct dl_phdr_info *info, size_t size, void *address)
{
    uintptr_t begin = UINTPTR_MAX, end = 0;

    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];

        if (part->p_type != PT_LOAD)
            continue;
        if (info->dlpi_addr + part->p_vaddr < begin)
            begin = info->dlpi_addr + part->p_vaddr;
        if (info->dlpi_addr + part->p_vaddr + part->p_memsz > end)
            end = info->dlpi_addr + part->p_vaddr + part->p_memsz;
    }
    if ((uintptr_t)address < begin || (uintptr_t)address >= end)
        return 0;
    internal.begin = begin;
    internal.end = end;
    return 1;
}

bool guest_is_internal(const void *caller)
{
    return (uintptr_t)caller >= internal.begin && (uintptr_t)caller < internal.end;
}

void guest_leave(void)
{
    guest_inside--;
    spin_watch();
    turns->computes();
}

void guest_restart(struct entity *reserved)
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
    dl_iterate_phdr(find_library, (void *)turns);
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
