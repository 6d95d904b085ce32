/* What the modelled fabric has done: how busy each server was, what the caches held, what the
 * transport had to do again. */
#ifndef SIM_STATS_H
#define SIM_STATS_H

#include "transport/transport.h"

#include <stdio.h>

struct stats {
    bool on;
    uint64_t made_at;                    /* wall time, ns */
    struct transport_counters transport; /* of queues that are gone */
};

struct sim_qp;

void stats_init(bool on);

/* The queue's transport is about to start anew, or to end. */
void stats_gather(struct sim_qp *qp);

void stats_print(FILE *out);

#define STATS_SCHEMA "verbena-stats-1"

/* The same as JSON; docs/inside.md has the fields. */
void stats_write_json(FILE *out);

#endif
