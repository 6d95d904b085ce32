/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether processes of this machine have died. Matters only to jobs that go on then. */
#ifndef MTL_LIVENESS_H
#define MTL_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>

/* Started with "mpirun --enable-recovery"; otherwise Open MPI ends the job when a process dies. */
bool liveness_matters(void);

/* A process by its number and its start, because numbers are reused. */
struct liveness {
    int32_t pid; /* 0: not known */
    uint64_t started;
};

struct liveness liveness_of(int32_t pid);
bool liveness_ended(const struct liveness *process);

#endif
