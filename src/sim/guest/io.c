/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors. A call that would block polls first, then waits in virtual time until another guest
 * has done something that may make the descriptor ready. */
#undef _FORTIFY_SOURCE

#include "sim/guest/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static bool may_block(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && !(flags & O_NONBLOCK);
}

/* Regular files cost no virtual time: their contents come from the real world, and some, as in
 * /proc, differ from run to run. */
static bool is_file(int fd)
{
    struct stat status;

    return !fstat(fd, &status) && S_ISREG(status.st_mode);
}

/* Memory that the checks have taken away is given back: the kernel would refuse it. */
static void lend(const void *buffer, size_t size)
{
    guest_bypass++;
    vsched->memory_touched(buffer, size, NULL);
    guest_bypass--;
}

static void lend_list(const struct iovec *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        lend(list[i].iov_base, list[i].iov_len);
}

static uint32_t notifications_for(short events)
{
    return NOTIFY_DATA | (events & POLLOUT ? NOTIFY_SPACE : 0);
}

/* A pending signal interrupts even a call that does not wait. */
#define RETRY_EINTR(call)                     \
    ({                                        \
        int ready_;                           \
        do                                    \
            ready_ = (call);                  \
        while (ready_ < 0 && errno == EINTR); \
        ready_;                               \
    })

/* ---- what notifications are about ---- */

static __thread uint32_t key; /* of the descriptor that the current call uses */

static uint32_t port_of(const struct sockaddr_storage *address)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;

    if (address->ss_family == AF_INET)
        return ntohs(four->sin_port);
    return address->ss_family == AF_INET6 ? ntohs(six->sin6_port) : 0;
}

static int option_of(int fd, int name)
{
    int value = 0;
    socklen_t size = sizeof(value);

    return getsockopt(fd, SOL_SOCKET, name, &value, &size) ? 0 : value;
}

static uint32_t key_of_listener(uint32_t port)
{
    return port << 16;
}

/* Both ends of a TCP connection have the same key, as have a listener and who connects to it. */
static uint32_t key_of_socket(int fd)
{
    struct sockaddr_storage own, peer;
    socklen_t own_size = sizeof(own), peer_size = sizeof(peer);
    uint32_t a, b;

    if (option_of(fd, SO_PROTOCOL) != IPPROTO_TCP ||
        getsockname(fd, (struct sockaddr *)&own, &own_size))
        return 0;
    a = port_of(&own);
    if (option_of(fd, SO_ACCEPTCONN))
        return key_of_listener(a);
    if (getpeername(fd, (struct sockaddr *)&peer, &peer_size))
        return 0;
    b = port_of(&peer);
    return a < b ? a << 16 | b : b << 16 | a;
}

/* 0: unknown. */
static uint32_t key_of(int fd)
{
    struct stat status;
    uint32_t found = 0;
    int saved = errno;

    if (!fstat(fd, &status))
        found = S_ISFIFO(status.st_mode)   ? (uint32_t)status.st_ino
                : S_ISSOCK(status.st_mode) ? key_of_socket(fd)
                                           : 0;
    errno = saved;
    return found;
}

static void begin(int fd)
{
    guest_enter();
    vsched->charge(IO_CALL_NS);
    key = key_of(fd);
}

static const struct sched_reason tries = { "tries descriptors without blocking", -1, true };
static const struct sched_reason several = { "waits for one of several descriptors", -1, true };

/* Waits until a descriptor is ready or the deadline has passed. */
static int wait_for(struct pollfd *list, nfds_t count, uint64_t deadline,
                    const struct sched_reason *why)
{
    uint32_t notifications = NOTIFY_DATA;
    int ready;

    for (nfds_t i = 0; i < count; i++)
        notifications |= notifications_for(list[i].events);
    while ((ready = RETRY_EINTR(REAL(poll)(list, count, 0))) == 0 && vsched->now() < deadline)
        vsched->wait(deadline, notifications, why);
    if (ready > 0)
        vsched->found_ready();
    return ready;
}

