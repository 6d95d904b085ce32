/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const level_names[] = { "error", "warn", "info", "debug" };

enum log_level log_level = LOG_LEVEL_WARN;

void log_init(void)
{
    const char *want = getenv("VERBENA_LOG");

    for (unsigned i = 0; want && i < sizeof(level_names) / sizeof(level_names[0]); i++)
        if (!strcmp(want, level_names[i]))
            log_level = i;
}

/* One write(2) per line, so that lines of several processes do not mix. errno is kept: callers
 * log on their way out of a failing call. */
void log_write(enum log_level level, const char *fmt, ...)
{
    int saved = errno;
    char line[1024];
    int used = snprintf(line, sizeof(line), "verbena[%d] %s: ", (int)getpid(), level_names[level]);
    va_list args;

    va_start(args, fmt);
    int more = vsnprintf(line + used, sizeof(line) - used - 1, fmt, args);
    va_end(args);
    if (more > 0)
        used += more;
    if (used > (int)sizeof(line) - 2)
        used = sizeof(line) - 2;
    line[used++] = '\n';
    (void)!write(STDERR_FILENO, line, used);
    errno = saved;
}
