/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/epoch.h"

#include "hca/engine.h"
#include "hca/proc.h"
#include "util/log.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A thread stopped inside an epoch (debugger, SIGSTOP) must not block all others. */
#define GRACE_LIMIT_NS 5000000000ull
/* Every processor sees a plain store long before this. */
#define STORE_SETTLES_US 10000
/* A signal handler that interrupted an operation does not poll for so long. */
#define OVERWRITTEN_NS 1000000000ull

enum { AGENT_LINE = MAX_THREAD_LINES - 2, OVERFLOW_LINE = MAX_THREAD_LINES - 1 };

_Thread_local struct thread_line *epoch_line;
struct thread_line *epoch_overflow_line;

static pthread_mutex_t overflow_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t line_key;
static bool have_key;
static atomic_bool claimed[MAX_THREAD_LINES]; /* as `used`, where no other process can write */

/* ---- lines ---- */

static bool claim_line(unsigned index)
{
    return !load_relaxed(&claimed[index]) && !atomic_exchange(&claimed[index], true);
}

static void release_line(struct thread_line *line)
{
    store_release(&line->used, 0);
    store_release(&claimed[OVERFLOW_LINE - (epoch_overflow_line - line)], false);
}

/* Destructors of other keys may run after this one and use verbs: the thread then claims a line
 * again. In a forked child the value is a line of the parent, and epoch_line is not. */
static void return_line(void *line)
{
    if (line != epoch_line)
        return;
    epoch_line = NULL;
    release_line(line);
}

int epoch_init(void)
{
    if (!have_key && pthread_key_create(&line_key, return_line))
        return ENOMEM;
    have_key = true;
    epoch_line = NULL;
    memset(claimed, 0, sizeof(claimed));
    epoch_overflow_line = &proc_slot(proc_self)->threads[OVERFLOW_LINE];
    return 0;
}

void epoch_claim_line(void)
{
    static struct thread_line nobodys;
    struct proc_slot *slot;

    if (proc_self < 0 && segment_attach()) { /* a forked child that uses inherited objects */
        epoch_line = &nobodys;
        return;
    }
    slot = proc_slot(proc_self);

    for (unsigned i = 0; i < AGENT_LINE; i++) {
        if (claim_line(i)) {
            epoch_line = &slot->threads[i];
            atomic_store(&epoch_line->used, 1);
            pthread_setspecific(line_key, epoch_line);
            return;
        }
    }
    epoch_line = epoch_overflow_line;
    store_relaxed(&claimed[OVERFLOW_LINE], true);
    store_relaxed(&epoch_line->used, 1);
}

void epoch_claim_agent_line(void)
{
    epoch_line = &proc_slot(proc_self)->threads[AGENT_LINE];
    store_relaxed(&claimed[AGENT_LINE], true);
    store_relaxed(&epoch_line->used, 1);
}

void epoch_repair_lines(void)
{
    struct thread_line *lines = proc_slot(proc_self)->threads;

    for (unsigned i = 0; i < AGENT_LINE; i++)
        if (load_relaxed(&lines[i].used) && claim_line(i))
            release_line(&lines[i]);
}

void epoch_repair_own_line(void)
{
    static _Thread_local uint32_t seen;
    static _Thread_local uint64_t since;
    uint32_t epoch = epoch_line ? load_relaxed(&epoch_line->epoch) : 0;

    if (likely(!(epoch & 1)) || epoch_line == epoch_overflow_line)
        return;
    if (epoch != seen) {
        seen = epoch;
        since = coarse_now_ns();
    } else if (coarse_now_ns() - since > OVERWRITTEN_NS) {
        store_release(&epoch_line->epoch, epoch + 1);
    }
}

void epoch_shared_enter(void)
{
    pthread_mutex_lock(&overflow_mutex);
}

void epoch_shared_exit(void)
{
    pthread_mutex_unlock(&overflow_mutex);
}

/* ---- fences ---- */

/* Readers load strong_fences after their plain store. If a reader still loaded 0, its store is
 * visible to all processors when this returns. */
static void make_readers_fence(void)
{
    log_info("membarrier: %s: every operation of this fabric needs a fence", strerror(errno));
    atomic_store(&seg->strong_fences, 1);
    usleep(STORE_SETTLES_US);
}

void epoch_choose_fences(void)
{
    /* In virtual time one thread runs at a time: interrupting all processors costs more than fences. */
    if (hca_engine->charge)
        store_relaxed(&seg->strong_fences, 1);
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) &&
        !load_relaxed(&seg->strong_fences))
        make_readers_fence();
}

static void order_after_readers(void)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (load_relaxed(&seg->strong_fences))
        return;
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0))
        make_readers_fence();
    atomic_thread_fence(memory_order_seq_cst);
}

/* ---- grace periods ---- */

