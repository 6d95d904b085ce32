/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A child must get its own copy of the memory as it was at the fork.
 *
 * Exchanged memory is marked MADV_DONTFORK, or children would share it with their parent. Around
 * fork() the mark is removed; the child copies the memory while the parent waits. Other threads may
 * write meanwhile, as they may while the kernel copies page tables.
 */

#include "dma/mapped/extent.h"
#include "dma/agent.h"
#include "dma/peer.h"
#include "dma/mapped/share.h"
#include "util/log.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_START_NS 10000000000ull
#define LOOK_NS        20000000

/* Shared by parent and child. */
struct meeting {
    _Atomic uint32_t child; /* its pid, once it runs */
    _Atomic uint32_t done;
};

static struct meeting *meeting;
static bool prepared;

static void advise_all(int advice)
{
    int view = vma_open();
    struct vma vma;

    for (uint64_t at = 0; view >= 0 && vma_next_shared(view, at, &vma); at = vma.end)
        if (extent_find(&vma))
            syscall(SYS_madvise, vma.start, vma.end - vma.start, advice);
    if (view >= 0)
        close(view);
}

static void prepare(void)
{
    share_lock();
    prepared = extent_count() > 0;
    if (!prepared)
        return;
    meeting = (struct meeting *)syscall(SYS_mmap, NULL, PAGE_BYTES, PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (meeting == MAP_FAILED) {
        meeting = NULL;
        prepared = false;
        log_error("fork: out of memory: the child will not have the registered memory");
        return;
    }
    advise_all(MADV_DOFORK);
}

static bool child_is_dead(pid_t child, uint64_t started)
{
    siginfo_t info = { 0 };

    if (!child) /* it was killed at once, or fork() failed */
        return now_ns() - started > CHILD_START_NS;
    if (waitid(P_PID, child, &info, WEXITED | WNOHANG | WNOWAIT))
        return kill(child, 0) && errno == ESRCH;
    return info.si_pid == child;
}

static void await_child(void)
{
    struct timespec tick = { .tv_nsec = LOOK_NS };
    uint64_t started = now_ns();
    int err = errno;

    while (!load_acquire(&meeting->done)) {
        syscall(SYS_futex, &meeting->done, FUTEX_WAIT, 0, &tick, NULL, 0);
        if (!load_acquire(&meeting->done) && child_is_dead(load_acquire(&meeting->child), started))
            break;
    }
    errno = err;
}

static void in_parent(void)
{
    if (prepared) {
        await_child();
        advise_all(MADV_DONTFORK);
        syscall(SYS_munmap, meeting, PAGE_BYTES);
    }
    share_unlock();
}

/* Replaces the file's pages in this mapping by a private copy. */
static bool make_own(const struct vma *vma)
{
    uint64_t length = vma->end - vma->start;
    int prot = (vma->readable ? PROT_READ : 0) | (vma->writable ? PROT_WRITE : 0);
    char *copy = (char *)syscall(SYS_mmap, NULL, length, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (copy == MAP_FAILED)
        return false;
    if (!vma->readable)
        syscall(SYS_mprotect, vma->start, length, PROT_READ);
    memcpy(copy, (void *)vma->start, length);
    syscall(SYS_mprotect, copy, length, prot);
    return (uint64_t)syscall(SYS_mremap, copy, length, length, MREMAP_MAYMOVE | MREMAP_FIXED,
                             vma->start) == vma->start;
}

static void copy_memory(void)
{
    struct vma vma;
    int view;

    extent_close_all(); /* also frees a descriptor for vma_open() */
    view = vma_open();
    for (uint64_t at = 0; view >= 0 && vma_next_shared(view, at, &vma); at = vma.end)
        if (extent_find(&vma) && !make_own(&vma))
            log_error("fork: out of memory: the child shares %lu KiB with its parent",
                      (unsigned long)(vma.end - vma.start) >> 10);
    if (view >= 0)
        close(view);
}

static void in_child(void)
{
    if (prepared) {
        store_release(&meeting->child, getpid());
        copy_memory();
        store_release(&meeting->done, 1);
        syscall(SYS_futex, &meeting->done, FUTEX_WAKE, 1, NULL, NULL, 0);
        syscall(SYS_munmap, meeting, PAGE_BYTES);
    }
    extent_forget();
    share_forget();
    peer_forget();
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(prepare, in_parent, in_child);
}
