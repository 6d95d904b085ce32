/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs that time themselves with the TSC read its frequency from /proc/cpuinfo. */
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE

#include "sim/guest/guest.h"
#include "util/memory_file.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CPUINFO "/proc/cpuinfo"

/* The real file, with the frequency of the counter that tsc.c emulates. */
static FILE *cpuinfo(const char *mode)
{
    FILE *from = REAL(fopen)(CPUINFO, "re"), *to;
    char line[4096];
    int fd;

    if (!from)
        return NULL;
    fd = memory_file("cpuinfo", strchr(mode, 'e') ? MFD_CLOEXEC : 0);
    to = fd >= 0 ? fdopen(fd, "w+") : NULL;
    if (!to) {
        fclose(from);
        return NULL;
    }
    while (fgets(line, sizeof(line), from)) {
        if (!strncmp(line, "cpu MHz", 7))
            fputs("cpu MHz\t\t: 1000.000\n", to);
        else
            fputs(line, to);
    }
    fclose(from);
    rewind(to);
    return to;
}

static bool is_cpuinfo(const char *path)
{
    return guest_on && !strcmp(path, CPUINFO);
}

EXPORT FILE *fopen(const char *path, const char *mode)
{
    return is_cpuinfo(path) ? cpuinfo(mode) : REAL(fopen)(path, mode);
}

EXPORT FILE *fopen64(const char *path, const char *mode)
{
    return is_cpuinfo(path) ? cpuinfo(mode) : REAL(fopen64)(path, mode);
}

#define DEFINE_OPEN(name)                                     \
    EXPORT int name(const char *path, int flags, ...)         \
    {                                                         \
        va_list arguments;                                    \
        mode_t mode;                                          \
        FILE *stream;                                         \
        int fd;                                               \
                                                              \
        va_start(arguments, flags);                           \
        mode = va_arg(arguments, mode_t);                     \
        va_end(arguments);                                    \
        if (!is_cpuinfo(path))                                \
            return REAL(name)(path, flags, mode);             \
        stream = cpuinfo(flags & O_CLOEXEC ? "re" : "r");     \
        fd = stream ? fcntl(fileno(stream), F_DUPFD, 0) : -1; \
        if (stream)                                           \
            fclose(stream);                                   \
        if (fd >= 0)                                          \
            lseek(fd, 0, SEEK_SET);                           \
        return fd;                                            \
    }

DEFINE_OPEN(open)
DEFINE_OPEN(open64)