static void wait_for_one(int fd, short events)
{
    struct pollfd one = { .fd = fd, .events = events };
    struct sched_reason why = { events & POLLIN ? "waits to read" : "waits to write", fd, true, key };

    wait_for(&one, 1, SCHED_NEVER, &why);
}

static void before_input(int fd, bool blocks)
{
    begin(fd);
    if (blocks && may_block(fd))
        wait_for_one(fd, POLLIN);
}

void io_wait(int fd, const char *what, bool outside)
{
    struct pollfd one = { .fd = fd, .events = POLLIN };
    struct sched_reason why = { what, -1, outside };

    begin(fd);
    if (may_block(fd))
        wait_for(&one, 1, SCHED_NEVER, &why);
    guest_leave();
}

/* Reading makes room for the writer. A thread that keeps polling in vain is put to sleep. */
static ssize_t after_input(ssize_t result)
{
    int saved = errno;

    if (result < 0 && saved == EAGAIN)
        vsched->poll_idle(IO_CALL_NS, &tries);
    else if (result > 0)
        vsched->notify(NOTIFY_SPACE, key, IO_LATENCY_NS);
    guest_leave();
    errno = saved;
    return result;
}

static ssize_t after_output(ssize_t result)
{
    int saved = errno;

    if (result < 0 && saved == EAGAIN)
        vsched->poll_idle(IO_CALL_NS, &tries);
    else if (result >= 0)
        vsched->notify(NOTIFY_DATA, key, IO_LATENCY_NS);
    guest_leave();
    errno = saved;
    return result;
}

/* ---- input ---- */

/* Reading no bytes never waits: programs ask in this way whether a descriptor can be read. */
EXPORT ssize_t read(int fd, void *buffer, size_t size)
{
    if (!IS_GUEST_CALL())
        return REAL(read)(fd, buffer, size);
    lend(buffer, size);
    if (is_file(fd))
        return REAL(read)(fd, buffer, size);
    before_input(fd, size != 0);
    return after_input(REAL(read)(fd, buffer, size));
}

EXPORT ssize_t readv(int fd, const struct iovec *list, int count)
{
    if (!IS_GUEST_CALL())
        return REAL(readv)(fd, list, count);
    lend_list(list, count);
    if (is_file(fd))
        return REAL(readv)(fd, list, count);
    before_input(fd, true);
    return after_input(REAL(readv)(fd, list, count));
}

/* MSG_WAITALL, in pieces as they arrive. */
static ssize_t receive_all(int fd, char *buffer, size_t size, int flags)
{
    size_t done = 0;

    while (done < size) {
        ssize_t piece;

        wait_for_one(fd, POLLIN);
        piece = REAL(recv)(fd, buffer + done, size - done, (flags & ~MSG_WAITALL) | MSG_DONTWAIT);
        if (piece < 0 && errno == EAGAIN)
            continue;
        if (piece <= 0)
            return done ? (ssize_t)done : piece;
        done += piece;
        vsched->notify(NOTIFY_SPACE, key, IO_LATENCY_NS);
    }
    return done;
}

EXPORT ssize_t recv(int fd, void *buffer, size_t size, int flags)
{
    if (!IS_GUEST_CALL())
        return REAL(recv)(fd, buffer, size, flags);
    lend(buffer, size);
    before_input(fd, !(flags & MSG_DONTWAIT));
    if (flags & MSG_WAITALL && !(flags & MSG_DONTWAIT) && may_block(fd))
        return after_input(receive_all(fd, buffer, size, flags));
    return after_input(REAL(recv)(fd, buffer, size, flags));
}

EXPORT ssize_t recvfrom(int fd, void *restrict buffer, size_t size, int flags,
                        struct sockaddr *restrict address, socklen_t *restrict length)
{
    if (!IS_GUEST_CALL())
        return REAL(recvfrom)(fd, buffer, size, flags, address, length);
    lend(buffer, size);
    before_input(fd, !(flags & MSG_DONTWAIT));
    return after_input(REAL(recvfrom)(fd, buffer, size, flags, address, length));
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    if (!IS_GUEST_CALL())
        return REAL(recvmsg)(fd, message, flags);
    lend_list(message->msg_iov, message->msg_iovlen);
    before_input(fd, !(flags & MSG_DONTWAIT));
    return after_input(REAL(recvmsg)(fd, message, flags));
}

