/* SPDX-License-Identifier: BSD-2-Clause */
/* A server in the sense of queueing theory: one job at a time, first come, first served. */
#ifndef SIM_MODEL_SERVER_H
#define SIM_MODEL_SERVER_H

#include "sim/model/observer.h"
#include "sim/sched/vthread.h"

#include <stdint.h>
#include <string.h>

#define SERVER_GAPS 16

/* Idle time between jobs that are submitted already. */
struct server_gap {
    uint64_t start, end;
};

struct server {
    uint64_t free_at;
    double fraction; /* of a ns that earlier jobs have left: rates are not rounded */
    uint64_t busy;   /* total busy time */
    uint64_t jobs;
    uint32_t track; /* thread id in the trace, or 0 */
    uint32_t node;
};

/* One to which jobs are submitted ahead of time. */
struct gap_server {
    struct server server; /* first */
    uint32_t gap_count;
    struct server_gap gaps[SERVER_GAPS]; /* in order of time */
};

static inline uint64_t ns_of(double ns)
{
    return (uint64_t)(ns + 0.5);
}

/* Forgets the first gap. */
static inline void server_drop_gap(struct gap_server *server)
{
    server->gap_count--;
    memmove(server->gaps, server->gaps + 1, server->gap_count * sizeof(*server->gaps));
}

/* Finds the start of a job in a gap, and takes its time from the gap; UINT64_MAX if the job fits in
 * none. */
static inline uint64_t server_start_in_gap(struct gap_server *server, uint64_t now, uint64_t length)
{
    for (uint32_t i = 0; i < server->gap_count; i++) {
        struct server_gap *gap = &server->gaps[i];
        uint64_t start = now > gap->start ? now : gap->start;

        if (start + length > gap->end)
            continue;
        if (start > gap->start && server->gap_count < SERVER_GAPS) {
            memmove(gap + 1, gap, (server->gap_count - i) * sizeof(*gap));
            server->gap_count++;
            gap->end = start;
            gap++;
        }
        gap->start = start + length;
        return start;
    }
    return UINT64_MAX;
}

static inline uint64_t server_begin(struct server *server, uint64_t start, uint64_t length)
{
    server->busy += length;
    server->jobs++;
    if (__builtin_expect(model_observer.server_busy != NULL, 0))
        model_observer.server_busy(server, start, start + length);
    return start + length;
}

/* Whole ns; the rest is left to later jobs. */
static inline uint64_t server_length(struct server *server, double service)
{
    uint64_t length;

    server->fraction += service;
    length = server->fraction;
    server->fraction -= length;
    return length;
}

/* Submits a job; returns when it will be done. */
static inline uint64_t serve(struct server *server, uint64_t now, double service)
{
    uint64_t length = server_length(server, service);
    uint64_t start = now > server->free_at ? now : server->free_at;

    server->free_at = start + length;
    return server_begin(server, start, length);
}

/* The same, for servers to which jobs are submitted ahead of time: the job may use time that
 * earlier ones have left idle. */
static inline uint64_t serve_in_gaps(struct gap_server *gaps, uint64_t now, double service)
{
    struct server *server = &gaps->server;
    uint64_t length = server_length(server, service), start = UINT64_MAX;

    while (gaps->gap_count && gaps->gaps[0].end <= sched->now)
        server_drop_gap(gaps);
    if (gaps->gap_count)
        start = server_start_in_gap(gaps, now, length);
    if (start == UINT64_MAX) {
        start = now > server->free_at ? now : server->free_at;
        if (start > server->free_at && start > sched->now) {
            if (gaps->gap_count == SERVER_GAPS)
                server_drop_gap(gaps);
            gaps->gaps[gaps->gap_count++] = (struct server_gap){ server->free_at, start };
        }
        server->free_at = start + length;
    }
    return server_begin(server, start, length);
}

#endif
