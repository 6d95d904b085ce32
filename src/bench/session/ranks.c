/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts, connects and stops the ranks, for rank 0. */
#include "bench/session/ranks.h"
#include "bench/interrupt.h"
#include "bench/patience.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define POLL_MS      200
#define STOP_STEP_US 10000
#define STOP_STEPS   200
#define OTHER_DESCRIPTORS 600

void ranks_prepare_connection(int fd, unsigned int timeout_s)
{
    int on = 1, idle = 5, interval = 5, limit_ms = timeout_s * 1000;
    struct timeval limit = { .tv_sec = timeout_s };

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof(limit_ms));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

/* In virtual time a rank may be silent for as long as the simulation takes. All ranks are local,
 * and their sockets close if they die. */
unsigned int ranks_idle_timeout(const struct settings *settings)
{
    return vtime.on ? 0 : settings->timeout;
}

static int start_here(struct ranks *ranks, int rank)
{
    pid_t parent = getpid();
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return -1;
    ranks->pids[rank] = fork();
    if (!ranks->pids[rank]) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        /* Only rank 0 handles signals to the process group; it then tells the other ranks. */
        signal(SIGINT, SIG_IGN);
        signal(SIGTERM, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        rank_exec(dup(pair[1]), NULL, 0);
    }
    close(pair[1]);
    ranks->control.fd[rank] = pair[0];
    if (ranks->pids[rank] > 0)
        patience_watch(ranks->pids[rank]);
    return ranks->pids[rank] < 0 ? -1 : 0;
}

/* Returns 0, or an errno value. */
static int wait_connected(int fd, unsigned int timeout_s)
{
    uint64_t start = monotonic_ns();
    socklen_t size = sizeof(int);
    int error = 0;

    for (;;) {
        struct pollfd ready = { .fd = fd, .events = POLLOUT };

        if (poll(&ready, 1, POLL_MS) > 0)
            break;
        if (interrupt_seen())
            return EINTR;
        if (monotonic_ns() - start >= timeout_s * 1000000000ull)
            return ETIMEDOUT;
    }
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) ? errno : error;
}

static int connect_one(const struct addrinfo *at, unsigned int timeout_s, int *out)
{
    int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol);
    int error = 0;

    if (fd < 0)
        return errno;
    if (connect(fd, at->ai_addr, at->ai_addrlen))
        error = errno == EINPROGRESS ? wait_connected(fd, timeout_s) : errno;
    if (!error && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK))
        error = errno;
    if (error) {
        close(fd);
        return error;
    }
    *out = fd;
    return 0;
}

static int connect_to(struct control *control, int rank, const struct settings *settings)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list, *at;
    char port[8], text[CONTROL_TEXT_MAX];
    int fd = -1, error;

    snprintf(port, sizeof(port), "%u", (unsigned int)settings->tcp_port);
    error = getaddrinfo(settings->connect, port, &hints, &list);
    if (error) {
        snprintf(text, sizeof(text), "%s: %s", settings->connect, gai_strerror(error));
        control_fail(control, CONTROL_FAILED, text);
        return -1;
    }
    for (at = list; at && fd < 0; at = at->ai_next)
        error = connect_one(at, settings->timeout, &fd);
    freeaddrinfo(list);
    if (fd < 0 && interrupt_seen()) {
        control_interrupt(control);
        return -1;
    }
    if (fd < 0) {
        snprintf(text, sizeof(text), "%s port %s: %s; is 'verbena bench --listen' running there?",
                 settings->connect, port, strerror(error));
        control_fail(control, CONTROL_FAILED, text);
        return -1;
    }
    ranks_prepare_connection(fd, settings->timeout);
    control->fd[rank] = fd;
    return 0;
}

static int start_one(struct ranks *ranks, const struct assignment *assignment, char *const *words,
                     int count, const char *version)
{
    bool remote = assignment->settings.connect && assignment->rank % 2;
    struct control *control = &ranks->control;
    char handshake[HANDSHAKE_MAX], error[CONTROL_TEXT_MAX / 2], text[CONTROL_TEXT_MAX];

    if (handshake_write(handshake, assignment, remote, words, count, version, error,
                        sizeof(error))) {
        control_fail(control, CONTROL_FAILED, error);
        return -1;
    }
    if (remote ? connect_to(control, assignment->rank, &assignment->settings)
               : start_here(ranks, assignment->rank)) {
        snprintf(text, sizeof(text), "cannot start process %d: %s", assignment->rank,
                 strerror(errno));
        control_fail(control, CONTROL_FAILED, text);
        return -1;
    }
    return control_handshake(control, assignment->rank, handshake);
}

/* Rank 0 has a connection to each of the others, beside what it has open anyway. */
static void allow_descriptors(unsigned int ranks)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= ranks + OTHER_DESCRIPTORS)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

int ranks_start(struct ranks *ranks, const struct assignment *assignment, char *const *words,
                int count, const char *version)
{
    struct control *control = &ranks->control;
    struct assignment each = *assignment;

    memset(ranks, 0, sizeof(*ranks));
    patience_forget();
    control->timeout_s = ranks_idle_timeout(&assignment->settings);
    control->stopped = interrupt_seen;
    for (int i = 0; i < CONTROL_RANKS_MAX; i++)
        control->fd[i] = -1;
    control->ranks = 1;
    allow_descriptors(each.ranks);
    for (each.rank = 1; each.rank < each.ranks; each.rank++) {
        if (start_one(ranks, &each, words, count, version))
            return -1;
        control->ranks = each.rank + 1;
    }
    return 0;
}

/* Reaps a rank. A rank that does not exit after rank 0 has closed the connection is stuck and gets
 * killed, unless the caller waits without a limit. */
static int reap(pid_t pid, bool no_limit, bool *stuck)
{
    int status = 0;

    *stuck = false;
    for (int step = 0; no_limit || step < STOP_STEPS; step++) {
        if (waitpid(pid, &status, WNOHANG))
            return status;
        usleep(STOP_STEP_US);
    }
    *stuck = true;
    kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

void ranks_stop(struct ranks *ranks)
{
    struct control *control = &ranks->control;
    /* In virtual time the ranks still write traces and statistics, which may take long. */
    bool no_limit = vtime.on && control->status == CONTROL_OK;

    for (int i = 1; i < CONTROL_RANKS_MAX; i++) {
        if (control->fd[i] >= 0)
            close(control->fd[i]);
    }
    for (int i = 1; i < CONTROL_RANKS_MAX; i++) {
        size_t used = strlen(control->text);
        int status;
        bool stuck;

        if (ranks->pids[i] <= 0)
            continue;
        status = reap(ranks->pids[i], no_limit, &stuck);
        if (control->status == CONTROL_FAILED && WIFSIGNALED(status) && !stuck)
            snprintf(control->text + used, sizeof(control->text) - used,
                     "; process %d was killed by signal %d (%s)", i, WTERMSIG(status),
                     strsignal(WTERMSIG(status)));
    }
}
