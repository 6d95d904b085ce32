/* SPDX-License-Identifier: BSD-2-Clause */
#include "harness.h"

#include <err.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PEER_VARIABLE     "BENCH_PEER_SOCKET"
#define TIME_LIMIT_SECOND 120

double harness_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Must run before pinning: afterwards only one core is left to choose from. */
static void pin_to_nth_allowed(int nth)
{
    cpu_set_t allowed, one;

    if (sched_getaffinity(0, sizeof(allowed), &allowed))
        err(1, "sched_getaffinity");
    nth %= CPU_COUNT(&allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || nth--)
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        if (sched_setaffinity(0, sizeof(one), &one))
            err(1, "sched_setaffinity to core %d", cpu);
        return;
    }
}

static void start_peer(char **argv, int socket)
{
    char number[16], program[4096] = "";
    pid_t child = fork();

    if (child < 0)
        err(1, "fork");
    if (child > 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(number, sizeof(number), "%d", socket);
    setenv(PEER_VARIABLE, number, 1);
    if (readlink("/proc/self/exe", program, sizeof(program) - 1) > 0)
        execv(program, argv);
    err(1, "cannot start the peer process");
}

struct harness_peer harness_split(char **argv)
{
    const char *inherited = getenv(PEER_VARIABLE);
    struct harness_peer peer = { .initiator = !inherited };
    int ends[2];

    alarm(TIME_LIMIT_SECOND);
    if (inherited) {
        peer.socket = atoi(inherited);
    } else {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
            err(1, "socketpair");
        start_peer(argv, ends[1]);
        close(ends[1]);
        peer.socket = ends[0];
    }
    pin_to_nth_allowed(peer.initiator ? 0 : 1);
    return peer;
}

bool harness_join(const struct harness_peer *peer)
{
    int status;

    close(peer->socket);
    if (!peer->initiator)
        return true;
    while (wait(&status) < 0) {
        if (errno != EINTR)
            err(1, "wait");
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void harness_swap(const struct harness_peer *peer, const void *mine, void *theirs, size_t size)
{
    size_t sent = 0, got = 0;
    ssize_t n;

    /* Turn by turn, so that two long messages cannot fill the socket in both directions. */
    while (sent < size || got < size) {
        if (sent < size) {
            n = send(peer->socket, (const char *)mine + sent, size - sent,
                     MSG_NOSIGNAL | MSG_DONTWAIT);
            if (n < 0 && errno != EAGAIN && errno != EINTR)
                err(1, "cannot write to the peer process");
            sent += n > 0 ? (size_t)n : 0;
        }
        if (got < size) {
            n = recv(peer->socket, (char *)theirs + got, size - got,
                     sent < size ? MSG_DONTWAIT : 0);
            if (n == 0)
                errx(1, "the peer process ended early");
            if (n < 0 && errno != EAGAIN && errno != EINTR)
                err(1, "cannot read from the peer process");
            got += n > 0 ? (size_t)n : 0;
        }
    }
}

void harness_barrier(const struct harness_peer *peer)
{
    char mine = 'b', theirs;

    harness_swap(peer, &mine, &theirs, 1);
}

struct harness_times harness_times_new(unsigned repeats)
{
    struct harness_times times = { .seconds = calloc(repeats, sizeof(double)), .count = repeats };

    if (!times.seconds)
        err(1, "calloc");
    return times;
}

void harness_times_free(struct harness_times *times)
{
    free(times->seconds);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void harness_print_times(const struct harness_times *times, double operations)
{
    double scale = 1e6 / operations, sum = 0;
    unsigned n = times->count;

    for (unsigned i = 0; i < n; i++)
        sum += times->seconds[i];
    qsort(times->seconds, n, sizeof(double), compare_doubles);
    printf("\"repeats\": %u, \"usec\": %.4f, \"usec_median\": %.4f, \"usec_min\": %.4f, "
           "\"usec_max\": %.4f}\n",
           n, sum / n * scale, (times->seconds[n / 2] + times->seconds[(n - 1) / 2]) / 2 * scale,
           times->seconds[0] * scale, times->seconds[n - 1] * scale);
    fflush(stdout);
}

unsigned long harness_number(const char *option, const char *text, unsigned long least,
                             unsigned long greatest)
{
    char *end;
    unsigned long value;

    errno = 0;
    value = strtoul(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || value < least || value > greatest)
        errx(2, "--%s takes a number from %lu to %lu, not '%s'", option, least, greatest, text);
    return value;
}