/* Lines of stopped threads, and their epochs: waiting for each once is enough. */
static _Atomic uint32_t given_up[MAX_PROCS][MAX_THREAD_LINES];
atomic_uint epoch_given_up; /* how many */

static bool stands_still(unsigned proc, unsigned index, uint32_t epoch)
{
    return load_acquire(&proc_slot(proc)->threads[index].epoch) == epoch && proc_runs(proc);
}

static void give_up(unsigned proc, unsigned index, uint32_t epoch)
{
    log_warn("a thread of process %d is stopped inside an operation: memory it may be using is "
             "kept until it continues",
             proc_slot(proc)->pid);
    if (!atomic_exchange(&given_up[proc][index], epoch))
        atomic_fetch_add(&epoch_given_up, 1);
}

/* False: the thread is still inside the epoch it was in. */
static bool await_line(unsigned proc, unsigned index, uint64_t started)
{
    struct thread_line *line = &proc_slot(proc)->threads[index];
    uint32_t seen = load_acquire(&line->epoch);

    if (!(seen & 1))
        return true;
    if (unlikely(load_relaxed(&given_up[proc][index]) == seen))
        return !stands_still(proc, index, seen);
    for (unsigned spins = 1; load_acquire(&line->epoch) == seen; spins++) {
        if (spins % 64)
            cpu_relax();
        else
            sched_yield();
        if (spins % 4096)
            continue;
        if (!proc_runs(proc))
            return true;
        if (now_ns() - started > GRACE_LIMIT_NS) {
            give_up(proc, index, seen);
            return false;
        }
    }
    return true;
}

/* The line of this thread alone: a signal handler that interrupted an operation must not wait for
 * it. */
static bool is_ours_alone(const struct thread_line *line)
{
    return line == epoch_line && line != epoch_overflow_line;
}

bool epoch_grace(void)
{
    uint64_t started = now_ns();
    bool complete = true;

    order_after_readers();
    for (unsigned p = 0; p < load_acquire(&seg->proc_high) && p < MAX_PROCS; p++) {
        struct proc_slot *slot = proc_slot(p);
        uint32_t state = load_acquire(&slot->state);
        if (!proc_has_threads(state))
            continue;
        for (unsigned t = 0; t < MAX_THREAD_LINES; t++)
            if (!is_ours_alone(&slot->threads[t]) && load_acquire(&slot->threads[t].used) &&
                !await_line(p, t, started))
                complete = false;
    }
    return complete;
}

void epoch_give_up_on(unsigned proc)
{
    for (unsigned t = 0; t < MAX_THREAD_LINES; t++) {
        uint32_t seen = load_acquire(&proc_slot(proc)->threads[t].epoch);
        if (seen & 1)
            give_up(proc, t, seen);
    }
}

/* ---- memory that stopped threads may still write to ---- */

struct retired {
    struct retired *next;
    void (*release)(void *object, uint64_t detail);
    void *object;
    uint64_t detail;
};

static struct retired *retired;
static pthread_mutex_t retired_mutex = PTHREAD_MUTEX_INITIALIZER;

static bool any_stands_still(void)
{
    unsigned left = load_acquire(&epoch_given_up);

    for (unsigned i = 0; left && i < MAX_PROCS * MAX_THREAD_LINES; i++) {
        unsigned proc = i / MAX_THREAD_LINES, index = i % MAX_THREAD_LINES;
        uint32_t epoch = load_relaxed(&given_up[proc][index]);

        if (!epoch)
            continue;
        if (stands_still(proc, index, epoch))
            return true;
        left--;
        if (atomic_compare_exchange_strong(&given_up[proc][index], &epoch, 0))
            atomic_fetch_sub(&epoch_given_up, 1);
    }
    return false;
}

static void release_all(struct retired *list)
{
    while (list) {
        struct retired *next = list->next;
        list->release(list->object, list->detail);
        free(list);
        list = next;
    }
}

void epoch_retire_slowly(void (*release)(void *object, uint64_t detail), void *object,
                         uint64_t detail)
{
    struct retired *all = NULL;
    bool keep;

    pthread_mutex_lock(&retired_mutex);
    keep = any_stands_still();
    if (keep) {
        struct retired *r = malloc(sizeof(*r));
        if (r) { /* else leak it until the process ends: better than using it twice */
            *r = (struct retired){ retired, release, object, detail };
            retired = r;
        }
    } else {
        all = retired;
        retired = NULL;
    }
    pthread_mutex_unlock(&retired_mutex);
    release_all(all);
    if (!keep)
        release(object, detail);
}

void epoch_forget(void)
{
    epoch_line = NULL;
    retired = NULL;
    if (load_relaxed(&epoch_given_up))
        memset(given_up, 0, sizeof(given_up));
    store_relaxed(&epoch_given_up, 0);
    pthread_mutex_init(&retired_mutex, NULL);
    pthread_mutex_init(&overflow_mutex, NULL);
}
