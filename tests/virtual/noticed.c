/* SPDX-License-Identifier: BSD-2-Clause */
/* A program that looks at its CQ and at a socket in turn notices soon what is written to the socket, even if it
 * is about to sleep at that instant. Prints the longest time from a write to its notice, in nanoseconds. */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS   400
#define STEP_NS  50 /* from round to round, between two writes */

static int sockets[2];

static uint64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static int write_now(void)
{
    uint64_t written = now();

    return write(sockets[0], &written, sizeof(written)) == sizeof(written);
}

/* The first write of a round wakes the other thread, which then looks a few times before it sleeps again. */
static void *write_twice(void *unused)
{
    char answer;

    for (int i = 0; i < ROUNDS; i++) {
        if (!write_now())
            return NULL;
        nanosleep(&(struct timespec){ .tv_nsec = i * STEP_NS }, NULL);
        if (!write_now() || read(sockets[0], &answer, 1) != 1)
            return NULL;
    }
    return unused;
}

int main(void)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    struct ibv_context *context = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
    struct ibv_cq *cq = context ? ibv_create_cq(context, 8, NULL, NULL, 0) : NULL;
    uint64_t longest = 0, written;
    pthread_t thread;
    struct ibv_wc wc;

    if (!cq || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) ||
        pthread_create(&thread, NULL, write_twice, NULL))
        return 1;
    for (int i = 0; i < 2 * ROUNDS;) {
        if (ibv_poll_cq(cq, 1, &wc))
            return 1;
        if (recv(sockets[1], &written, sizeof(written), MSG_DONTWAIT) != sizeof(written))
            continue;
        if (now() - written > longest)
            longest = now() - written;
        if (++i % 2 == 0 && write(sockets[1], "", 1) != 1)
            return 1;
    }
    pthread_join(thread, NULL);
    printf("%llu\n", (unsigned long long)longest);
    return 0;
}
