/* SPDX-License-Identifier: BSD-2-Clause */
/* What the modelled fabric has done: how busy each server was, what the caches held, what the
 * transport had to do again. */
#ifndef SIM_STATS_H
#define SIM_STATS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct stats {
    bool on;
    uint64_t made_at;                    /* wall time, ns */
};

void stats_init(bool on);

void stats_print(FILE *out);

#define STATS_SCHEMA "verbena-stats-1"

/* The same as JSON; docs/inside.md has the fields. */
void stats_write_json(FILE *out);

#endif
