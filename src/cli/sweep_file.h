/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of verbena sweep: each line is a chart, whose replays are all combinations of its values.
 */
#ifndef CLI_SWEEP_FILE_H
#define CLI_SWEEP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct generate_pattern;

struct sweep_job {
    const char *chart; /* name of the line */
    char curve[256];   /* the values that differ between the curves of the chart */
    bool over_sizes;   /* the axis is the size, else the number of ranks */
    const struct generate_pattern *pattern;
    uint64_t ranks, size;
    const char *adapter;
    const char *shape, *set, *ranks_per_node; /* options of replay, or NULL */
};

struct sweep {
    char *text; /* of the file; jobs point into it */
    struct sweep_job *jobs;
    size_t count;
};

/* Returns 0, or -1 with "file:line: reason" in 'error'. */
int sweep_file_read(struct sweep *sweep, const char *path, char *error, size_t size);
void sweep_file_free(struct sweep *sweep);

#endif
