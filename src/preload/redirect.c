/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * File-system calls of the C library: handled here for paths of the software adapters, passed on
 * for all others. Defines both the 32- and the 64-bit names, so it needs the plain declarations of
 * both.
 */
#undef _FILE_OFFSET_BITS
#undef _TIME_BITS
#undef _FORTIFY_SOURCE

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "preload/fake_sysfs.h"
#include "util/next.h"

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one layout for both offset widths");
_Static_assert(sizeof(struct dirent) == sizeof(struct dirent64), "one layout for both widths");

#define EXPORT __attribute__((visibility("default")))

static int stat_node(const struct preload_node *node, void *status)
{
    preload_fill_stat(node, status);
    return 0;
}

#define DEFINE_STAT(name, type)                                                                   \
    EXPORT int name(const char *path, struct type *status)                                        \
    {                                                                                             \
        struct preload_node node;                                                                 \
                                                                                                  \
        return preload_lookup(path, &node) ? stat_node(&node, status) : NEXT(name)(path, status); \
    }

DEFINE_STAT(stat, stat)
DEFINE_STAT(lstat, stat)
DEFINE_STAT(stat64, stat64)
DEFINE_STAT(lstat64, stat64)

#define DEFINE_FSTATAT(name, type)                                                       \
    EXPORT int name(int directory, const char *path, struct type *status, int flags)     \
    {                                                                                    \
        struct preload_node node;                                                        \
                                                                                         \
        return preload_lookup(path, &node) ? stat_node(&node, status)                    \
                                           : NEXT(name)(directory, path, status, flags); \
    }

DEFINE_FSTATAT(fstatat, stat)
DEFINE_FSTATAT(fstatat64, stat64)

EXPORT int statx(int directory, const char *path, int flags, unsigned mask, struct statx *status)
{
    struct preload_node node;

    if (!preload_lookup(path, &node))
        return NEXT(statx)(directory, path, flags, mask, status);
    preload_fill_statx(&node, status);
    return 0;
}

EXPORT int access(const char *path, int mode)
{
    struct preload_node node;

    return preload_lookup(path, &node) ? preload_check_access(&node, mode)
                                       : NEXT(access)(path, mode);
}

EXPORT int eaccess(const char *path, int mode)
{
    struct preload_node node;

    return preload_lookup(path, &node) ? preload_check_access(&node, mode)
                                       : NEXT(eaccess)(path, mode);
}

EXPORT int faccessat(int directory, const char *path, int mode, int flags)
{
    struct preload_node node;

    return preload_lookup(path, &node) ? preload_check_access(&node, mode)
                                       : NEXT(faccessat)(directory, path, mode, flags);
}

/* The caller passes a mode only with flags that create a file. */
#define TAKE_MODE(flags, mode)                                       \
    do {                                                             \
        if (((flags)&O_CREAT) || ((flags)&O_TMPFILE) == O_TMPFILE) { \
            va_list arguments;                                       \
                                                                     \
            va_start(arguments, flags);                              \
            mode = va_arg(arguments, mode_t);                        \
            va_end(arguments);                                       \
        }                                                            \
    } while (0)

#define DEFINE_OPEN(name)                                                    \
    EXPORT int name(const char *path, int flags, ...)                        \
    {                                                                        \
        struct preload_node node;                                            \
        mode_t mode = 0;                                                     \
                                                                             \
        TAKE_MODE(flags, mode);                                              \
        return preload_lookup(path, &node) ? preload_open_node(&node, flags) \
                                           : NEXT(name)(path, flags, mode);  \
    }

DEFINE_OPEN(open)
DEFINE_OPEN(open64)

#define DEFINE_OPENAT(name)                                                            \
    EXPORT int name(int directory, const char *path, int flags, ...)                   \
    {                                                                                  \
        struct preload_node node;                                                      \
        mode_t mode = 0;                                                               \
                                                                                       \
        TAKE_MODE(flags, mode);                                                        \
        return preload_lookup(path, &node) ? preload_open_node(&node, flags)           \
                                           : NEXT(name)(directory, path, flags, mode); \
    }

DEFINE_OPENAT(openat)
DEFINE_OPENAT(openat64)

