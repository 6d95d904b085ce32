/* The results of a run: what was measured, on what, how. Written and read as JSON, written as CSV;
 * docs/results.md is the schema. */
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
    struct summary y; /* the median is the headline */
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

struct fact {
    char *name;
    char *value;
};

struct facts {
    unsigned int count;
    struct fact *rows;
};

struct experiment_result {
    char *name;    /* "latency" */
    char *group;   /* "basic" */
    char *title;   /* the question in one line */
    char *source;  /* the paper and figure */
    char *skipped; /* why it was not run, or NULL */
    char *failed;  /* why it ended early, or NULL: what stands in the series was measured */
    struct facts settings;
    struct facts notes; /* findings that are no curve, such as "harness overhead" */
    unsigned int count;
    struct series *series;
};

struct results {
    char *path;    /* read from, or NULL */
    char *version; /* of Verbena */
    char *date;    /* ISO 8601, UTC */
    char *command;
    bool interrupted;
    struct facts machine;
    struct facts device;
    unsigned int count;
    struct experiment_result *experiments;
};

struct results *results_new(const char *version, const char *date, const char *command);
void results_free(struct results *results);

/* The strings are copied. What these return stays valid until the next call that adds to the same
 * array. They do not fail: out of memory ends the program. */
void results_facts_set(struct facts *facts, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
const char *results_facts_get(const struct facts *facts, const char *name);
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

/* The first of that name, or NULL. A quantity of NULL is any. */
const struct experiment_result *results_find(const struct results *results, const char *name);
const struct series *result_find(const struct experiment_result *result, const char *name,
                                 const char *quantity);

const char *schema_better_name(enum better better); /* "lower", "higher", "neither" */

/* Return 0, or -1 with errno: EDOM if a figure is not a finite number, else that of the stream. */
int results_write_json(const struct results *results, FILE *out);
int results_write_csv(const struct results *results, FILE *out);
/* The same into a file, as CSV if its name ends in ".csv". */
int results_write_file(const struct results *results, const char *path);

/* The date that a run has which begins now. */
void results_now(char *text, size_t size);

/* Returns 0, or -1 with file, place and reason in 'error'. */
int results_read(const char *path, struct results **out, char *error, size_t size);

#endif
