/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/patience.h"
#include "bench/clock.h"
#include "bench/control.h"
#include "util/vtime.h"

#include <pthread.h>
#include <stdio.h>

#define SAMPLE_NS 100000000

struct watched {
    int pid; /* 0: the calling thread */
    uint64_t waited;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards the rest */
static struct watched watched[CONTROL_RANKS_MAX + 1];
static unsigned int count = 1;
static uint64_t sampled_at, lost;

/* The time that a thread was runnable and did not run, since it exists; 0: the kernel does not tell. */
static uint64_t waited_for_core(int pid)
{
    char path[40] = "/proc/thread-self/schedstat";
    unsigned long long ran, waited = 0;
    FILE *file;

    if (pid)
        snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
    file = fopen(path, "re");
    if (file && fscanf(file, "%llu %llu", &ran, &waited) != 2)
        waited = 0;
    if (file)
        fclose(file);
    return waited;
}

void patience_watch(int pid)
{
    pthread_mutex_lock(&mutex);
    if (count < sizeof(watched) / sizeof(watched[0]))
        watched[count++] = (struct watched){ .pid = pid, .waited = waited_for_core(pid) };
    pthread_mutex_unlock(&mutex);
}

void patience_forget(void)
{
    pthread_mutex_lock(&mutex);
    count = 1;
    pthread_mutex_unlock(&mutex);
}

uint64_t patience_lost(uint64_t elapsed_ns, uint64_t waited_ns)
{
    uint64_t most = elapsed_ns / 10 * 9;

    return waited_ns < most ? waited_ns : most;
}

/* Ranks wait for each other in turn, but how often is not known: the one that waited longest
 * decides. Another thread's count may be lower than the last one seen. */
static void sample(uint64_t now)
{
    uint64_t longest = 0;

    for (unsigned int i = 0; i < count; i++) {
        uint64_t waited = waited_for_core(watched[i].pid);

        if (waited > watched[i].waited && waited - watched[i].waited > longest)
            longest = waited - watched[i].waited;
        watched[i].waited = waited;
    }
    if (sampled_at)
        lost += patience_lost(now - sampled_at, longest);
    sampled_at = now;
}

uint64_t patience_now(void)
{
    uint64_t now = monotonic_ns();

    if (vtime.on)
        return now;
    pthread_mutex_lock(&mutex);
    if (now > sampled_at && now - sampled_at >= SAMPLE_NS)
        sample(now);
    now -= lost;
    pthread_mutex_unlock(&mutex);
    return now;
}

bool patience_is_over(uint64_t since, uint64_t limit_ns)
{
    uint64_t now = patience_now();

    return now > since && now - since >= limit_ns;
}
