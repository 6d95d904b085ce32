/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UTIL_MEMORY_FILE_H
#define UTIL_MEMORY_FILE_H

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* memfd_create(), or an unnamed file in /dev/shm or /tmp where that is refused. A system call, so
 * that libraries which intercept open() do not see it. */
static inline int memory_file(const char *name, unsigned int flags)
{
    int cloexec = flags & MFD_CLOEXEC ? O_CLOEXEC : 0;
    int fd = syscall(SYS_memfd_create, name, flags);

    if (fd < 0)
        fd = syscall(SYS_openat, AT_FDCWD, "/dev/shm", O_TMPFILE | O_RDWR | cloexec, 0600);
    if (fd < 0)
        fd = syscall(SYS_openat, AT_FDCWD, "/tmp", O_TMPFILE | O_RDWR | cloexec, 0600);
    return fd;
}

#endif
