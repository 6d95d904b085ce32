/* SPDX-License-Identifier: BSD-2-Clause */
/* What was measured: points, and the commands that measure the same on a model. */
#ifndef CALIBRATE_DATA_H
#define CALIBRATE_DATA_H

#include "bench/bench.h"
#include "results/results.h"
#include "util/file.h"

enum data_role {
    DATA_CONTROL,  /* gives parameters directly */
    DATA_FITTED,   /* least squares */
    DATA_HELD_OUT, /* predicted only */
    DATA_UNUSED,
};

/* One experiment of a result file. */
struct data_experiment {
    const struct experiment_result *result;
    const struct experiment *experiment; /* the suite's row; NULL if it has none */
    enum data_role role;
    char why[256];                   /* unused: the reason */
    char *whole;                     /* its line in a sweep: every point */
    char *brief;                     /* the same with fewer sizes and iterations */
    unsigned int first_point, count; /* in data.points */
};

struct data_point {
    unsigned int experiment;
    const struct series *series;
    double x;
    double measured; /* logarithm of the median */
    double sigma;    /* its standard error */
    bool usable;     /* the model has it */
    bool fitted;     /* in the brief runs of a fitted experiment */
};

struct data {
    unsigned int experiment_count;
    struct data_experiment *experiments;
    unsigned int point_count;
    struct data_point *points;
};

/* Takes what the files contain. 'held_out' lists names of experiments and files, separated by commas, or
 * is NULL. Returns 0, or -1 with the reason in 'error'. The data refer to the files. */
int data_take(struct results **files, unsigned int count, const char *held_out, struct data *out,
              char *error, size_t size);
void data_free(struct data *data);

/* Collect the lines of a sweep, which the caller of data_take_lines() frees. Like all memory of
 * results, they are there or the program aborts. */
FILE *data_begin_lines(struct file_text *file);
char *data_take_lines(struct file_text *file);

/* Writes the line of an experiment of the suite, with few iterations. */
void data_put_quick_line(const struct experiment *experiment, FILE *out);

/* Whether a name is in a list separated by commas, which may be NULL. */
bool data_is_listed(const char *list, const char *name);

/* Why the model cannot run an experiment of the suite, or NULL. */
const char *data_not_modelled(const struct experiment *experiment);

/* Whether a run of it takes so long that it is only predicted, never fitted. */
bool data_costly(const struct experiment *experiment);

/* The logarithm of the median of a point in the results of a run on the model, or NAN. */
double data_find(const struct data_point *point, const struct experiment_result *result);

const char *data_role_name(enum data_role role);

#endif
