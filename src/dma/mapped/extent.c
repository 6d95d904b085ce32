/* SPDX-License-Identifier: BSD-2-Clause */
#include "dma/mapped/extent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_OWN_FD  512
#define FILE_BYTES    (1ull << 40)
#define IDLE_FDS      32
#define IDLE_BYTES    (64ull << 20)
#define PRUNE_RECORDS 64

static struct extent **extents;
static unsigned count, room, open_fds;
static unsigned prune_at = PRUNE_RECORDS;
static uint64_t idle_clock;

unsigned extent_count(void)
{
    return count;
}

struct extent *extent_find(const struct vma *vma)
{
    for (unsigned i = 0; vma->shared && !vma->is_sysv && vma->inode && i < count; i++)
        if (extents[i]->inode == vma->inode && extents[i]->dev == vma->dev)
            return extents[i];
    return NULL;
}

static void let_go(struct extent *extent)
{
    struct stat st;

    if (extent->fd < 0)
        return;
    if (!fstat(extent->fd, &st) && st.st_ino == extent->inode && st.st_dev == extent->dev)
        close(extent->fd);
    extent->fd = -1;
    open_fds--;
}

void extent_discard(struct extent *extent)
{
    for (unsigned i = 0; i < count; i++)
        if (extents[i] == extent)
            extents[i] = extents[--count];
    let_go(extent);
    free(extent);
}

/* Deletes extents whose files are no longer mapped. */
static void prune(void)
{
    uint64_t at = 0;
    struct vma vma;
    int view = vma_open();

    if (view < 0)
        return;
    for (unsigned i = 0; i < count; i++)
        extents[i]->bytes = 0;
    for (; vma_next_shared(view, at, &vma); at = vma.end) {
        struct extent *extent = extent_find(&vma);
        if (extent)
            extent->bytes += vma.end - vma.start;
    }
    close(view);
    for (unsigned i = count; i-- > 0;)
        if (!extents[i]->users && !extents[i]->bytes)
            extent_discard(extents[i]);
    prune_at = count + PRUNE_RECORDS;
}

static bool make_room(void)
{
    if (count >= prune_at)
        prune();
    if (count < room)
        return true;
    unsigned more = room ? 2 * room : 64;
    struct extent **grown = realloc(extents, more * sizeof(*grown));
    if (!grown)
        return false;
    extents = grown;
    room = more;
    return true;
}

static uint64_t descriptor_limit(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) ? 0 : limit.rlim_cur;
}

bool extent_too_many(void)
{
    return open_fds >= descriptor_limit() / 4;
}

/* RLIMIT_FSIZE applies to these files too, and exceeding it raises a signal. */
static uint64_t file_size(uint64_t bytes)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur >= FILE_BYTES)
        return FILE_BYTES;
    return limit.rlim_cur >= bytes ? limit.rlim_cur & ~(PAGE_BYTES - 1) : 0;
}

static int make_file(uint64_t bytes)
{
    uint64_t size = file_size(bytes);
    int low, fd, err;

    if (!size) {
        errno = EFBIG;
        return -1;
    }
    low = memfd_create("verbena-region", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (low < 0)
        return -1;
    fd = fcntl(low, F_DUPFD_CLOEXEC, FIRST_OWN_FD);
    err = fd < 0 ? EMFILE : 0; /* leave low descriptors to the program */
    close(low);
    if (!err && (ftruncate(fd, size) ||
                 fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))) {
        err = errno;
        close(fd);
    }
    errno = err;
    return err ? -1 : fd;
}

struct extent *extent_create(uint64_t bytes)
{
    struct extent *extent;
    struct stat st;
    int fd;

    if (!make_room() || !(extent = calloc(1, sizeof(*extent)))) {
        errno = ENOMEM;
        return NULL;
    }
    fd = make_file(bytes);
    if (fd < 0 || fstat(fd, &st)) {
        int err = errno;
        free(extent);
        errno = err;
        return NULL;
    }
    *extent = (struct extent){ .inode = st.st_ino, .dev = st.st_dev, .fd = fd, .bytes = bytes };
    extents[count++] = extent;
    open_fds++;
    return extent;
}

static int reopen(struct extent *extent, const struct vma *vma)
{
    char path[80];
    struct stat st;

    snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)vma->start,
             (unsigned long)vma->end);
    int low = open(path, O_RDWR | O_CLOEXEC); /* allowed for privileged processes */
    if (low < 0)
        return -1;
    int fd = fcntl(low, F_DUPFD_CLOEXEC, FIRST_OWN_FD);
    close(low);
    if (fd >= 0 && (fstat(fd, &st) || st.st_ino != extent->inode || st.st_dev != extent->dev)) {
        close(fd);
        return -1;
    }
    if (fd >= 0) {
        extent->fd = fd;
        open_fds++;
    }
    return fd;
}

int extent_fd(struct extent *extent, const struct vma *vma)
{
    struct stat st;

    if (extent->fd >= 0 && !fstat(extent->fd, &st) && st.st_ino == extent->inode &&
        st.st_dev == extent->dev)
        return extent->fd;
    if (extent->fd >= 0) { /* the program has closed it, and may have reused the number */
        extent->fd = -1;
        open_fds--;
    }
    return reopen(extent, vma);
}

void extent_use(struct extent *extent)
{
    extent->users++;
}

/* Keep a few open for the next registration; more would keep memory allocated after munmap(). */
static void trim_idle(void)
{
    for (;;) {
        struct extent *oldest = NULL;
        uint64_t bytes = 0;
        unsigned idle = 0;
        for (unsigned i = 0; i < count; i++) {
            struct extent *e = extents[i];
            if (e->users || e->fd < 0)
                continue;
            idle++;
            bytes += e->bytes;
            if (!oldest || e->idle_since < oldest->idle_since)
                oldest = e;
        }
        if (idle <= IDLE_FDS && bytes <= IDLE_BYTES)
            return;
        let_go(oldest);
    }
}

void extent_unuse(struct extent *extent)
{
    if (--extent->users)
        return;
    extent->idle_since = ++idle_clock;
    trim_idle();
}

void extent_close_all(void)
{
    for (unsigned i = 0; i < count; i++)
        let_go(extents[i]);
}

void extent_forget(void)
{
    extent_close_all();
    for (unsigned i = 0; i < count; i++)
        free(extents[i]);
    count = 0;
    prune_at = PRUNE_RECORDS;
}
