/* SPDX-License-Identifier: BSD-2-Clause */
#include "dma/sysv.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The kernel names these mappings /SYSVkey and shows the id as the inode. */
static bool parse(const char *line, uint64_t addr, struct sysv_range *range)
{
    unsigned long start, end, offset, inode;
    char rights[5], name[8];

    if (sscanf(line, "%lx-%lx %4s %lx %*x:%*x %lu %7s", &start, &end, rights, &offset, &inode,
               name) != 6 ||
        addr < start || addr >= end || strncmp(name, "/SYSV", 5) || rights[3] != 's')
        return false;
    *range = (struct sysv_range){ (int)inode, start, end, offset,
                                  rights[0] == 'r' && rights[1] == 'w' };
    return true;
}

bool sysv_at(uint64_t addr, struct sysv_range *range)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    bool found = false;

    while (maps && !found && fgets(line, sizeof(line), maps))
        found = parse(line, addr, range);
    if (maps)
        fclose(maps);
    return found;
}

uint32_t sysv_namespace(void)
{
    struct stat st;

    return stat("/proc/self/ns/ipc", &st) ? 0 : (uint32_t)st.st_ino;
}