/* Called by programs built with _FORTIFY_SOURCE. */
ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room);
ssize_t __recv_chk(int fd, void *buffer, size_t size, size_t room, int flags);

EXPORT ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room)
{
    if (!IS_GUEST_CALL() || size > room)
        return REAL(__read_chk)(fd, buffer, size, room);
    lend(buffer, size);
    if (is_file(fd))
        return REAL(__read_chk)(fd, buffer, size, room);
    before_input(fd, size != 0);
    return after_input(REAL(read)(fd, buffer, size));
}

EXPORT ssize_t __recv_chk(int fd, void *buffer, size_t size, size_t room, int flags)
{
    if (!IS_GUEST_CALL() || size > room)
        return REAL(__recv_chk)(fd, buffer, size, room, flags);
    lend(buffer, size);
    before_input(fd, !(flags & MSG_DONTWAIT));
    return after_input(REAL(recv)(fd, buffer, size, flags));
}

/* ---- output ---- */

/* Sockets and pipes have a reader at the other end, and can be full. */
static bool has_reader(int fd, bool *socket)
{
    struct stat status;

    if (fstat(fd, &status))
        return false;
    *socket = S_ISSOCK(status.st_mode);
    return *socket || S_ISFIFO(status.st_mode);
}

/* Writes everything, in pieces that fit. */
static ssize_t write_all(int fd, const char *from, size_t size, bool socket, int flags)
{
    size_t done = 0;

    do {
        size_t left = size - done;
        ssize_t piece;

        wait_for_one(fd, POLLOUT);
        piece = socket ? REAL(send)(fd, from + done, left, flags | MSG_DONTWAIT)
                       : REAL(write)(fd, from + done, left < PIPE_BUF ? left : PIPE_BUF);
        if (piece < 0 && errno == EAGAIN)
            continue;
        if (piece < 0)
            return done ? (ssize_t)done : piece;
        done += piece;
        vsched->notify(NOTIFY_DATA, key, IO_LATENCY_NS);
    } while (done < size);
    return done;
}

EXPORT ssize_t write(int fd, const void *buffer, size_t size)
{
    bool socket;
    ssize_t result;

    if (!IS_GUEST_CALL())
        return REAL(write)(fd, buffer, size);
    lend(buffer, size);
    if (is_file(fd))
        return REAL(write)(fd, buffer, size);
    begin(fd);
    if (has_reader(fd, &socket) && may_block(fd))
        result = write_all(fd, buffer, size, socket, 0);
    else
        result = REAL(write)(fd, buffer, size);
    return after_output(result);
}

EXPORT ssize_t send(int fd, const void *buffer, size_t size, int flags)
{
    bool blocks;

    if (!IS_GUEST_CALL())
        return REAL(send)(fd, buffer, size, flags);
    lend(buffer, size);
    begin(fd);
    blocks = !(flags & MSG_DONTWAIT) && may_block(fd);
    return after_output(blocks ? write_all(fd, buffer, size, true, flags)
                               : REAL(send)(fd, buffer, size, flags));
}

static void before_output(int fd, bool blocks)
{
    begin(fd);
    if (blocks && may_block(fd))
        wait_for_one(fd, POLLOUT);
}

EXPORT ssize_t writev(int fd, const struct iovec *list, int count)
{
    if (!IS_GUEST_CALL())
        return REAL(writev)(fd, list, count);
    lend_list(list, count);
    if (is_file(fd))
        return REAL(writev)(fd, list, count);
    before_output(fd, true);
    return after_output(REAL(writev)(fd, list, count));
}

EXPORT ssize_t sendto(int fd, const void *buffer, size_t size, int flags,
                      const struct sockaddr *address, socklen_t length)
{
    if (!IS_GUEST_CALL())
        return REAL(sendto)(fd, buffer, size, flags, address, length);
    lend(buffer, size);
    before_output(fd, !(flags & MSG_DONTWAIT));
    return after_output(REAL(sendto)(fd, buffer, size, flags, address, length));
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    if (!IS_GUEST_CALL())
        return REAL(sendmsg)(fd, message, flags);
    lend_list(message->msg_iov, message->msg_iovlen);
    before_output(fd, !(flags & MSG_DONTWAIT));
    return after_output(REAL(sendmsg)(fd, message, flags));
}

