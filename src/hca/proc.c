/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/proc.h"

#include "hca/arena.h"
#include "hca/epoch.h"
#include "hca/engine.h"
#include "hca/notify.h"
#include "hca/proc_lock.h"
#include "hca/shm_lock.h"
#include "hca/spare_fd.h"
#include "hca/traffic.h"
#include "hca/wake_file.h"
#include "util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_OWN_FD         512
#define LIVENESS_INTERVAL_NS 8000000
#define FLAG_EXITING         0x4 /* PF_EXITING of the kernel, in /proc/PID/stat */
#define REAP_INTERVAL_NS     25000000ull /* times the number of processes */
#define REAP_AT_JOIN         64

atomic_int proc_self = -1;

/* What we know of each peer. A pidfd is exact, while a pid may be reused. */
static struct {
    int pidfd, memory; /* 0: not open; with their generation, guarded by the mutex */
    uint32_t generation;
    _Atomic uint32_t seen_word; /* the process last seen running, and when */
    _Atomic uint64_t seen_at;
} peers[MAX_PROCS];
static pthread_mutex_t peers_mutex = PTHREAD_MUTEX_INITIALIZER;

/* Returns the start time of the process, 0 if it has ended. `ending`: it is exiting, or has a
 * SIGKILL pending. */
static uint64_t read_stat(pid_t pid, bool *ending)
{
    char name[64], text[1024];
    unsigned long long start = 0;
    unsigned long pending;
    unsigned flags;

    /* Of the first thread, because qemu-user invents a start time in /proc/self/stat. */
    snprintf(name, sizeof(name), "/proc/%d/task/%d/stat", (int)pid, (int)pid);
    FILE *f = fopen(name, "re");
    if (!f)
        return 0;
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    text[n] = 0;
    char *after_name = strrchr(text, ')'); /* the name may contain any character */
    char run_state;
    int threads;
    if (!after_name ||
        sscanf(after_name + 2,
               "%c %*d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d %*d %llu "
               "%*u %*d %*u %*u %*u %*u %*u %*u %lu",
               &run_state, &flags, &threads, &start, &pending) != 5)
        return 0;
    *ending = flags & FLAG_EXITING || pending & 1ul << (SIGKILL - 1);
    /* A zombie with more than one thread is alive: only its first thread has ended. */
    return run_state == 'Z' && threads <= 1 ? 0 : start;
}

static uint64_t start_time_of(pid_t pid)
{
    bool ending;

    return read_stat(pid, &ending);
}

static bool is_same_process(const struct proc_slot *slot)
{
    return start_time_of(slot->pid) == slot->start_time;
}

/* ---- reaching other processes ---- */

static uint64_t namespace_of(const char *path)
{
    struct stat st;

    return stat(path, &st) ? 0 : st.st_ino;
}

bool proc_is_near(unsigned index)
{
    const struct proc_slot *slot = proc_slot(index), *self;

    if (unlikely(proc_self < 0))
        return slot->pid_namespace == namespace_of("/proc/self/ns/pid") &&
               slot->user_namespace == namespace_of("/proc/self/ns/user");
    self = proc_slot(proc_self);
    return slot->pid_namespace == self->pid_namespace &&
           slot->user_namespace == self->user_namespace;
}

bool proc_any_far(void)
{
    for (unsigned i = 0; i < load_acquire(&seg->proc_high) && i < MAX_PROCS; i++)
        if (!proc_is_near(i) && proc_alive(i))
            return true;
    return false;
}

/* Programs close low descriptors, and expect to get those numbers again. */
static int move_up(int fd)
{
    int high = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, FIRST_OWN_FD) : -1;

    if (high < 0)
        return fd;
    close(fd);
    return high;
}

/* A descriptor is exact, while a pid may have been reused before it was opened. */
static int check_process(unsigned index, int fd)
{
    if (fd < 0 || is_same_process(proc_slot(index)))
        return fd;
    close(fd);
    return -1;
}

int proc_open(unsigned index, const char *name, int flags)
{
    char path[64];

    if (!proc_is_near(index))
        return -1;
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)proc_slot(index)->pid, name);
    return check_process(index, open(path, flags | O_CLOEXEC));
}

int proc_open_pidfd(unsigned index)
{
    if (!proc_is_near(index))
        return -1;
    return move_up(check_process(index, syscall(SYS_pidfd_open, proc_slot(index)->pid, 0)));
}

static void forget_descriptor(int *fd)
{
    if (*fd > 0)
        close(*fd);
    *fd = 0;
}

