/* SPDX-License-Identifier: BSD-2-Clause */
#include "orphans.h"

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* /proc/PID/environ has a zero after each variable, and grants access to the same user only. */
static bool has_variable(pid_t pid, const char *variable)
{
    char path[32], *text = NULL;
    bool found = false;
    size_t size = 0;

    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    while (!found && getdelim(&text, &size, '\0', file) > 0)
        found = !strcmp(text, variable);
    free(text);
    fclose(file);
    return found;
}

void orphans_kill(const char *fabric)
{
    DIR *processes = opendir("/proc");
    char variable[64];

    snprintf(variable, sizeof(variable), "VERBENA_FABRIC=%s", fabric);
    for (struct dirent *entry; processes && (entry = readdir(processes));) {
        pid_t pid = atoi(entry->d_name);

        if (pid > 0 && pid != getpid() && has_variable(pid, variable))
            kill(pid, SIGKILL);
    }
    if (processes)
        closedir(processes);
}
