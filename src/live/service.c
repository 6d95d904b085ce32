#include "live/live.h"

#include "hca/cq.h"
#include "hca/notify.h"
#include "hca/proc.h"
#include "hca/qp.h"
#include "util/log.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Most programs never have this thread: polling makes all progress there is. It starts
 *  - when a request has to wait, because the program may now sleep and not poll;
 *  - when peers cannot reach this process's memory or descriptors, and must ask.
 */

#define TICK_NS 500000

static pthread_mutex_t start_mutex = PTHREAD_MUTEX_INITIALIZER;
static int running_in = -1; /* process slot whose thread this is; fork leaves it behind */
static atomic_bool sleeping, stopping;

/* It says that it sleeps before it looks for work, whoever has work says so before it looks whether
 * the thread sleeps. */
static void sleep_until_needed(struct proc_slot *slot, uint32_t seen)
{
    struct timespec tick = { .tv_nsec = TICK_NS };

    atomic_store(&sleeping, true);
    bool waiting = retry_any_waiting();
    if (waiting)
        atomic_store(&sleeping, false);
    syscall(SYS_futex, &slot->doorbell, FUTEX_WAIT, seen, waiting ? &tick : NULL, NULL, 0);
    atomic_store(&sleeping, false);
}

static void *serve(void *unused)
{
    struct proc_slot *slot = proc_slot(proc_self);

    while (!load_relaxed(&stopping)) {
        uint32_t seen = load_acquire(&slot->doorbell);
        copy_serve_peer();
        if (retry_any_waiting())
            retry_progress();
        if (qp_needs_attention())
            qp_look_after_errors();
        if (load_relaxed(&slot->agent_running))
            notify_run_service_hooks();
        proc_reap_now_and_then();
        if (load_acquire(&slot->doorbell) == seen)
            sleep_until_needed(slot, seen);
    }
    atomic_store(&stopping, false);
    return NULL;
}

static void service_stop(void)
{
    uint64_t started = now_ns();

    if (running_in != proc_self)
        return;
    atomic_store(&stopping, true);
    proc_attention(proc_self);
    while (load_acquire(&stopping) && now_ns() - started < 1000000000ull)
        sched_yield();
    running_in = -1;
}

static void start_locked(void)
{
    sigset_t all, old;
    pthread_attr_t attr;
    pthread_t thread;

    if (running_in == proc_self || proc_self < 0)
        return;
    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, 256 << 10);
    pthread_sigmask(SIG_BLOCK, &all, &old); /* the program's signals are for its own threads */
    int err = pthread_create(&thread, &attr, serve, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    if (err)
        log_warn("no service thread: %s", strerror(err));
    else
        running_in = proc_self;
}

void service_watch(void)
{
    if (unlikely(running_in != proc_self)) {
        pthread_mutex_lock(&start_mutex);
        start_locked();
        pthread_mutex_unlock(&start_mutex);
    }
    if (!atomic_load(&sleeping))
        return;
    struct proc_slot *slot = proc_slot(proc_self);
    atomic_fetch_add(&slot->doorbell, 1);
    syscall(SYS_futex, &slot->doorbell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* From now on peers ask instead of trying. */
void service_start(void)
{
    service_watch();
    atomic_store(&proc_slot(proc_self)->agent_running, 1);
}

int service_init(void)
{
    bool asked_for;
    const char *why = copy_refused_because(&asked_for);

    if (why) {
        log_at(asked_for ? LOG_LEVEL_INFO : LOG_LEVEL_WARN,
               "peers cannot copy this process's memory (%s): it copies for them, slower", why);
        service_start();
    }
    return 0;
}

const struct hca_engine live_engine = {
    .name = "live",
    .send = retry_send,
    .progress = retry_progress,
    .drop = retry_drop,
    .start = service_init,
    .stop = service_stop,
    .serve_peers = service_start,
};
