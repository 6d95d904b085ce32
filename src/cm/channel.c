/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/cm.h"

#include "hca/notify.h"
#include "hca/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define POLL_INTERVAL_MS 50

/* epoll data: one of these, or a struct cm_watch. */
static char eventfd_mark, timerfd_mark;

static int add_source(struct cm_channel *channel, int fd, void *mark)
{
    struct epoll_event ev = { .events = EPOLLIN, .data.ptr = mark };

    return epoll_ctl(channel->channel.fd, EPOLL_CTL_ADD, fd, &ev);
}

struct cm_channel *channel_create(void)
{
    struct cm_channel *ch = calloc(1, sizeof(*ch));

    if (!ch)
        return NULL;
    ch->owner = getpid();
    ch->events_end = &ch->events;
    ch->timerfd = -1;
    ch->channel.fd = epoll_create1(EPOLL_CLOEXEC);
    if (ch->channel.fd < 0)
        goto free_channel;
    ch->eventfd = notify_create(&ch->notify);
    if (ch->eventfd < 0)
        goto close_epoll;
    if (fcntl(ch->eventfd, F_SETFL, O_NONBLOCK) || add_source(ch, ch->eventfd, &eventfd_mark))
        goto close_eventfd;
    return ch;

close_eventfd:
    notify_close(ch->eventfd, ch->notify);
close_epoll:
    close(ch->channel.fd);
free_channel:
    free(ch);
    return NULL;
}

static void free_watch(struct cm_watch *watch)
{
    if (watch->pidfd >= 0)
        close(watch->pidfd);
    free(watch);
}

/* Some programs exit while one thread still waits for events and another destroys the channel. A
 * destroyed channel is kept for a while, and as long as a thread waits in it. */
static void retire(struct cm_channel *channel)
{
    static struct cm_channel *retired[64];
    static unsigned next;
    struct cm_channel **slot = &retired[next++ % ARRAY_SIZE(retired)];

    channel->destroyed = true;
    if (*slot && !(*slot)->waiters)
        free(*slot);
    *slot = channel;
}

void channel_destroy(struct cm_channel *channel)
{
    struct cm_event *event;
    struct cm_watch *watch;

    while ((event = channel->events)) {
        channel->events = event->next;
        free(event);
    }
    while ((watch = channel->watches)) {
        channel->watches = watch->next;
        free_watch(watch);
    }
    if (channel->timerfd >= 0)
        close(channel->timerfd);
    notify_close(channel->eventfd, channel->notify);
    close(channel->channel.fd);
    retire(channel);
}

/* ---- ids of a channel ---- */

void channel_add_id(struct cm_channel *channel, struct cm_id *cm)
{
    cm->channel = channel;
    cm->id.channel = &channel->channel;
    cm->next_on_channel = channel->ids;
    cm->channel_link = &channel->ids;
    if (channel->ids)
        channel->ids->channel_link = &cm->next_on_channel;
    channel->ids = cm;
}

void channel_remove_id(struct cm_id *cm)
{
    *cm->channel_link = cm->next_on_channel;
    if (cm->next_on_channel)
        cm->next_on_channel->channel_link = cm->channel_link;
}

/* ---- queued events ---- */