/* With the mutex held. */
static void forget_predecessor(unsigned index)
{
    uint32_t generation = load_relaxed(&proc_slot(index)->generation);

    if (peers[index].generation == generation)
        return;
    forget_descriptor(&peers[index].pidfd);
    forget_descriptor(&peers[index].memory);
    peers[index].generation = generation;
}

int proc_pidfd(unsigned index)
{
    pthread_mutex_lock(&peers_mutex);
    forget_predecessor(index);
    if (peers[index].pidfd <= 0)
        peers[index].pidfd = proc_open_pidfd(index);
    int fd = peers[index].pidfd;
    pthread_mutex_unlock(&peers_mutex);
    return fd;
}

int proc_memory(unsigned index)
{
    pthread_mutex_lock(&peers_mutex);
    forget_predecessor(index);
    if (peers[index].memory <= 0)
        peers[index].memory = move_up(proc_open(index, "mem", O_RDWR));
    int fd = peers[index].memory;
    pthread_mutex_unlock(&peers_mutex);
    return fd;
}

/* ---- life and death ---- */

/* The slot of this process before exec, which keeps pid and start time. */
static bool is_former_self(unsigned index)
{
    return (int)index != proc_self && proc_slot(index)->pid == getpid();
}

static bool check_by_pid(unsigned index)
{
    struct pollfd p = { .events = POLLIN };

    if (!proc_is_near(index))
        return true;
    if (is_former_self(index))
        return false;
    p.fd = proc_pidfd(index);
    if (p.fd > 0)
        return poll(&p, 1, 0) <= 0; /* < 0: interrupted by a signal, assume that it runs */
    return is_same_process(proc_slot(index)); /* no pidfds here, or no descriptors left */
}

static bool check_with_kernel(unsigned index)
{
    enum proc_lock_state state =
        proc_slot(index)->locked ? proc_lock_state(segment_fd(), index) : PROC_LOCK_UNKNOWN;

    return state == PROC_LOCK_UNKNOWN ? check_by_pid(index) : state == PROC_LOCK_HELD;
}

static bool has_ended(unsigned index)
{
    if ((int)index == proc_self)
        return false;
    uint32_t word = proc_word(index);
    uint64_t now = coarse_now_ns();
    if (load_acquire(&peers[index].seen_word) == word &&
        now - load_relaxed(&peers[index].seen_at) < LIVENESS_INTERVAL_NS)
        return false;
    if (!check_with_kernel(index)) {
        store_relaxed(&peers[index].seen_word, 0);
        return true;
    }
    store_relaxed(&peers[index].seen_at, now);
    store_release(&peers[index].seen_word, word);
    return false;
}

bool proc_runs(unsigned index)
{
    if (index >= MAX_PROCS)
        return false;
    return proc_has_threads(load_relaxed(&proc_slot(index)->state)) && !has_ended(index);
}

bool proc_alive(unsigned index)
{
    return index < MAX_PROCS && load_relaxed(&proc_slot(index)->state) == PROC_ALIVE &&
           !has_ended(index);
}

static bool runs_by_lock_or_pid(int fd, unsigned index)
{
    enum proc_lock_state state =
        proc_slot(index)->locked ? proc_lock_state(fd, index) : PROC_LOCK_UNKNOWN;

    if (state != PROC_LOCK_UNKNOWN)
        return state == PROC_LOCK_HELD;
    return !proc_is_near(index) || is_same_process(proc_slot(index));
}

bool proc_any_alive(int fd)
{
    for (unsigned i = 0; i < load_acquire(&seg->proc_high) && i < MAX_PROCS; i++)
        if (load_acquire(&proc_slot(i)->state) == PROC_ALIVE && runs_by_lock_or_pid(fd, i))
            return true;
    return false;
}

bool proc_any_staying(void)
{
    for (unsigned i = 0; i < load_acquire(&seg->proc_high) && i < MAX_PROCS; i++) {
        struct proc_slot *slot = &seg->procs[i];
        bool ending = false;
        if (load_acquire(&slot->state) != PROC_ALIVE)
            continue;
        if (proc_is_near(i) ? read_stat(slot->pid, &ending) == slot->start_time && !ending
                            : !has_ended(i))
            return true;
    }
    return false;
}

bool proc_word_alive(uint32_t word)
{
    unsigned index = (word >> 16) - 1;

    return index < MAX_PROCS && proc_word(index) == word && proc_alive(index);
}

bool proc_word_runs(uint32_t word)
{
    unsigned index = (word >> 16) - 1;

    return index < MAX_PROCS && proc_word(index) == word && proc_runs(index);
}

bool proc_pid_runs(pid_t pid)
{
    if (kill(pid, 0) && errno == ESRCH)
        return false;
    return start_time_of(pid) || !start_time_of(getpid()); /* without /proc, assume that it runs */
}