EXPORT int shutdown(int fd, int how)
{
    if (!IS_GUEST_CALL())
        return REAL(shutdown)(fd, how);
    before_output(fd, false);
    return after_output(REAL(shutdown)(fd, how));
}

EXPORT int close(int fd)
{
    bool socket;

    if (!IS_GUEST_CALL() || !has_reader(fd, &socket))
        return REAL(close)(fd);
    before_output(fd, false);
    return after_output(REAL(close)(fd));
}

/* ---- connections ---- */

/* Nagle's algorithm delays bytes by real time. */
static void send_at_once(int fd)
{
    int on = 1, saved = errno;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    errno = saved;
}

EXPORT int connect(int fd, const struct sockaddr *address, socklen_t length)
{
    int result, saved;

    if (!IS_GUEST_CALL())
        return REAL(connect)(fd, address, length);
    before_output(fd, false);
    send_at_once(fd);
    result = REAL(connect)(fd, address, length);
    saved = errno;
    key = option_of(fd, SO_PROTOCOL) == IPPROTO_TCP && (size_t)length >= sizeof(struct sockaddr_in) ?
              key_of_listener(port_of((const struct sockaddr_storage *)address)) :
              0;
    vsched->notify(NOTIFY_DATA, key, IO_LATENCY_NS);
    guest_leave();
    errno = saved;
    return result;
}

EXPORT int accept4(int fd, struct sockaddr *restrict address, socklen_t *restrict length, int flags)
{
    int result;

    if (!IS_GUEST_CALL())
        return REAL(accept4)(fd, address, length, flags);
    before_input(fd, true);
    result = REAL(accept4)(fd, address, length, flags);
    if (result >= 0)
        send_at_once(result);
    return after_input(result);
}

EXPORT int accept(int fd, struct sockaddr *restrict address, socklen_t *restrict length)
{
    if (!IS_GUEST_CALL())
        return REAL(accept)(fd, address, length);
    return accept4(fd, address, length, 0);
}

/* ---- poll, select, epoll ---- */

static uint64_t after_ns(uint64_t ns)
{
    return vsched->now() + ns;
}

static int poll_until(struct pollfd *list, nfds_t count, bool nonblocking, uint64_t deadline)
{
    struct sched_reason one = { "waits for a descriptor", count == 1 ? list->fd : -1, true,
                                count == 1 ? key_of(list->fd) : 0 };
    int ready = wait_for(list, count, nonblocking ? 0 : deadline, count == 1 ? &one : &several);
    int saved = errno;

    if (!ready && nonblocking)
        vsched->poll_idle(IO_CALL_NS, &tries);
    guest_leave();
    errno = saved;
    return ready;
}

EXPORT int poll(struct pollfd *list, nfds_t count, int timeout)
{
    if (!IS_GUEST_CALL())
        return REAL(poll)(list, count, timeout);
    guest_enter();
    vsched->charge(IO_CALL_NS);
    return poll_until(list, count, timeout == 0,
                      timeout < 0 ? SCHED_NEVER : after_ns(timeout * 1000000ull));
}

EXPORT int ppoll(struct pollfd *list, nfds_t count, const struct timespec *timeout,
                 const sigset_t *signals)
{
    uint64_t ns = timeout ? timeout->tv_sec * SECOND_NS + timeout->tv_nsec : 0;

    if (!IS_GUEST_CALL())
        return REAL(ppoll)(list, count, timeout, signals);
    guest_enter();
    vsched->charge(IO_CALL_NS);
    return poll_until(list, count, timeout && !ns, timeout ? after_ns(ns) : SCHED_NEVER);
}

int __poll_chk(struct pollfd *list, nfds_t count, int timeout, size_t room);

EXPORT int __poll_chk(struct pollfd *list, nfds_t count, int timeout, size_t room)
{
    if (!IS_GUEST_CALL() || room / sizeof(*list) < count)
        return REAL(__poll_chk)(list, count, timeout, room);
    return poll(list, count, timeout);
}