static void raise_channel(struct cm_channel *channel)
{
    uint64_t one = 1;

    while (write(channel->eventfd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

static void calm_channel(struct cm_channel *channel)
{
    uint64_t one;

    while (read(channel->eventfd, &one, sizeof(one)) > 0 || errno == EINTR)
        ;
}

void channel_push(struct cm_channel *channel, struct cm_event *event)
{
    event->next = NULL;
    *channel->events_end = event;
    channel->events_end = &event->next;
    raise_channel(channel);
}

static struct cm_event *take_event(struct cm_channel *channel, struct cm_event **at)
{
    struct cm_event *event = *at;

    *at = event->next;
    if (channel->events_end == &event->next)
        channel->events_end = at;
    return event;
}

struct cm_event *channel_pop(struct cm_channel *channel)
{
    struct cm_event *event = channel->events;

    if (event)
        take_event(channel, &channel->events);
    if (!channel->events)
        calm_channel(channel);
    return event;
}

struct cm_event *channel_pop_of(struct cm_channel *channel, struct cm_id *owner)
{
    for (struct cm_event **at = &channel->events; *at; at = &(*at)->next) {
        if ((*at)->owner != owner)
            continue;
        struct cm_event *event = take_event(channel, at);
        if (!channel->events)
            calm_channel(channel);
        return event;
    }
    return NULL;
}

void channel_move_events(struct cm_channel *from, struct cm_channel *to, struct cm_id *owner)
{
    struct cm_event *event;

    while ((event = channel_pop_of(from, owner)))
        channel_push(to, event);
}

/* ---- death of peers ---- */

static struct cm_watch *find_watch(struct cm_channel *channel, const struct cm_peer *peer)
{
    for (struct cm_watch *w = channel->watches; w; w = w->next)
        if (w->peer.proc == peer->proc && w->peer.generation == peer->generation)
            return w;
    return NULL;
}

/* Returns 0 or an errno value; ESRCH: the peer is dead already. Its slot is checked after the pidfd
 * has been opened, because the pid may have been reused before. */
static int open_pidfd(const struct cm_peer *peer, int *pidfd)
{
    int fd = proc_is_near(peer->proc) ? (int)syscall(SYS_pidfd_open, proc_slot(peer->proc)->pid, 0)
                                      : (errno = EXDEV, -1);
    int err = fd < 0 ? errno : 0;

    if (load_acquire(&proc_slot(peer->proc)->generation) != peer->generation)
        err = ESRCH;
    if (err && fd >= 0)
        close(fd);
    *pidfd = err ? -1 : fd;
    return err;
}

static struct cm_watch *make_watch(struct cm_channel *channel, const struct cm_peer *peer)
{
    struct cm_watch *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->peer = *peer;
    if (open_pidfd(peer, &w->pidfd) == ESRCH) {
        free(w);
        return NULL;
    }
    if (w->pidfd >= 0 && add_source(channel, w->pidfd, w)) {
        close(w->pidfd);
        w->pidfd = -1;
    }
    w->next = channel->watches;
    channel->watches = w;
    return w;
}

bool channel_watch(struct cm_id *cm)
{
    if (cm->watch || (int)cm->peer.proc == proc_self)
        return true;
    struct cm_watch *w = find_watch(cm->channel, &cm->peer);
    if (!w && !(w = make_watch(cm->channel, &cm->peer)))
        return false;
    w->ids++;
    cm->watch = w;
    return true;
}

void channel_unwatch(struct cm_id *cm)
{
    struct cm_watch *w = cm->watch;

    cm->watch = NULL;
    if (!w || --w->ids)
        return;
    for (struct cm_watch **at = &cm->channel->watches; *at; at = &(*at)->next) {
        if (*at == w) {
            *at = w->next;
            break;
        }
    }
    if (w->pidfd >= 0)
        epoll_ctl(cm->channel->channel.fd, EPOLL_CTL_DEL, w->pidfd, NULL);
    free_watch(w);
}

static void bury_peer(struct cm_channel *channel, struct cm_watch *w)
{
    struct cm_id *next;

    for (struct cm_id *cm = channel->ids; cm; cm = next) {
        next = cm->next_on_channel;
        if (cm->watch == w)
            connect_peer_died(cm); /* the last id frees the watch */
    }
}

bool channel_must_poll(const struct cm_channel *channel)
{
    for (const struct cm_watch *w = channel->watches; w; w = w->next)
        if (w->pidfd < 0)
            return true;
    return false;
}

static void look_at_unwatchable(struct cm_channel *channel)
{
    struct cm_watch *next;

    for (struct cm_watch *w = channel->watches; w; w = next) {
        next = w->next;
        if (w->pidfd < 0 && !mailbox_peer_alive(&w->peer))
            bury_peer(channel, w);
    }
}

/* ---- timers ---- */

static void arm_timer(struct cm_channel *channel, uint64_t due)
{
    struct itimerspec when = { .it_value = { due / 1000000000, due % 1000000000 } };

    if (due && channel->timerfd < 0) {
        channel->timerfd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
        if (channel->timerfd >= 0)
            add_source(channel, channel->timerfd, &timerfd_mark);
    }
    if (channel->timerfd >= 0)
        timerfd_settime(channel->timerfd, TFD_TIMER_ABSTIME, &when, NULL);
    channel->timer_due = due;
}

static void arm_for_earliest(struct cm_channel *channel)
{
    uint64_t earliest = 0;

    for (struct cm_id *cm = channel->ids; cm; cm = cm->next_on_channel)
        if (cm->due && (!earliest || cm->due < earliest))
            earliest = cm->due;
    arm_timer(channel, earliest);
}

void channel_set_due(struct cm_id *cm, uint64_t due)
{
    struct cm_channel *channel = cm->channel;
    uint64_t old = cm->due;

    cm->due = due;
    if (due && (!channel->timer_due || due < channel->timer_due))
        arm_timer(channel, due);
    else if (old && old == channel->timer_due)
        arm_for_earliest(channel);
}

static void timers_over(struct cm_channel *channel)
{
    uint64_t now = now_ns();

    for (struct cm_id *cm = channel->ids; cm; cm = cm->next_on_channel) {
        if (cm->due && cm->due <= now) {
            cm->due = 0;
            connect_timer_over(cm);
        }
    }
    arm_for_earliest(channel);
}

/* ---- waiting ---- */

void channel_check(struct cm_channel *channel)
{
    struct epoll_event ready[8];
    int n = epoll_wait(channel->channel.fd, ready, ARRAY_SIZE(ready), 0);
    bool timer = false;

    for (int i = 0; i < n; i++) {
        if (ready[i].data.ptr == &timerfd_mark)
            timer = true;
        else if (ready[i].data.ptr != &eventfd_mark)
            bury_peer(channel, ready[i].data.ptr);
    }
    if (channel_must_poll(channel))
        look_at_unwatchable(channel);
    if (timer)
        timers_over(channel);
}

/* Programs whose signal handlers all use SA_RESTART expect no EINTR here. */
static bool handlers_restart(void)
{
    struct sigaction action;

    for (int sig = 1; sig <= SIGRTMAX; sig++)
        if (sigaction(sig, NULL, &action) == 0 && action.sa_handler != SIG_DFL &&
            action.sa_handler != SIG_IGN && !(action.sa_flags & SA_RESTART))
            return false;
    return true;
}

int channel_wait(struct cm_channel *channel, bool must_poll)
{
    struct pollfd p = { .fd = channel->channel.fd, .events = POLLIN };
    int flags = fcntl(p.fd, F_GETFL);

    if (flags < 0)
        return -1;
    notify_serve_if_wanted();
    if (flags & O_NONBLOCK) {
        errno = EAGAIN;
        return -1;
    }
    if (poll(&p, 1, must_poll ? POLL_INTERVAL_MS : -1) < 0)
        return errno == EINTR && handlers_restart() ? 0 : -1;
    return 0;
}

void channel_enter(struct cm_channel *channel)
{
    cm_lock();
    channel->waiters++;
    cm_unlock();
}

void channel_leave(struct cm_channel *channel)
{
    cm_lock();
    bool destroyed = channel->destroyed;
    channel->waiters--;
    cm_unlock();
    while (destroyed)
        pause();
}

/* ---- exported ---- */

struct rdma_event_channel *rdma_create_event_channel(void)
{
    int err = cm_attach();

    if (err) {
        errno = err;
        return NULL;
    }
    struct cm_channel *ch = channel_create();
    return ch ? &ch->channel : NULL;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
    if (!channel)
        return;
    cm_lock();
    channel_destroy(to_channel(channel));
    cm_unlock();
}
