/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VERBENA_THREADS_PTHREADS_THREADS_H
#define VERBENA_THREADS_PTHREADS_THREADS_H

#include <sched.h>

static inline void opal_thread_yield(void)
{
    sched_yield();
}

#endif
