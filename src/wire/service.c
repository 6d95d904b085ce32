/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/wire.h"

#include "hca/proc.h"
#include "hca/qp.h"
#include "util/log.h"
#include "util/thread.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOOK_NS     300000 /* how often to look whether a program that polls still does */
#define LOOK_MAX_NS 10000000
#define LOOK_SHARE  16 /* a look takes at most so small a part of the time, on slow machines, too */
#define MANY_POLLS  10     /* in that time: the program receives soon enough by itself */
#define FEW_POLLS   2      /* a program that did so and now sends long messages still does */
#define ROUNDS      16 /* of receiving, until timers have their turn */
#define SLICE_NS    100000
#define YIELD_NS    50000 /* to a program that receives: this thread may have preempted it */
#define STACK_BYTES (512 << 10)

atomic_uint wire_service_polls;

static int wake_fd = -1;
static atomic_int running_in = -1; /* process slot of the thread; differs in a forked child */
static atomic_bool stopping;
static atomic_bool looks;
static _Atomic uint64_t next_timer = TRANSPORT_NEVER;

bool wire_service_looks(void)
{
    return load_relaxed(&looks);
}

void wire_service_wake(void)
{
    uint64_t one = 1;

    if (write(wake_fd, &one, sizeof(one)) < 0)
        log_debug("wire: %s", strerror(errno));
}

void wire_service_timer(uint64_t deadline)
{
    uint64_t before = load_relaxed(&next_timer);

    while (deadline < before)
        if (atomic_compare_exchange_weak(&next_timer, &before, deadline)) {
            wire_service_wake();
            return;
        }
}

static void run_timers(void)
{
    uint64_t now = now_ns();

    if (now < load_relaxed(&next_timer))
        return;
    atomic_store(&next_timer, TRANSPORT_NEVER);
    uint64_t next = wire_qp_timers(now), before = load_relaxed(&next_timer);
    while (next < before && !atomic_compare_exchange_weak(&next_timer, &before, next))
        ;
}

static void sleep_for(uint64_t ns)
{
    struct timespec time = { ns / 1000000000, ns % 1000000000 };

    nanosleep(&time, NULL);
}

static void wait_for_packets(void)
{
    struct pollfd fds[WIRE_PATHS + 2 * HCA_GIDS + 3];
    uint64_t now = now_ns(), due = load_relaxed(&next_timer), drained;
    struct timespec time = { 0 }, *until = NULL;
    unsigned count, paths = load_acquire(&wire_path_count);

    for (count = 0; count < paths; count++)
        fds[count] = (struct pollfd){ .fd = wire_paths[count].fd, .events = POLLIN };
    for (unsigned i = 0; i < wire_port.count; i++) {
        fds[count++] = (struct pollfd){ .fd = wire_port.gids[i].fd, .events = POLLIN };
        fds[count++] = (struct pollfd){ .fd = wire_port.gids[i].near_fd, .events = POLLIN };
    }
    fds[count++] = (struct pollfd){ .fd = wire_port.forward_fd, .events = POLLIN };
    fds[count++] = (struct pollfd){ .fd = wire_port.changes_fd, .events = POLLIN };
    fds[count] = (struct pollfd){ .fd = wake_fd, .events = POLLIN };
    if (due != TRANSPORT_NEVER) {
        uint64_t left = due > now ? due - now : 0;
        time = (struct timespec){ left / 1000000000, left % 1000000000 };
        until = &time;
    }
    ppoll(fds, count + 1, until, NULL);
    if (fds[count].revents && read(wake_fd, &drained, sizeof(drained)) < 0)
        log_debug("wire: %s", strerror(errno));
}

/* Whether the program has polled so often since `window` began that it receives by itself. */
struct window {
    uint64_t began;
    unsigned polls;
    bool program_polls;
};

static void watch_program(struct window *window)
{
    uint64_t now = now_ns();
    unsigned polls = load_relaxed(&wire_service_polls);

    unsigned enough = window->program_polls ? FEW_POLLS : MANY_POLLS;
    if (now - window->began < LOOK_NS && polls - window->polls < enough)
        return;
    window->program_polls =
        (polls - window->polls) * (uint64_t)LOOK_NS > (now - window->began) * enough;
    window->began = now;
    window->polls = polls;
}

/* The thread runs for microseconds: with a short slice, the scheduler lets it preempt a program
 * that spins. Kernels before 6.12 ignore the wish. */
static void ask_for_short_slices(void)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attr;

    if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) || attr.policy != SCHED_OTHER)
        return;
    attr.runtime = SLICE_NS;
    syscall(SYS_sched_setattr, 0, &attr, 0);
}

/* Until the next look at a program that polls: by what this thread has used since the last one. */
static uint64_t look_pause(void)
{
    static uint64_t used;
    struct timespec time = { 0 };
    uint64_t before = used, pause;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    used = time.tv_sec * 1000000000ull + time.tv_nsec;
    pause = (used - before) * LOOK_SHARE;
    return pause < LOOK_NS ? LOOK_NS : pause < LOOK_MAX_NS ? pause : LOOK_MAX_NS;
}

static void *serve(void *unused)
{
    struct window window = { 0 };

    ask_for_short_slices();

    while (!load_relaxed(&stopping)) {
        atomic_store(&looks, window.program_polls);
        wire_receive_answer(!window.program_polls);
        if (window.program_polls)
            sleep_for(look_pause());
        else if (wire_receive_is_busy())
            sleep_for(YIELD_NS); /* what it has not taken yet would wake this thread at once */
        else
            wait_for_packets();
        watch_program(&window);
        for (int i = 0; i < ROUNDS && !window.program_polls && wire_receive(!i); i++)
            if (!wire_receive_expects_more())
                wire_receive_answer(true);
        run_timers();
        wire_port_follow();
        if (qp_needs_attention())
            qp_handle_errors();
        proc_reap_periodically();
    }
    store_release(&stopping, false);
    return NULL;
}

int wire_service_start(void)
{
    int err;

    if (wake_fd >= 0)
        close(wake_fd);
    wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_fd < 0)
        return errno;
    store_relaxed(&stopping, false);
    err = thread_start(serve, NULL, STACK_BYTES);
    if (err)
        log_error("wire: cannot start the service thread: %s", strerror(err));
    else
        store_relaxed(&running_in, proc_self);
    return err;
}

void wire_service_stop(void)
{
    uint64_t started = now_ns();

    if (load_relaxed(&running_in) != proc_self)
        return;
    atomic_store(&stopping, true);
    wire_service_wake();
    while (load_acquire(&stopping) && now_ns() - started < 1000000000ull)
        sched_yield();
    store_relaxed(&running_in, -1);
}