/* ---- joining and leaving ---- */

/* A slot behind proc_high may have no memory yet. */
static bool is_free(unsigned index)
{
    return index >= load_acquire(&seg->proc_high) ||
           load_acquire(&proc_slot(index)->state) == PROC_FREE;
}

static int find_free(void)
{
    for (unsigned i = 0; i < MAX_PROCS; i++)
        if (is_free(i))
            return i;
    return -1;
}

/* The slot is ours alone: its state changes last. */
static void fill_slot(unsigned index, unsigned node, bool locked)
{
    struct proc_slot *slot = proc_slot(index);

    atomic_fetch_add(&slot->generation, 1);
    slot->pid = getpid();
    slot->start_time = start_time_of(slot->pid);
    slot->pid_namespace = namespace_of("/proc/self/ns/pid");
    slot->user_namespace = namespace_of("/proc/self/ns/user");
    slot->locked = locked;
    slot->wake_by_name = wake_file_needed();
    slot->wake_files = 0;
    slot->node = node;
    store_relaxed(&slot->attention, 0);
    store_relaxed(&slot->doorbell, 0);
    store_relaxed(&slot->agent_wanted, 0);
    store_relaxed(&slot->agent_running, AGENT_OFF);
    store_relaxed(&slot->swaps, 0);
    store_relaxed(&slot->maps_memory, 0);
    store_relaxed(&slot->share_asked, 0);
    store_relaxed(&slot->copy.state, COPY_IDLE);
    for (unsigned d = 0; d < MAX_OPEN_DEVICES; d++)
        store_relaxed(&slot->open[d].used, 0);
    for (unsigned t = 0; t < MAX_THREAD_LINES; t++) {
        store_relaxed(&slot->threads[t].epoch, 0);
        store_relaxed(&slot->threads[t].used, 0);
    }
    for (uint32_t high = load_relaxed(&seg->proc_high); index >= high;)
        if (atomic_compare_exchange_strong(&seg->proc_high, &high, index + 1))
            break;
    store_release(&slot->state, PROC_ALIVE);
}

/* Returns the slot, or -1 with errno. */
static int fill_if_reserved(unsigned index, unsigned node, bool locked)
{
    int err = segment_reserve_procs(index + 1);

    if (err) {
        errno = err;
        return -1;
    }
    fill_slot(index, node, locked);
    return index;
}

/* Without the kernel's locks, a lock in the segment orders those who join. */
static int claim_by_pid(unsigned node)
{
    shm_lock_by_pid(&seg->proc_lock);
    int index = find_free();
    if (index >= 0)
        index = fill_if_reserved(index, node, false);
    else
        errno = EUSERS;
    shm_unlock(&seg->proc_lock);
    return index;
}

/* Returns the slot, or -1 with errno. */
static int claim_slot(unsigned node)
{
    int index = proc_lock_claim(is_free);

    if (index >= 0)
        return fill_if_reserved(index, node, true);
    if (errno == EUSERS)
        return -1;
    log_info("no lock on the segment (%s): processes are known by their pids", strerror(errno));
    return claim_by_pid(node);
}

/* A process of another namespace can be reached only if it has prepared for that. */
static int meet_far_process(unsigned index)
{
    struct proc_slot *slot = proc_slot(index);

    if (hca_engine->base_address) {
        log_error(
            "process %d of fabric '%s' is in another PID or user namespace: a modelled fabric "
            "needs one for all; use another --fabric here",
            slot->pid, segment_config()->name);
        return EXDEV;
    }
    if (!slot->locked || !proc_slot(proc_self)->locked ||
        (!slot->wake_by_name && !load_relaxed(&slot->agent_running))) {
        log_error(
            "process %d of fabric '%s' is in another PID or user namespace and cannot be woken "
            "from here: start it with 'verbena run --copy agent', or use another --fabric here",
            slot->pid, segment_config()->name);
        return EXDEV;
    }
    atomic_store(&slot->agent_wanted, 1);
    proc_attention(index);
    return 0;
}

static int meet_others(void)
{
    int err = 0;

    for (unsigned i = 0; !err && i < load_acquire(&seg->proc_high) && i < MAX_PROCS; i++)
        if ((int)i != proc_self && !proc_is_near(i) && proc_alive(i))
            err = meet_far_process(i);
    return err;
}

