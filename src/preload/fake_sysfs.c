/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "preload/fake_sysfs.h"
#include "util/memory_file.h"

/* Device numbers of uverbs in Linux. */
#define UVERBS_MAJOR       231
#define UVERBS_FIRST_MINOR 192

#define SYSFS_FILE_SIZE    4096

static mode_t node_mode(const struct preload_node *node)
{
    switch (node->kind) {
    case PRELOAD_DIRECTORY:
        return S_IFDIR | 0755;
    case PRELOAD_DEVICE:
        return S_IFCHR | 0666;
    case PRELOAD_FILE:
        break;
    }
    return S_IFREG | 0444;
}

static ino_t node_inode(const struct preload_node *node)
{
    return 1 + node->row * 256 + node->device * 16 + node->port;
}

void preload_fill_stat(const struct preload_node *node, struct stat *status)
{
    *status = (struct stat){
        .st_ino = node_inode(node),
        .st_mode = node_mode(node),
        .st_nlink = 1,
        .st_size = node->kind == PRELOAD_FILE ? SYSFS_FILE_SIZE : 0,
        .st_blksize = SYSFS_FILE_SIZE,
    };
    if (node->kind == PRELOAD_DEVICE)
        status->st_rdev = makedev(UVERBS_MAJOR, UVERBS_FIRST_MINOR + node->device);
}

void preload_fill_statx(const struct preload_node *node, struct statx *status)
{
    *status = (struct statx){
        .stx_mask = STATX_BASIC_STATS,
        .stx_ino = node_inode(node),
        .stx_mode = node_mode(node),
        .stx_nlink = 1,
        .stx_size = node->kind == PRELOAD_FILE ? SYSFS_FILE_SIZE : 0,
        .stx_blksize = SYSFS_FILE_SIZE,
    };
    if (node->kind == PRELOAD_DEVICE) {
        status->stx_rdev_major = UVERBS_MAJOR;
        status->stx_rdev_minor = UVERBS_FIRST_MINOR + node->device;
    }
}

int preload_check_access(const struct preload_node *node, int mode)
{
    mode_t bits = node_mode(node) & 07;

    if ((mode & ~bits & 07) == 0)
        return 0;
    errno = EACCES;
    return -1;
}

static int open_content(const struct preload_node *node, int flags)
{
    char content[PRELOAD_CONTENT_SIZE];
    int length = preload_content(node, content);
    int fd = length < 0 ? -1 : memory_file("verbena-sysfs", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);

    if (fd < 0)
        return -1;
    if (pwrite(fd, content, length, 0) != length) {
        close(fd);
        errno = EIO;
        return -1;
    }
    return fd;
}

int preload_open_node(const struct preload_node *node, int flags)
{
    int writing = (flags & O_ACCMODE) != O_RDONLY;

    switch (node->kind) {
    case PRELOAD_DIRECTORY:
        errno = writing ? EISDIR : EOPNOTSUPP;
        return -1;
    case PRELOAD_DEVICE:
        /* Programs test whether they can open it; our verbs need no descriptor. */
        return openat(AT_FDCWD, "/dev/null", flags & (O_ACCMODE | O_CLOEXEC | O_NONBLOCK));
    case PRELOAD_FILE:
        break;
    }
    if (writing) {
        errno = EACCES;
        return -1;
    }
    return open_content(node, flags);
}

FILE *preload_open_stream(const struct preload_node *node, const char *mode)
{
    int writing = mode[0] != 'r' || strchr(mode, '+');
    int flags = (writing ? O_RDWR : O_RDONLY) | (strchr(mode, 'e') ? O_CLOEXEC : 0);
    int fd = preload_open_node(node, flags);
    FILE *stream;

    if (fd < 0)
        return NULL;
    stream = fdopen(fd, mode);
    if (!stream)
        close(fd);
    return stream;
}

/* Takes the place of glibc's DIR, which is opaque to callers. */
struct directory {
    struct directory *next;
    struct preload_node node;
    unsigned position;
    struct dirent entry;
};

static pthread_mutex_t directories_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct directory *) directories;

DIR *preload_open_directory(const struct preload_node *node)
{
    struct directory *directory;

    if (node->kind != PRELOAD_DIRECTORY) {
        errno = ENOTDIR;
        return NULL;
    }
    directory = calloc(1, sizeof(*directory));
    if (!directory)
        return NULL;
    directory->node = *node;
    pthread_mutex_lock(&directories_lock);
    directory->next = directories;
    directories = directory;
    pthread_mutex_unlock(&directories_lock);
    return (DIR *)directory;
}

bool preload_owns_directory(DIR *stream)
{
    struct directory *directory = (struct directory *)stream;
    struct directory *each;

    if (!atomic_load_explicit(&directories, memory_order_relaxed))
        return false;
    pthread_mutex_lock(&directories_lock);
    for (each = directories; each && each != directory; each = each->next)
        ;
    pthread_mutex_unlock(&directories_lock);
    return each != NULL;
}

struct dirent *preload_read_directory(DIR *stream)
{
    struct directory *directory = (struct directory *)stream;
    struct dirent *entry = &directory->entry;
    enum preload_kind kind;

    if (!preload_entry(&directory->node, directory->position, entry->d_name, &kind))
        return NULL;
    directory->position++;
    entry->d_ino = directory->position;
    entry->d_off = directory->position;
    entry->d_reclen = sizeof(*entry);
    entry->d_type = kind == PRELOAD_DIRECTORY ? DT_DIR : kind == PRELOAD_DEVICE ? DT_CHR : DT_REG;
    return entry;
}

int preload_scan_directory(const struct preload_node *node, struct dirent ***list,
                           int (*filter)(const struct dirent *),
                           int (*order)(const struct dirent **, const struct dirent **))
{
    struct directory look = { .node = *node };
    struct dirent **found = NULL;
    int count = 0;

    if (node->kind != PRELOAD_DIRECTORY) {
        errno = ENOTDIR;
        return -1;
    }
    while (preload_read_directory((DIR *)&look)) {
        if (filter && !filter(&look.entry))
            continue;
        struct dirent **longer = realloc(found, (count + 1) * sizeof(*found));
        struct dirent *entry = longer ? malloc(sizeof(*entry)) : NULL;

        found = longer ? longer : found;
        if (!entry)
            goto no_memory;
        *entry = look.entry;
        found[count++] = entry;
    }
    if (order && count)
        qsort(found, count, sizeof(*found), (int (*)(const void *, const void *))order);
    *list = found;
    return count;

no_memory:
    while (count)
        free(found[--count]);
    free(found);
    errno = ENOMEM;
    return -1;
}

void preload_rewind_directory(DIR *stream)
{
    ((struct directory *)stream)->position = 0;
}

void preload_close_directory(DIR *stream)
{
    struct directory *directory = (struct directory *)stream;

    pthread_mutex_lock(&directories_lock);
    if (directories == directory) {
        directories = directory->next;
    } else {
        struct directory *before = directories;

        while (before->next != directory)
            before = before->next;
        before->next = directory->next;
    }
    pthread_mutex_unlock(&directories_lock);
    free(directory);
}