/* The requested sets, which every select() overwrites. */
struct wanted {
    fd_set sets[3];
    fd_set *given[3];
};

static int select_now(int count, struct wanted *wanted)
{
    static const struct timeval now = { 0, 0 };
    struct timeval timeout = now;

    for (int i = 0; i < 3; i++) {
        if (wanted->given[i])
            *wanted->given[i] = wanted->sets[i];
    }
    return REAL(select)(count, wanted->given[0], wanted->given[1], wanted->given[2], &timeout);
}

static int select_until(int count, fd_set *given[3], bool nonblocking, uint64_t deadline)
{
    struct wanted wanted;
    uint32_t notifications = given[1] ? NOTIFY_DATA | NOTIFY_SPACE : NOTIFY_DATA;
    int ready, saved;

    for (int i = 0; i < 3; i++) {
        wanted.given[i] = given[i];
        if (given[i])
            wanted.sets[i] = *given[i];
    }
    while ((ready = RETRY_EINTR(select_now(count, &wanted))) == 0 && !nonblocking &&
           vsched->now() < deadline)
        vsched->wait(deadline, notifications, &several);
    saved = errno;
    if (ready > 0)
        vsched->found_ready();
    if (!ready && nonblocking)
        vsched->poll_idle(IO_CALL_NS, &tries);
    guest_leave();
    errno = saved;
    return ready;
}

EXPORT int select(int count, fd_set *restrict reading, fd_set *restrict writing,
                  fd_set *restrict failing, struct timeval *restrict timeout)
{
    uint64_t ns = timeout ? timeout->tv_sec * SECOND_NS + timeout->tv_usec * 1000ull : 0;
    fd_set *given[] = { reading, writing, failing };

    if (!IS_GUEST_CALL())
        return REAL(select)(count, reading, writing, failing, timeout);
    guest_enter();
    vsched->charge(IO_CALL_NS);
    return select_until(count, given, timeout && !ns, timeout ? after_ns(ns) : SCHED_NEVER);
}

EXPORT int pselect(int count, fd_set *restrict reading, fd_set *restrict writing,
                   fd_set *restrict failing, const struct timespec *restrict timeout,
                   const sigset_t *restrict signals)
{
    uint64_t ns = timeout ? timeout->tv_sec * SECOND_NS + timeout->tv_nsec : 0;
    fd_set *given[] = { reading, writing, failing };

    if (!IS_GUEST_CALL())
        return REAL(pselect)(count, reading, writing, failing, timeout, signals);
    guest_enter();
    vsched->charge(IO_CALL_NS);
    return select_until(count, given, timeout && !ns, timeout ? after_ns(ns) : SCHED_NEVER);
}

static int epoll_until(int fd, struct epoll_event *events, int room, int timeout)
{
    uint64_t deadline;
    int ready, saved;

    guest_enter();
    vsched->charge(IO_CALL_NS);
    deadline = timeout < 0 ? SCHED_NEVER : after_ns(timeout * 1000000ull);
    while ((ready = RETRY_EINTR(REAL(epoll_wait)(fd, events, room, 0))) == 0 && timeout &&
           vsched->now() < deadline)
        vsched->wait(deadline, NOTIFY_DATA | NOTIFY_SPACE, &several);
    saved = errno;
    if (ready > 0)
        vsched->found_ready();
    if (!ready && !timeout)
        vsched->poll_idle(IO_CALL_NS, &tries);
    guest_leave();
    errno = saved;
    return ready;
}

EXPORT int epoll_wait(int fd, struct epoll_event *events, int room, int timeout)
{
    return IS_GUEST_CALL() ? epoll_until(fd, events, room, timeout)
                           : REAL(epoll_wait)(fd, events, room, timeout);
}

EXPORT int epoll_pwait(int fd, struct epoll_event *events, int room, int timeout,
                       const sigset_t *signals)
{
    return IS_GUEST_CALL() ? epoll_until(fd, events, room, timeout)
                           : REAL(epoll_pwait)(fd, events, room, timeout, signals);
}
