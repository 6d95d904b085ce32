/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics of the modelled fabric: utilisation of servers, cache hits, packets, retries. */
#ifndef SIM_STATS_H
#define SIM_STATS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct stats {
    bool on;
    uint64_t created_at; /* wall time, ns */
};

void stats_init(bool on);

void stats_print(FILE *out);

#define STATS_SCHEMA "verbena-stats-1"

/* docs/inside.md describes the fields. */
void stats_write_json(FILE *out);

#endif
