/* SPDX-License-Identifier: BSD-2-Clause */
#include "mtl/liveness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool liveness_matters(void)
{
    static int matters = -1;

    if (matters < 0) {
        const char *value = getenv("OMPI_MCA_orte_enable_recovery");

        matters = value && strcmp(value, "0") && strcmp(value, "false");
    }
    return matters;
}

/* The state and the start of a process, from /proc; false if there is none. */
static bool read_stat(int32_t pid, char *state, uint64_t *started)
{
    char path[32], text[1024];
    const char *after;
    FILE *file;
    size_t length;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    file = fopen(path, "r");
    if (!file)
        return false;
    length = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[length] = '\0';
    after = strrchr(text, ')'); /* the name before it may contain anything */
    return after && sscanf(after,
                           ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                           "%*s %*s %lu",
                           state, started) == 2;
}

struct liveness liveness_of(int32_t pid)
{
    struct liveness process = { .pid = pid };
    char state;

    if (!read_stat(pid, &state, &process.started))
        process.started = 0;
    return process;
}

bool liveness_ended(const struct liveness *process)
{
    uint64_t started;
    char state;

    if (!process->pid)
        return false;
    return !read_stat(process->pid, &state, &started) || state == 'Z' || state == 'X' ||
           started != process->started;
}
