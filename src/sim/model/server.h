/* SPDX-License-Identifier: BSD-2-Clause */
/* A server in the sense of queueing theory: one job at a time, first come, first served. */
#ifndef SIM_MODEL_SERVER_H
#define SIM_MODEL_SERVER_H

#include "sim/model/observer.h"

#include <stdint.h>

struct server {
    uint64_t free_at;
    uint64_t busy; /* total busy time */
    uint64_t jobs;
    uint32_t track; /* thread id in the trace, or 0 */
    uint32_t node;
};

static inline uint64_t ns_of(double ns)
{
    return (uint64_t)(ns + 0.5);
}

/* Submits a job; returns when it will be done. */
static inline uint64_t serve(struct server *server, uint64_t now, double service)
{
    uint64_t start = now > server->free_at ? now : server->free_at;

    server->free_at = start + ns_of(service);
    server->busy += ns_of(service);
    server->jobs++;
    if (__builtin_expect(model_observer.server_busy != NULL, 0))
        model_observer.server_busy(server, start, server->free_at);
    return server->free_at;
}

#endif
