/* SPDX-License-Identifier: BSD-2-Clause */
/* Schedules of collectives, as text. */
#ifndef REPLAY_GENERATE_H
#define REPLAY_GENERATE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct generate_pattern {
    const char *name;
    const char *help;
    uint64_t default_size;
    /* Number of steps; 0: not for this number of ranks, see 'needs'. */
    uint32_t (*steps)(uint32_t ranks);
    const char *needs;
    /* What 'rank' does in a step. */
    void (*step)(uint32_t ranks, uint32_t rank, uint32_t step, uint32_t *to, uint32_t *from);
    uint64_t (*bytes)(uint32_t ranks, uint64_t size); /* of a message */
};

/* Ends with a row without a name. */
extern const struct generate_pattern generate_patterns[];

/* NULL if there is none with that name. */
const struct generate_pattern *generate_find(const char *name);

/* Writes the schedule. Returns 0, or -1 with the reason in 'error'. */
int generate_write(const struct generate_pattern *pattern, uint32_t ranks, uint64_t size, FILE *out,
                   char *error, size_t error_size);

#endif
