/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/mad_agent.h"

#include "cm/cm.h"
#include "hca/proc.h"
#include "util/log.h"
#include "util/spinlock.h"
#include "util/thread.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define INBOX       256 /* datagrams; more are lost, and repeated by their senders */
#define STACK_BYTES (256 << 10)
#define STOP_NS     1000000000ull

static struct spinlock inbox_lock;
static struct hca_mad inbox[INBOX];
static unsigned inbox_head, inbox_tail;

static pthread_mutex_t start_mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool runs, stopping;
static int wake_fd = -1;

void mad_agent_wake(void)
{
    uint64_t one = 1;

    if (write(wake_fd, &one, sizeof(one)) < 0)
        log_debug("cm: %s", strerror(errno));
}

/* ---- the inbox ---- */

static bool put(const struct hca_mad *mad)
{
    spin_lock(&inbox_lock);
    bool fits = inbox_tail - inbox_head < INBOX;
    if (fits)
        inbox[inbox_tail++ % INBOX] = *mad;
    spin_unlock(&inbox_lock);
    return fits;
}

static bool take(struct hca_mad *mad)
{
    spin_lock(&inbox_lock);
    bool found = inbox_head != inbox_tail;
    if (found)
        *mad = inbox[inbox_head++ % INBOX];
    spin_unlock(&inbox_lock);
    return found;
}

static uint64_t work(void)
{
    struct hca_mad mad;

    cm_lock();
    while (take(&mad))
        mad_receive(&mad);
    uint64_t next = mad_run_timers(now_ns());
    cm_unlock();
    return next;
}

/* ---- the thread ---- */

static void *serve(void *unused)
{
    struct pollfd fd = { .fd = wake_fd, .events = POLLIN };
    uint64_t drained;

    while (!load_acquire(&stopping)) {
        uint64_t due = work(), now = now_ns(), left = due > now ? due - now : 0;
        struct timespec time = { left / 1000000000, left % 1000000000 };

        ppoll(&fd, 1, due ? &time : NULL, NULL);
        if (read(wake_fd, &drained, sizeof(drained)) < 0 && errno != EAGAIN)
            log_debug("cm: %s", strerror(errno));
    }
    store_release(&runs, false);
    return NULL;
}

static int start_thread(void)
{
    int err;

    if ((wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        return errno;
    store_release(&runs, true);
    err = thread_start(serve, NULL, STACK_BYTES);
    if (err) {
        log_error("cm: cannot start a thread: %s", strerror(err));
        store_release(&runs, false);
        close(wake_fd);
    }
    return err;
}

int mad_agent_start(void)
{
    int err = 0;

    pthread_mutex_lock(&start_mutex);
    if (!load_acquire(&runs) && !load_acquire(&stopping))
        err = start_thread();
    pthread_mutex_unlock(&start_mutex);
    return err;
}

void mad_agent_forget(void)
{
    pthread_mutex_init(&start_mutex, NULL);
    inbox_lock = (struct spinlock){ 0 };
    inbox_head = inbox_tail;
    if (load_relaxed(&runs))
        close(wake_fd);
    store_relaxed(&runs, false);
}

/* ---- called by the engine ---- */

static unsigned owner(const struct hca_mad *mad)
{
    struct mad_message m;
    int proc;

    if (mad_decode(&m, mad->bytes))
        return proc_self;
    proc = mad_is_request(&m) ? binding_find_process(mad_port_space(&m), &m.message.dst)
           : m.remote_id      ? (int)mad_proc_of_id(m.remote_id)
                              : proc_self; /* no answer has told our id */
    return proc >= 0 && proc_alive(proc) ? (unsigned)proc : (unsigned)proc_self;
}

static void receive(const struct hca_mad *mad)
{
    struct mad_message m;
    const char *wrong;

    if (load_acquire(&runs)) {
        if (put(mad))
            mad_agent_wake();
        return;
    }
    if ((wrong = mad_decode(&m, mad->bytes)))
        log_debug("cm: dropped a datagram: %s", wrong);
    else
        mad_answer_stranger(mad, &m);
}

/* Peers learn that the connections end. */
static void leave(void)
{
    uint64_t started = now_ns();
    uint32_t cursor = 0;
    struct cm_id *cm;

    if (!load_acquire(&runs))
        return;
    store_release(&stopping, true);
    mad_agent_wake();
    while (load_acquire(&runs) && now_ns() - started < STOP_NS)
        sched_yield();
    if (!cm_lock_briefly())
        return;
    while ((cm = cm_next(&cursor)))
        connect_end(cm);
    cm_unlock();
}

__attribute__((constructor)) static void offer(void)
{
    static const struct hca_mad_agent agent = { .owner = owner,
                                                .receive = receive,
                                                .leave = leave };

    hca_mad_agent = &agent;
}
