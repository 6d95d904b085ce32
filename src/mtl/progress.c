/* SPDX-License-Identifier: BSD-2-Clause */
#include "mtl/progress.h"

#include "mtl/connection.h"
#include "mtl/log.h"
#include "mtl/rendezvous.h"
#include "mtl/rma.h"
#include "mtl/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#define NAP_MS      1  /* between two looks whether the program still polls */
#define LOOK_RELAXS 20 /* longer than a poll of the program takes */

/* Progress threads of peers run on the cores of processes that wait. */
#define POLLS_BEFORE_YIELD 32

static struct {
    bool running;
    pthread_t thread;
    int wake[2]; /* a pipe */
    atomic_bool stops;
    atomic_bool armed;   /* the thread will wake up if there is something to answer */
    atomic_uint polls;   /* by threads of the program */
    atomic_uint left_at; /* value of 'polls' when the program last asked for a wake-up */
    atomic_uint waits;   /* threads of the program that sleep inside MPI */
} helper = { .wake = { -1, -1 } };

static bool is_wanted(void)
{
    return mtl.parameters.progress_thread && !recording;
}

struct ibv_comp_channel *progress_channel(struct ibv_context *context)
{
    struct ibv_comp_channel *channel;

    if (!is_wanted() || vtime.on)
        return NULL;
    channel = ibv_create_comp_channel(context);
    if (channel)
        fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
    return channel;
}

int progress_open(void)
{
    if (!is_wanted() || vtime.on)
        return -1;
    if (pipe2(helper.wake, O_CLOEXEC | O_NONBLOCK)) {
        mtl_log("no progress thread: cannot create a pipe: %s", strerror(errno));
        return -1;
    }
    return helper.wake[1];
}

/* ---- when to wake up ---- */

static void arm(void)
{
    store_relaxed(&helper.armed, true);
    shared_arm();
    for (uint32_t i = 0; i < devices.count; i++)
        ibv_req_notify_cq(devices.device[i].cq, !rendezvous_awaits_completions());
}

bool progress_arm(void)
{
    if (!helper.running || vtime.on)
        return false;
    store_relaxed(&helper.left_at, load_relaxed(&helper.polls));
    if (!load_relaxed(&helper.armed))
        arm();
    return true;
}

bool progress_wait(uint32_t changes, uint64_t until)
{
    bool changed;

    atomic_fetch_add_explicit(&helper.waits, 1, memory_order_relaxed);
    changed = vtime.spin(changes, until);
    atomic_fetch_sub_explicit(&helper.waits, 1, memory_order_relaxed);
    return changed;
}

void progress_polled(void)
{
    uint32_t polls = load_relaxed(&helper.polls) + 1;

    store_relaxed(&helper.polls, polls);
    if (helper.running && polls % POLLS_BEFORE_YIELD == 0)
        sched_yield();
}

/* ---- the thread, in real time ---- */

static void take_events(void)
{
    char bytes[64];

    while (read(helper.wake[0], bytes, sizeof(bytes)) > 0)
        ;
    for (uint32_t i = 0; i < devices.count; i++) {
        struct ibv_cq *cq;
        void *context;

        while (devices.device[i].channel &&
               !ibv_get_cq_event(devices.device[i].channel, &cq, &context))
            ibv_ack_cq_events(cq, 1);
    }
}

/* A program that polls handles everything itself. */
static bool program_polls(void)
{
    uint32_t polls = load_relaxed(&helper.polls);

    if (polls == load_relaxed(&helper.left_at))
        return false;
    for (int i = 0; i < LOOK_RELAXS; i++)
        cpu_relax();
    return load_relaxed(&helper.polls) != polls;
}

/* One-sided operations complete requests of Open MPI at once. Only with MPI_THREAD_MULTIPLE may any
 * thread do that. */
static void poll_all(void)
{
    int count;

    while ((!rma_in_use() || mtl.multiple) && (count = module_poll()) > 0)
        mtl.counters.thread_messages += count;
}

/* Returns false if long messages are under way while the program is inside MPI. Unless the program
 * asks for a wake-up before it leaves, the caller must look again. */
static bool answer(void)
{
    store_relaxed(&helper.armed, false);
    if (program_polls() || !spin_trylock(&mtl.lock)) {
        take_events();
        return !rendezvous_in_progress();
    }
    poll_all();
    take_events(); /* those of the next wake-up come after arm() */
    if (rendezvous_in_progress()) {
        arm();
        poll_all();
    }
    spin_unlock(&mtl.lock);
    return true;
}

static void *help(void *unused)
{
    struct pollfd fds[1 + DEVICES_MAX] = { { .fd = helper.wake[0], .events = POLLIN } };
    int timeout = -1;

    for (uint32_t i = 0; i < devices.count; i++)
        fds[1 + i] =
            (struct pollfd){ .fd = devices.device[i].channel ? devices.device[i].channel->fd : -1,
                             .events = POLLIN };
    for (;;) {
        poll(fds, 1 + devices.count, timeout);
        if (load_acquire(&helper.stops))
            return NULL;
        timeout = answer() ? -1 : NAP_MS;
    }
}

/* ---- the thread, in virtual time ---- */

/* A thread of the program that waits inside MPI sees each change, too, and handles it. */
static void *help_in_virtual_time(void *unused)
{
    while (!load_acquire(&helper.stops)) {
        uint32_t changes = vtime.changes();

        if (!load_relaxed(&helper.waits)) {
            vtime.compute(mtl.costs.wake + 2 * mtl.costs.event_call);
            mtl_wait_for_lock();
            changes = vtime.changes();
            poll_all();
            spin_unlock(&mtl.lock);
            if (mtl.done)
                vtime.memory_written(getpid());
        }
        vtime.spin(changes, connections_next_wireup());
    }
    return NULL;
}

/* ---- start and end ---- */

/* If the program is bound to some cores, those are the busy ones: the thread runs on the others. */
static void choose_cores(pthread_t thread)
{
    cpu_set_t own, all, others;

    memset(&all, 0xff, sizeof(all));
    if (sched_getaffinity(0, sizeof(own), &own) ||
        pthread_setaffinity_np(thread, sizeof(all), &all) ||
        pthread_getaffinity_np(thread, sizeof(all), &all))
        return;
    CPU_XOR(&others, &all, &own);
    CPU_AND(&others, &others, &all);
    if (CPU_COUNT(&others))
        pthread_setaffinity_np(thread, sizeof(others), &others);
}

void progress_start(void)
{
    sigset_t all, old;
    int err;

    if (!is_wanted() || helper.running || (!vtime.on && helper.wake[0] < 0))
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    err = pthread_create(&helper.thread, NULL, vtime.on ? help_in_virtual_time : help, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    helper.running = !err;
    if (err)
        mtl_log("no progress thread: %s", strerror(err));
    else if (!vtime.on)
        choose_cores(helper.thread);
}

void progress_stop(void)
{
    if (helper.running) {
        store_release(&helper.stops, true);
        if (vtime.on)
            vtime.memory_written(getpid());
        else if (write(helper.wake[1], "", 1) < 0)
            mtl_log("cannot end the progress thread: %s", strerror(errno));
        pthread_join(helper.thread, NULL);
    }
    helper.running = false;
    for (int i = 0; i < 2; i++) {
        if (helper.wake[i] >= 0)
            close(helper.wake[i]);
        helper.wake[i] = -1;
    }
}