static void clear_directory(_Atomic uint64_t *dir, unsigned entries, unsigned proc,
                            void (*before)(uint64_t chunk))
{
    for (unsigned i = 0; i < entries; i++) {
        uint64_t offset = load_relaxed(&dir[i]);
        uint64_t unit = offset >> UNIT_SHIFT;
        if (!offset || unit >= MAX_UNITS || load_relaxed(&seg->unit_owner[unit]) != proc + 1)
            continue;
        if (before)
            before(offset);
        store_release(&dir[i], 0);
    }
}

static void make_unfindable(unsigned index)
{
    clear_directory(seg->qp_dir, QP_CHUNKS, index, traffic_retire_chunk);
    clear_directory(seg->srq_dir, SRQ_CHUNKS, index, NULL);
    clear_directory(seg->mr_dir, MR_CHUNKS, index, NULL);
    atomic_fetch_add(&seg->share_drops, 1);
}

/* Makes the objects of a dead process unfindable, waits for peers that had found them, and frees
 * them. If the reaper dies meanwhile, or a stopped thread may still write there, the slot stays
 * PROC_DEAD and the next reaper starts again. */
static void free_dead_process(unsigned index)
{
    struct proc_slot *slot = proc_slot(index);

    make_unfindable(index);
    atomic_fetch_add(&seg->reap_count, 1);
    if (!epoch_grace())
        return;
    wake_file_remove(index);
    arena_free_owner(index);
    atomic_fetch_add(&slot->generation, 1);
    store_release(&slot->state, PROC_FREE);
}

static bool has_died(unsigned index)
{
    uint32_t state = load_acquire(&proc_slot(index)->state);

    return proc_has_threads(state) && !check_with_kernel(index);
}

static void reap_if_dead(unsigned index)
{
    struct proc_slot *slot = proc_slot(index);

    if ((int)index == proc_self || (load_acquire(&slot->state) != PROC_DEAD && !has_died(index)))
        return;
    shm_lock(&seg->proc_lock);
    if (has_died(index)) {
        log_info("process %d has died: freeing its objects", slot->pid);
        store_release(&slot->state, PROC_DEAD);
    }
    if (load_acquire(&slot->state) == PROC_DEAD)
        free_dead_process(index);
    shm_unlock(&seg->proc_lock);
    notify_forget_process(index);
}

void proc_reap_dead(void)
{
    for (unsigned i = 0; i < load_acquire(&seg->proc_high) && i < MAX_PROCS; i++)
        reap_if_dead(i);
}

/* For a process that joins: it checks some of the others, so that the joins of many processes do not
 * cost their square. */
static void reap_some(void)
{
    unsigned high = load_acquire(&seg->proc_high);

    high = high < MAX_PROCS ? high : MAX_PROCS;
    for (unsigned i = 1; i < high && i <= REAP_AT_JOIN; i++)
        reap_if_dead((proc_self + i) % high);
}

int proc_join(unsigned node)
{
    memset(peers, 0, sizeof(peers));
#ifdef PR_SET_PTRACER
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* lets peers copy under Yama's scope 1 */
#endif
    epoch_choose_fences();
    int index = claim_slot(node);
    if (index < 0 && errno == EUSERS) {
        proc_reap_dead();
        index = claim_slot(node);
    }
    if (index < 0) {
        int err = errno;

        if (err == EUSERS)
            log_error("the fabric is full: it has %d processes, the maximum", MAX_PROCS);
        return err;
    }
    proc_self = index;
    int err = meet_others();
    if (!err)
        err = epoch_init();
    if (err) {
        store_release(&proc_slot(index)->state, PROC_DEAD);
        proc_self = -1;
        return err;
    }
    spare_fd_keep();
    reap_some();
    return 0;
}

/* Every waiting process checks all others: with many processes, each checks less often. */
void proc_reap_periodically(void)
{
    static _Atomic uint64_t next;
    uint64_t now = now_ns(), due = load_relaxed(&next);
    uint64_t interval = load_relaxed(&seg->proc_high) * REAP_INTERVAL_NS;

    if (now >= due && atomic_compare_exchange_strong(&next, &due, now + interval))
        proc_reap_dead();
}

void proc_leave(void)
{
    store_release(&proc_slot(proc_self)->state, PROC_LEAVING);
    make_unfindable(proc_self);
    wake_file_remove(proc_self);
}

void proc_exec_begin(void)
{
    store_release(&proc_slot(proc_self)->state, PROC_EXEC);
}

void proc_exec_failed(void)
{
    store_release(&proc_slot(proc_self)->state, PROC_ALIVE);
}

void proc_attention(unsigned index)
{
    struct proc_slot *slot = proc_slot(index);

    atomic_fetch_add(&slot->attention, 1);
    atomic_fetch_add(&slot->doorbell, 1);
    syscall(SYS_futex, &slot->doorbell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
