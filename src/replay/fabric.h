/* SPDX-License-Identifier: BSD-2-Clause */
/* A modelled fabric that is private to this process: no segment, no processes, no vthreads. */
#ifndef REPLAY_FABRIC_H
#define REPLAY_FABRIC_H

#include "replay/replay.h"

/* What the fabric is made of, besides the parameters of its adapters. */
struct fabric_size {
    uint32_t nodes;
    uint32_t devices; /* of a node */
    uint32_t ports;   /* of a device */
    uint64_t qps;
};

/* Creates the model, once. Returns 0, or -1 with the reason in 'error'. */
int fabric_open(const struct replay_settings *settings, const struct fabric_size *wanted,
                char *error, size_t size);

/* Bytes that the fabric uses. */
uint64_t fabric_memory(void);

#endif
