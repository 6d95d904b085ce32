/* SPDX-License-Identifier: BSD-2-Clause */
/* The locks of Open MPI 5, for packages that leave the header out (Debian 13). */
#ifndef VERBENA_THREADS_PTHREADS_MUTEX_H
#define VERBENA_THREADS_PTHREADS_MUTEX_H

#include <pthread.h>
#include <stdbool.h>

typedef pthread_mutex_t opal_thread_internal_mutex_t;
typedef pthread_cond_t opal_thread_internal_cond_t;

#define OPAL_THREAD_INTERNAL_MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER

static inline int opal_thread_internal_mutex_init(pthread_mutex_t *mutex, bool recursive)
{
    (void)recursive; /* the headers ask for plain ones only */
    return pthread_mutex_init(mutex, NULL);
}

#define opal_thread_internal_mutex_lock      pthread_mutex_lock
#define opal_thread_internal_mutex_trylock   pthread_mutex_trylock
#define opal_thread_internal_mutex_unlock    pthread_mutex_unlock
#define opal_thread_internal_mutex_destroy   pthread_mutex_destroy

#define opal_thread_internal_cond_init(cond) pthread_cond_init(cond, NULL)
#define opal_thread_internal_cond_signal     pthread_cond_signal
#define opal_thread_internal_cond_destroy    pthread_cond_destroy

#endif
