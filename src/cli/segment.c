/* SPDX-License-Identifier: BSD-2-Clause */
#include "segment.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static const char *setting(const char *variable, const char *default_value)
{
    const char *value = getenv(variable);

    return value && *value ? value : default_value;
}

const char *segment_directory(void)
{
    return setting("VERBENA_SHM_DIR", "/dev/shm");
}

const char *segment_fabric(const char *path)
{
    const char *name = strrchr(path, '/'), *rest = name ? name + 1 : path;

    for (int dash = 0; dash < 2; dash++)
        rest = strchr(rest, '-') ? strchr(rest, '-') + 1 : rest;
    return rest;
}

int segment_path(char *path, size_t size)
{
    int length = snprintf(path, size, "%s/verbena-%u-%s", segment_directory(), getuid(),
                          setting("VERBENA_FABRIC", "default"));

    return length > 0 && (size_t)length < size ? 0 : -1;
}

/* Every attached process holds a shared lock on the file, so an exclusive lock shows that there is
 * none. Except for programs that close all descriptors, including the library's: their mapping
 * still counts as an open file, and the kernel grants a write lease only if there is no other. */
static int lock_alone(const char *path, enum segment_state *state)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

    *state = SEGMENT_ABSENT;
    if (fd < 0)
        return -1;
    /* The kernel signals an open during the lease; SIGIO would end this process. */
    fcntl(fd, F_SETSIG, SIGURG);
    if (flock(fd, LOCK_EX | LOCK_NB) || (fcntl(fd, F_SETLEASE, F_WRLCK) && errno == EAGAIN)) {
        *state = SEGMENT_IN_USE;
        close(fd);
        return -1;
    }
    *state = SEGMENT_STALE;
    return fd;
}

enum segment_state segment_state_of(const char *path)
{
    enum segment_state state;
    int fd = lock_alone(path, &state);

    if (fd >= 0)
        close(fd);
    return state;
}

/* Named pipes of processes that were killed (hca/wake_file.h). */
static void remove_wake_files(const char *path)
{
    DIR *directory = opendir(segment_directory());
    const char *base = strrchr(path, '/') + 1;
    char prefix[NAME_MAX];
    struct dirent *entry;
    int length = snprintf(prefix, sizeof(prefix), ".%s+", base);

    while (directory && (entry = readdir(directory)))
        if (!strncmp(entry->d_name, prefix, length))
            unlinkat(dirfd(directory), entry->d_name, 0);
    if (directory)
        closedir(directory);
}

enum segment_state segment_remove(const char *path)
{
    enum segment_state state;
    int fd = lock_alone(path, &state);

    if (fd < 0)
        return state;
    remove_wake_files(path);
    if (unlink(path))
        state = errno == ENOENT ? SEGMENT_ABSENT : SEGMENT_STALE;
    else
        state = SEGMENT_ABSENT;
    close(fd);
    return state;
}

enum segment_state segment_remove_unused(void)
{
    char path[PATH_MAX];

    return segment_path(path, sizeof(path)) ? SEGMENT_ABSENT : segment_remove(path);
}

int segment_each(void (*each)(const char *path, void *context), void *context)
{
    DIR *directory = opendir(segment_directory());
    char prefix[32], path[PATH_MAX];
    struct dirent *entry;

    if (!directory)
        return -1;
    snprintf(prefix, sizeof(prefix), "verbena-%u-", getuid());
    while ((entry = readdir(directory))) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)))
            continue;
        snprintf(path, sizeof(path), "%s/%s", segment_directory(), entry->d_name);
        each(path, context);
    }
    closedir(directory);
    return 0;
}
