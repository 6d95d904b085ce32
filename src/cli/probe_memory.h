/* SPDX-License-Identifier: BSD-2-Clause */
/* What a fabric takes of shared memory, measured on a private one. */
#ifndef CLI_PROBE_MEMORY_H
#define CLI_PROBE_MEMORY_H

#include "launch.h"

/* The shape of the queue pairs that are measured: that of perftest's bandwidth tests. */
#define PROBE_RECEIVES 512
#define PROBE_SENDS    128

struct probe_memory {
    double fabric;     /* bytes of a fabric with one process on it */
    double queue_pair; /* bytes of a QP with its own CQ */
    double region;     /* bytes of a memory region */
};

/* Returns false if the fabric could not be made, or refused the objects. */
bool probe_memory(const struct launch *launch, struct probe_memory *out);

/* In the process with the adapter preloaded: prints the three numbers. */
int probe_memory_print(void);

#endif
