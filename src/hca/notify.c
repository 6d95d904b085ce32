/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/notify.h"

#include "hca/engine.h"
#include "hca/proc.h"
#include "hca/spare_fd.h"
#include "hca/wake_file.h"
#include "util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define CACHE_SIZE 1024
#define OWN_FDS    (1 << 20)

/* Descriptors that were eventfds of ours. A corrupted segment may contain any number: we write only
 * to these, and to descriptors of peers that are eventfds. */
static atomic_bool own_fds[OWN_FDS];

/* Our duplicates of peers' eventfds, by process and channel id. */
static struct {
    uint32_t generation, id;
    uint16_t proc;
    int fd; /* 0: free */
} cache[CACHE_SIZE];
static pthread_mutex_t cache_mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint next_id = 1;

static void (*_Atomic service_hooks[4])(void);

void notify_add_service_hook(void (*hook)(void))
{
    for (unsigned i = 0; i < ARRAY_SIZE(service_hooks); i++) {
        void (*none)(void) = NULL;
        if (service_hooks[i] == hook ||
            atomic_compare_exchange_strong(&service_hooks[i], &none, hook))
            return;
    }
}

void notify_run_service_hooks(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(service_hooks); i++) {
        void (*hook)(void) = load_acquire(&service_hooks[i]);
        if (hook)
            hook();
    }
}

static int open_descriptor(uint32_t id)
{
    int fd = -1;

    if (proc_self >= 0 && (proc_slot(proc_self)->wake_by_name || proc_any_far()))
        fd = wake_file_create(id);
    return fd < 0 ? eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC) : fd;
}

int notify_create(uint32_t *id)
{
    *id = atomic_fetch_add(&next_id, 1);
    int fd = open_descriptor(*id);
    if (fd >= OWN_FDS) {
        close(fd);
        errno = EMFILE;
        return -1;
    }
    if (fd >= 0)
        store_relaxed(&own_fds[fd], true);
    return fd;
}

void notify_close(int fd, uint32_t id)
{
    if (proc_self >= 0 && proc_slot(proc_self)->wake_files >= id)
        wake_file_remove_one(id);
    close(fd);
}

static bool is_own(int fd)
{
    return fd >= 0 && fd < OWN_FDS && load_relaxed(&own_fds[fd]);
}

static void raise_fd(int fd)
{
    uint64_t one = 1;

    if (write(fd, &one, sizeof(one)) < 0)
        log_debug("event descriptor %d: errno %d", fd, errno);
}

bool notify_lower(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    uint64_t one;
    struct iovec iov = { &one, sizeof(one) };
    ssize_t got = preadv2(fd, &iov, 1, -1, RWF_NOWAIT);

    if (got < 0 && errno == EOPNOTSUPP) /* a kernel before 5.7 */
        got = poll(&p, 1, 0) == 1 ? read(fd, &one, sizeof(one)) : -1;
    return got == sizeof(one);
}

static void drop_entry(unsigned i)
{
    if (cache[i].fd)
        close(cache[i].fd);
    cache[i].fd = 0;
}

static bool is_eventfd(int fd)
{
    char name[32], target[32];

    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(name, target, sizeof(target));
    return n < 0 || (n == 20 && !memcmp(target, "anon_inode:[eventfd]", 20));
}

/* Returns the descriptor or -1. */
static int take_eventfd(int pidfd, int fd)
{
    int got = pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);

    if (got < 0 || is_eventfd(got))
        return got;
    close(got);
    return -1;
}

/* Returns the descriptor or 0. Called with the mutex held, so that no thread closes it. */
static int duplicate(unsigned proc, int fd, uint32_t id)
{
    uint32_t generation = load_relaxed(&proc_slot(proc)->generation);
    unsigned i = (proc * 31 + id) % CACHE_SIZE;

    if (cache[i].fd && cache[i].proc == proc && cache[i].id == id &&
        cache[i].generation == generation)
        return cache[i].fd;
    drop_entry(i);
    int got = proc_slot(proc)->wake_files >= id ? wake_file_open(proc, id) : -1;
    if (got < 0)
        got = take_eventfd(proc_pidfd(proc), fd);
    if (got < 0)
        return 0;
    cache[i].fd = got;
    cache[i].proc = proc;
    cache[i].id = id;
    cache[i].generation = generation;
    return got;
}

/* Opens nothing that stays open. With the mutex held. */
static bool raise_once(unsigned proc, int fd, uint32_t id)
{
    int got = proc_slot(proc)->wake_files >= id ? wake_file_open(proc, id) : -1;
    int pidfd = got < 0 ? proc_open_pidfd(proc) : -1;

    if (got < 0)
        got = take_eventfd(pidfd, fd);
    if (pidfd >= 0)
        close(pidfd);
    if (got < 0)
        return false;
    raise_fd(got);
    close(got);
    return true;
}

void notify_raise(unsigned proc, int fd, uint32_t id)
{
    bool raised = true;

    if (unlikely(proc >= MAX_PROCS))
        return;
    if ((int)proc == proc_self) {
        if (likely(is_own(fd)))
            raise_fd(fd);
        return;
    }
    pthread_mutex_lock(&cache_mutex);
    int mine = duplicate(proc, fd, id);
    if (likely(mine)) {
        raise_fd(mine);
    } else if ((raised = spare_fd_release())) {
        raised = raise_once(proc, fd, id);
        spare_fd_keep();
    }
    pthread_mutex_unlock(&cache_mutex);
    if (raised)
        return;
    atomic_store(&proc_slot(proc)->agent_wanted, 1);
    proc_attention(proc);
}

void notify_serve_if_wanted(void)
{
    if (unlikely(load_relaxed(&proc_slot(proc_self)->agent_wanted)))
        hca_engine->start_copy_agent();
}

void notify_forget_process(unsigned proc)
{
    pthread_mutex_lock(&cache_mutex);
    for (unsigned i = 0; i < CACHE_SIZE; i++)
        if (cache[i].fd && cache[i].proc == proc)
            drop_entry(i);
    pthread_mutex_unlock(&cache_mutex);
}