/* Fortified programs call these instead of open() without a mode. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);

#define DEFINE_FORTIFIED_OPEN(name)                                          \
    EXPORT int name(const char *path, int flags)                             \
    {                                                                        \
        struct preload_node node;                                            \
                                                                             \
        return preload_lookup(path, &node) ? preload_open_node(&node, flags) \
                                           : NEXT(name)(path, flags);        \
    }

DEFINE_FORTIFIED_OPEN(__open_2)
DEFINE_FORTIFIED_OPEN(__open64_2)

#define DEFINE_FOPEN(name)                                                    \
    EXPORT FILE *name(const char *path, const char *mode)                     \
    {                                                                         \
        struct preload_node node;                                             \
                                                                              \
        return preload_lookup(path, &node) ? preload_open_stream(&node, mode) \
                                           : NEXT(name)(path, mode);          \
    }

DEFINE_FOPEN(fopen)
DEFINE_FOPEN(fopen64)

EXPORT ssize_t readlink(const char *path, char *target, size_t size)
{
    struct preload_node node;

    if (!preload_lookup(path, &node))
        return NEXT(readlink)(path, target, size);
    errno = EINVAL;
    return -1;
}

/* ls of coreutils 9.6 and newer asks for access control lists by their attributes. */
#define DEFINE_LISTXATTR(name)                                                 \
    EXPORT ssize_t name(const char *path, char *list, size_t size)             \
    {                                                                          \
        struct preload_node node;                                              \
                                                                               \
        return preload_lookup(path, &node) ? 0 : NEXT(name)(path, list, size); \
    }

DEFINE_LISTXATTR(listxattr)
DEFINE_LISTXATTR(llistxattr)

#define DEFINE_GETXATTR(name)                                                              \
    EXPORT ssize_t name(const char *path, const char *attribute, void *value, size_t size) \
    {                                                                                      \
        struct preload_node node;                                                          \
                                                                                           \
        if (!preload_lookup(path, &node))                                                  \
            return NEXT(name)(path, attribute, value, size);                               \
        errno = ENODATA;                                                                   \
        return -1;                                                                         \
    }

DEFINE_GETXATTR(getxattr)
DEFINE_GETXATTR(lgetxattr)

EXPORT DIR *opendir(const char *path)
{
    struct preload_node node;

    return preload_lookup(path, &node) ? preload_open_directory(&node) : NEXT(opendir)(path);
}

EXPORT struct dirent *readdir(DIR *directory)
{
    return preload_owns_directory(directory) ? preload_read_directory(directory)
                                             : NEXT(readdir)(directory);
}

EXPORT struct dirent64 *readdir64(DIR *directory)
{
    return preload_owns_directory(directory) ? (struct dirent64 *)preload_read_directory(directory)
                                             : NEXT(readdir64)(directory);
}

/* glibc's own scandir() does not call the functions above. */
#define DEFINE_SCANDIR(name, type)                                                             \
    EXPORT int name(const char *path, struct type ***list, int (*filter)(const struct type *), \
                    int (*order)(const struct type **, const struct type **))                  \
    {                                                                                          \
        struct preload_node node;                                                              \
                                                                                               \
        return preload_lookup(path, &node)                                                     \
                   ? preload_scan_directory(&node, (struct dirent ***)list, (void *)filter,    \
                                            (void *)order)                                     \
                   : NEXT(name)(path, list, filter, order);                                    \
    }

DEFINE_SCANDIR(scandir, dirent)
DEFINE_SCANDIR(scandir64, dirent64)

EXPORT void rewinddir(DIR *directory)
{
    if (preload_owns_directory(directory))
        preload_rewind_directory(directory);
    else
        NEXT(rewinddir)(directory);
}

EXPORT int dirfd(DIR *directory)
{
    if (!preload_owns_directory(directory))
        return NEXT(dirfd)(directory);
    errno = ENOTSUP;
    return -1;
}

EXPORT int closedir(DIR *directory)
{
    if (!preload_owns_directory(directory))
        return NEXT(closedir)(directory);
    preload_close_directory(directory);
    return 0;
}
