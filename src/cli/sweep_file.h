/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of verbena sweep: each line is a chart, whose replays are all combinations of its values.
 */
#ifndef CLI_SWEEP_FILE_H
#define CLI_SWEEP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct generate_pattern;
struct line;

enum sweep_key {
    SWEEP_PATTERN,
    SWEEP_ADAPTER,
    SWEEP_SHAPE,
    SWEEP_SET,
    SWEEP_RANKS_PER_NODE,
    SWEEP_POLICY,
    SWEEP_QPS,
    SWEEP_PORTS,
    SWEEP_DEVICES,
    SWEEP_KEYS,
};

extern const char *const sweep_key_names[SWEEP_KEYS];

struct sweep_job {
    const char *chart; /* name of the line */
    char curve[256];   /* the values that differ between the curves of the chart */
    bool over_sizes;   /* the axis is the size, else the number of ranks */
    bool one_size;     /* for the whole chart */
    const struct generate_pattern *pattern;
    uint64_t ranks, size;
    const char *values[SWEEP_KEYS]; /* NULL: not given */
    unsigned int shared;            /* bit mask of the keys with one value for the whole chart */
};

struct sweep {
    char *text; /* of the file; jobs point into it */
    struct sweep_job *jobs;
    size_t count;
};

/* Returns 0, or -1 with "file:line: reason" in 'error'. */
int sweep_file_read(struct sweep *sweep, const char *path, char *error, size_t size);
void sweep_file_free(struct sweep *sweep);

/* Adds the options of verbena-replay that this job stands for. */
void sweep_job_options(const struct sweep_job *job, struct line *line);

#endif
