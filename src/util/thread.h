/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UTIL_THREAD_H
#define UTIL_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/* Starts a thread of the library's own, detached and with a small stack. It leaves signals to the
 * program's threads. Returns 0 or an errno value. */
static inline int thread_start(void *(*body)(void *), void *argument, size_t stack_bytes)
{
    sigset_t all, old;
    pthread_attr_t attr;
    pthread_t thread;
    int err;

    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, stack_bytes);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    err = pthread_create(&thread, &attr, body, argument);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return err;
}

#endif
