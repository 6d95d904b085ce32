/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/wake_file.h"

#include "hca/proc.h"
#include "util/kernel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ".verbena-UID-FABRIC+SLOT+ID": a name that no fabric can have, because of the plus sign. */
static void name_of(char *name, size_t size, unsigned proc, uint32_t id)
{
    const char *path = segment_path(), *base = strrchr(path, '/') + 1;

    snprintf(name, size, "%.*s.%s+%u+%u", (int)(base - path), path, base, proc, id);
}

static bool may_duplicate_descriptors(void)
{
    int pidfd = syscall(SYS_pidfd_open, getpid(), 0);
    int copy = pidfd >= 0 ? (int)syscall(SYS_pidfd_getfd, pidfd, pidfd, 0) : -1;

    if (copy >= 0)
        close(copy);
    if (pidfd >= 0)
        close(pidfd);
    return copy >= 0;
}

static bool is_contained(const char *namespace, ino_t first)
{
    struct stat st;

    return !stat(namespace, &st) && st.st_ino != first;
}

bool wake_file_needed(void)
{
    return is_contained("/proc/self/ns/pid", KERNEL_FIRST_PID_NAMESPACE) ||
           is_contained("/proc/self/ns/user", KERNEL_FIRST_USER_NAMESPACE) ||
           !may_duplicate_descriptors() || proc_any_far();
}

int wake_file_create(uint32_t id)
{
    char name[PATH_MAX];

    name_of(name, sizeof(name), proc_self, id);
    unlink(name);
    if (mkfifo(name, 0600))
        return -1;
    int fd = open(name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        unlink(name);
    else
        proc_slot(proc_self)->wake_files = id;
    return fd;
}

int wake_file_open(unsigned proc, uint32_t id)
{
    char name[PATH_MAX];
    struct stat st;

    name_of(name, sizeof(name), proc, id);
    int fd = open(name, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && (fstat(fd, &st) || !S_ISFIFO(st.st_mode) || st.st_uid != geteuid())) {
        close(fd);
        return -1;
    }
    return fd;
}

void wake_file_remove_one(uint32_t id)
{
    char name[PATH_MAX];

    name_of(name, sizeof(name), proc_self, id);
    unlink(name);
}

static void remove_matching(const char *path, const char *rest)
{
    const char *base = strrchr(path, '/') + 1;
    char folder[PATH_MAX], prefix[NAME_MAX];
    struct dirent *entry;
    int length = snprintf(prefix, sizeof(prefix), ".%s+%s", base, rest);

    snprintf(folder, sizeof(folder), "%.*s", (int)(base - path), path);
    DIR *directory = opendir(folder);
    while (directory && (entry = readdir(directory)))
        if (!strncmp(entry->d_name, prefix, length))
            unlinkat(dirfd(directory), entry->d_name, 0);
    if (directory)
        closedir(directory);
}

void wake_file_remove(unsigned proc)
{
    char rest[16];

    if (!proc_slot(proc)->wake_files)
        return;
    snprintf(rest, sizeof(rest), "%u+", proc);
    remove_matching(segment_path(), rest);
}

void wake_file_remove_all(const char *segment_path)
{
    remove_matching(segment_path, "");
}
