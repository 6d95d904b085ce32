/* SPDX-License-Identifier: BSD-2-Clause */
/* Barriers, built from the locks and conditions of thread.c, which wait in virtual time. */
#include "sim/guest/guest.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct barrier {
    struct barrier *next;
    pthread_barrier_t *name;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned int wanted, arrived, round;
    unsigned int inside; /* threads that have not left the call */
};

static struct barrier *barriers;
static pthread_mutex_t barriers_lock = PTHREAD_MUTEX_INITIALIZER;

/* The caller holds barriers_lock. */
static struct barrier **link_of(const pthread_barrier_t *name)
{
    struct barrier **link = &barriers;

    while (*link && (*link)->name != name)
        link = &(*link)->next;
    return link;
}

static struct barrier *barrier_of(const pthread_barrier_t *name)
{
    struct barrier *found;

    REAL(pthread_mutex_lock)(&barriers_lock);
    found = *link_of(name);
    REAL(pthread_mutex_unlock)(&barriers_lock);
    return found;
}

/* Barriers shared between processes are left to the C library. */
EXPORT int pthread_barrier_init(pthread_barrier_t *restrict name,
                                const pthread_barrierattr_t *restrict attributes,
                                unsigned int count)
{
    int err = REAL(pthread_barrier_init)(name, attributes, count), shared = PTHREAD_PROCESS_PRIVATE;
    struct barrier *barrier;

    if (attributes)
        pthread_barrierattr_getpshared(attributes, &shared);
    if (err || shared == PTHREAD_PROCESS_SHARED)
        return err;
    barrier = calloc(1, sizeof(*barrier));
    if (!barrier)
        return ENOMEM;
    *barrier = (struct barrier){ .name = name,
                                 .lock = PTHREAD_MUTEX_INITIALIZER,
                                 .changed = PTHREAD_COND_INITIALIZER,
                                 .wanted = count };
    REAL(pthread_mutex_lock)(&barriers_lock);
    barrier->next = barriers;
    barriers = barrier;
    REAL(pthread_mutex_unlock)(&barriers_lock);
    return 0;
}

EXPORT int pthread_barrier_wait(pthread_barrier_t *name)
{
    struct barrier *barrier = barrier_of(name);
    unsigned int round;
    int result = 0;

    if (!barrier)
        return REAL(pthread_barrier_wait)(name);
    pthread_mutex_lock(&barrier->lock);
    round = barrier->round;
    barrier->inside++;
    if (++barrier->arrived == barrier->wanted) {
        barrier->arrived = 0;
        barrier->round++;
        pthread_cond_broadcast(&barrier->changed);
        result = PTHREAD_BARRIER_SERIAL_THREAD;
    }
    while (barrier->round == round)
        pthread_cond_wait(&barrier->changed, &barrier->lock);
    if (!--barrier->inside)
        pthread_cond_broadcast(&barrier->changed);
    pthread_mutex_unlock(&barrier->lock);
    return result;
}

static void wait_for_those_inside(struct barrier *barrier)
{
    pthread_mutex_lock(&barrier->lock);
    while (barrier->inside)
        pthread_cond_wait(&barrier->changed, &barrier->lock);
    pthread_mutex_unlock(&barrier->lock);
}

EXPORT int pthread_barrier_destroy(pthread_barrier_t *name)
{
    struct barrier **link, *barrier;

    REAL(pthread_mutex_lock)(&barriers_lock);
    link = link_of(name);
    barrier = *link;
    if (barrier)
        *link = barrier->next;
    REAL(pthread_mutex_unlock)(&barriers_lock);
    if (barrier)
        wait_for_those_inside(barrier);
    free(barrier);
    return REAL(pthread_barrier_destroy)(name);
}
