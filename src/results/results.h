/* SPDX-License-Identifier: BSD-2-Clause */
/* The results of a run. Written and read as JSON, written as CSV; docs/results.md describes the
 * format. */
#ifndef RESULTS_RESULTS_H
#define RESULTS_RESULTS_H

#include "histogram.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum better {
    BETTER_LOWER,
    BETTER_HIGHER,
    BETTER_NEITHER,
};

struct point {
    double x;
    struct summary y; /* of the first round; charts and tables show the median */
    unsigned int round_count;
    double *rounds; /* the median of each round, if there were several */
};

/* One curve: 'quantity' in 'unit' against 'axis' in 'axis_unit'. */
struct series {
    char *name;      /* "send", "write polling" */
    char *quantity;  /* "latency", "bandwidth", "time" */
    char *unit;      /* "us", "MB/s"; MB is 10^6 bytes */
    char *axis;      /* "size", "QPs" */
    char *axis_unit; /* "B", or "" for a count */
    enum better better;
    unsigned int count;
    struct point *points;
};

struct metadata_entry {
    char *name;
    char *value;
};

struct metadata {
    unsigned int count;
    struct metadata_entry *rows;
};

struct experiment_result {
    char *name;    /* "latency" */
    char *group;   /* "basic" */
    char *title;   /* one line */
    char *source;  /* the paper and figure */
    char *skipped; /* why it was not run, or NULL */
    char *failed;  /* why it ended early, or NULL; the series keep what was measured */
    struct metadata settings;
    struct metadata notes; /* findings other than curves, such as "placement" */
    unsigned int count;
    struct series *series;
};

struct results {
    char *path;    /* read from, or NULL */
    char *version; /* of Verbena */
    char *date;    /* ISO 8601, UTC */
    char *command;
    bool interrupted;
    bool deterministic; /* the same command would measure the same values */
    unsigned int load_count;
    double *loads; /* for each round, the share of all processor time that other programs used */
    struct metadata machine;
    struct metadata device;
    unsigned int count;
    struct experiment_result *experiments;
};

struct results *results_new(const char *version, const char *date, const char *command);
void results_free(struct results *results);

/* These copy their strings. A returned pointer is valid until the next call that adds to the same
 * array. They do not fail: out of memory aborts the program. */
void results_metadata_set(struct metadata *metadata, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
const char *results_metadata_get(const struct metadata *metadata, const char *name);
struct experiment_result *results_add(struct results *results, const char *name, const char *group,
                                      const char *title, const char *source);
void result_skipped(struct experiment_result *result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void result_failed(struct experiment_result *result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
struct series *result_series(struct experiment_result *result, const char *name,
                             const char *quantity, const char *unit, const char *axis,
                             const char *axis_unit, enum better better);
void results_series_add(struct series *series, double x, const struct summary *y);
void results_point_add_round(struct point *point, double median);
void results_add_load(struct results *results, double load);

/* Return the first match, or NULL. A quantity of NULL matches any. */
const struct experiment_result *results_find(const struct results *results, const char *name);
const struct series *result_find(const struct experiment_result *result, const char *name,
                                 const char *quantity);

/* The counterparts in another run, or NULL: the n-th occurrence of an experiment is that of the
 * n-th, a series has the same name, quantity and axis. */
struct experiment_result *results_counterpart(const struct results *results,
                                              const struct results *others,
                                              const struct experiment_result *like);
struct series *result_counterpart(const struct experiment_result *result,
                                  const struct series *like);
struct point *results_point_at(const struct series *series, double x);

const char *schema_better_name(enum better better); /* "lower", "higher", "neither" */

/* Return 0, or -1 with errno: EDOM if a value is not finite, otherwise the stream's error. */
int results_write_json(const struct results *results, FILE *out);
int results_write_csv(const struct results *results, FILE *out);
/* Writes CSV if the name ends in ".csv", otherwise JSON. */
int results_write_file(const struct results *results, const char *path);

/* Formats the current time as ISO 8601, UTC. */
void results_now(char *text, size_t size);

/* Returns 0, or -1 with file, path within the document and reason in 'error'. */
int results_read(const char *path, struct results **out, char *error, size_t size);

#endif
