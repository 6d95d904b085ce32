/* SPDX-License-Identifier: BSD-2-Clause */
#include "dma/agent.h"

#include "dma/copy.h"
#include "dma/peer.h"
#include "hca/cq.h"
#include "hca/engine.h"
#include "hca/epoch.h"
#include "hca/notify.h"
#include "hca/proc.h"
#include "hca/qp.h"
#include "util/log.h"
#include "util/thread.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Most programs never start these threads: polling makes all progress.
 *  - The service thread starts when a WQE has to wait, because the program may sleep and not poll;
 *    or when peers cannot raise our descriptors themselves; or when a region is registered that
 *    peers may map once they use it much.
 *  - The copy agent starts when peers cannot access this process's memory. It only copies and
 *    never waits, so two processes may copy for each other at the same time.
 */

#define TICK_NS      500000
#define STACK_BYTES  (256 << 10)
#define LOOK_SECONDS 1 /* how long memory of a dead peer may stay mapped */

static pthread_mutex_t start_mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool sleeping;

struct helper {
    const char *name;
    void *(*body)(void *self);
    atomic_int running_in; /* process slot of the thread; differs in a forked child */
    atomic_bool stopping;
};

/* The thread sets `sleeping` before it checks for work; others publish work before they check
 * `sleeping`. */
static void sleep_until_needed(struct proc_slot *slot, uint32_t seen)
{
    struct timespec tick = { .tv_nsec = TICK_NS }, look = { .tv_sec = LOOK_SECONDS };

    atomic_store(&sleeping, true);
    bool waiting = load_relaxed(&hca_waiting);
    if (waiting)
        atomic_store(&sleeping, false);
    syscall(SYS_futex, &slot->doorbell, FUTEX_WAIT, seen,
            waiting           ? &tick
            : peer_maps_any() ? &look
                              : NULL,
            NULL, 0);
    atomic_store(&sleeping, false);
}

static void *serve(void *self)
{
    struct helper *helper = self;
    struct proc_slot *slot = proc_slot(proc_self);

    while (!load_relaxed(&helper->stopping)) {
        uint32_t seen = load_acquire(&slot->doorbell);
        if (load_relaxed(&hca_waiting))
            hca_engine->progress();
        if (qp_needs_attention())
            qp_handle_errors();
        if (load_relaxed(&slot->agent_running))
            notify_run_service_hooks();
        if (load_relaxed(&slot->share_asked) && hca_engine->share_memory)
            hca_engine->share_memory();
        proc_reap_periodically();
        peer_drop_withdrawn();
        if (load_acquire(&slot->doorbell) == seen)
            sleep_until_needed(slot, seen);
    }
    atomic_store(&helper->stopping, false);
    return NULL;
}

static void *copy_for_peers(void *self)
{
    struct helper *helper = self;
    struct proc_slot *slot = proc_slot(proc_self);

    epoch_claim_agent_line();
    while (!load_relaxed(&helper->stopping)) {
        uint32_t seen = load_acquire(&slot->doorbell);
        copy_serve_peer();
        if (load_acquire(&slot->doorbell) == seen)
            syscall(SYS_futex, &slot->doorbell, FUTEX_WAIT, seen, NULL, NULL, 0);
    }
    atomic_store(&helper->stopping, false);
    return NULL;
}

static struct helper service = { "service", serve, -1, false };
static struct helper agent = { "agent", copy_for_peers, -1, false };

static void stop_helper(struct helper *helper)
{
    uint64_t started = now_ns();

    if (load_relaxed(&helper->running_in) != proc_self)
        return;
    atomic_store(&helper->stopping, true);
    proc_attention(proc_self);
    while (load_acquire(&helper->stopping) && now_ns() - started < 1000000000ull)
        sched_yield();
    store_relaxed(&helper->running_in, -1);
}

void agent_stop(void)
{
    stop_helper(&service);
    stop_helper(&agent);
}

static void start_locked(struct helper *helper)
{
    if (load_relaxed(&helper->running_in) == proc_self || !proc_alive(proc_self))
        return; /* it runs already, or the process is leaving */
    int err = thread_start(helper->body, helper, STACK_BYTES);
    if (err)
        log_warn("cannot start the %s thread: %s", helper->name, strerror(err));
    else
        store_relaxed(&helper->running_in, proc_self);
}

static void start_helper(struct helper *helper)
{
    if (likely(load_relaxed(&helper->running_in) == proc_self))
        return;
    pthread_mutex_lock(&start_mutex);
    start_locked(helper);
    pthread_mutex_unlock(&start_mutex);
}

bool agent_is_running(void)
{
    return load_relaxed(&service.running_in) == proc_self;
}

void agent_serve(void)
{
    start_helper(&service);
}

void agent_watch(void)
{
    start_helper(&service);
    if (!atomic_load(&sleeping))
        return;
    struct proc_slot *slot = proc_slot(proc_self);
    atomic_fetch_add(&slot->doorbell, 1);
    syscall(SYS_futex, &slot->doorbell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void start_for(enum agent_use use)
{
    start_helper(&agent);
    agent_watch();
    atomic_store(&proc_slot(proc_self)->agent_running, use);
}

void agent_start(void)
{
    if (likely(load_relaxed(&proc_slot(proc_self)->agent_running)))
        return;
    log_info("a peer cannot reach this process: it copies for that peer, and wakes itself");
    start_for(AGENT_FOR_SOME);
}

int agent_init(void)
{
    bool asked_for;
    const char *why = copy_refused_because(&asked_for);

    if (why) {
        log_at(asked_for ? LOG_LEVEL_INFO : LOG_LEVEL_WARN,
               "peers cannot copy this process's memory (%s): it copies for them, slower", why);
        start_for(AGENT_FOR_ALL);
    } else if (proc_any_far()) {
        agent_start();
    }
    return 0;
}
