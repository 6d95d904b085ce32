/* SPDX-License-Identifier: BSD-2-Clause */
#include "dma/mapped/swap.h"

#include "dma/mapped/vma.h"
#include "util/kernel.h"
#include "util/log.h"
#include "util/userfault.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PIECE_BYTES (2ull << 20) /* bounds the waiting time of others, and the extra memory */

/* Bare system calls: programs and libraries intercept those of the C library. */
static void *map(void *at, uint64_t length, int prot, int flags, int file, uint64_t offset)
{
    return (void *)syscall(SYS_mmap, at, length, prot, flags, file, offset);
}

static void unmap(void *at, uint64_t length)
{
    syscall(SYS_munmap, at, length);
}

static enum swap_kind offered;
static const char *refusal;

static void find_what_is_offered(void)
{
    int view = vma_open(), fd;

    if (view < 0) {
        refusal = "the kernel has no PROCMAP_QUERY (Linux 6.11)";
        return;
    }
    close(view);
    if ((fd = userfault_open(false)) >= 0)
        offered = SWAP_FULL;
    else if (errno == EPERM && (fd = userfault_open(true)) >= 0)
        offered = SWAP_USER_ONLY;
    else
        refusal = errno == EPERM || errno == ENOSYS
                      ? "userfaultfd cannot move pages here (Linux 6.8)"
                      : "userfaultfd is refused";
    if (fd >= 0)
        close(fd);
}

enum swap_kind swap_offered(const char **why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, find_what_is_offered);
    if (why)
        *why = refusal;
    return offered;
}

static int watch(int uffd, uint64_t addr, uint64_t length)
{
    int err = userfault_watch(uffd, addr, length);

    return err == EBUSY ? EEXIST : err;
}

static void wake(int uffd, uint64_t addr, uint64_t length)
{
    struct uffdio_range range = { addr, length };

    ioctl(uffd, UFFDIO_WAKE, &range);
}

/* ---- one piece ---- */

struct swap {
    int uffd;
    uint64_t staging;
    int file;
    int view; /* vma_open() */
};

static int write_all(int file, uint64_t from, uint64_t length, uint64_t offset)
{
    for (uint64_t done = 0; done < length;) {
        ssize_t n = pwrite(file, (void *)(from + done), length - done, offset + done);
        if (n <= 0)
            return n ? errno : EIO;
        done += n;
    }
    return 0;
}

/* free() may have unmapped the memory of a program that has not deregistered it before. */
static bool is_still_there(const struct swap *s, uint64_t addr, uint64_t length)
{
    struct vma vma;

    return vma_at(s->view, addr, &vma) && vma.end >= addr + length && !vma.shared;
}

static int put_file_there(const struct swap *s, uint64_t addr, uint64_t length, uint64_t offset)
{
    if (!is_still_there(s, addr, length))
        return ENOMEM;
    void *at = map((void *)addr, length, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_FIXED | MAP_POPULATE, s->file, offset);
    if (at == MAP_FAILED)
        return errno;
    syscall(SYS_madvise, addr, length, MADV_DONTFORK); /* fork.c gives children a copy */
    return 0;
}

static int swap_piece(const struct swap *s, uint64_t addr, uint64_t length, uint64_t offset)
{
    unsigned long moved, back;
    int err;

    /* First: on watched memory we would wait for ourselves. */
    if (syscall(SYS_madvise, addr, length, MADV_POPULATE_WRITE))
        return errno;
    if ((err = watch(s->uffd, addr, length)))
        return err;
    if ((err = userfault_move(s->uffd, s->staging, addr, length, &moved)) ||
        (err = write_all(s->file, s->staging, length, offset)) ||
        (err = put_file_there(s, addr, length, offset)))
        goto move_back;
    wake(s->uffd, addr, length);
    syscall(SYS_madvise, s->staging, length, MADV_DONTNEED);
    return 0;

move_back:
    if (is_still_there(s, addr, length) &&
        userfault_move(s->uffd, addr, s->staging, moved, &back))
        log_error("cannot move %lu KiB at %#lx back: %s", (unsigned long)(moved - back) >> 10,
                  (unsigned long)(addr + back), strerror(errno));
    struct uffdio_range range = { addr, length };
    ioctl(s->uffd, UFFDIO_UNREGISTER, &range);
    return err;
}

/* For tests: exchange without blocking other threads. */
static bool is_unguarded(void)
{
    const char *asked = getenv("VERBENA_TEST_SWAP");

    return asked && !strcmp(asked, "unguarded");
}

static int swap_unguarded(const struct swap *s, uint64_t addr, uint64_t length, uint64_t offset)
{
    int err = write_all(s->file, addr, length, offset);

    return err ? err : put_file_there(s, addr, length, offset);
}

static int swap_pieces(const struct swap *s, uint64_t addr, uint64_t length, uint64_t offset)
{
    bool unguarded = is_unguarded();

    for (uint64_t done = 0; done < length;) {
        uint64_t n = length - done < PIECE_BYTES ? length - done : PIECE_BYTES;
        int err = unguarded ? swap_unguarded(s, addr + done, n, offset + done)
                            : swap_piece(s, addr + done, n, offset + done);
        if (err)
            return err;
        done += n;
    }
    return 0;
}

int swap_for_file(uint64_t addr, uint64_t length, int file, uint64_t offset)
{
    uint64_t room = length < PIECE_BYTES ? length : PIECE_BYTES;
    struct swap s = { .file = file, .view = vma_open() };
    int err = 0;

    if (s.view < 0)
        return errno;
    s.uffd = userfault_open(swap_offered(NULL) != SWAP_FULL);
    if (s.uffd < 0) {
        err = errno;
        goto close_view;
    }
    void *staging = map(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (staging == MAP_FAILED) {
        err = errno;
        goto close_uffd;
    }
    s.staging = (uintptr_t)staging;
    err = watch(s.uffd, s.staging, room);
    if (!err)
        err = swap_pieces(&s, addr, length, offset);
    unmap(staging, room);
close_uffd:
    close(s.uffd);
close_view:
    close(s.view);
    return err;
}
