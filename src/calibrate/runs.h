/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs experiments in virtual time on trial adapters, several at once. */
#ifndef CALIBRATE_RUNS_H
#define CALIBRATE_RUNS_H

#include "calibrate/data.h"
#include "calibrate/keys.h"
#include "calibrate/known.h"

#include <limits.h>

struct runs {
    const struct data *data;
    const struct keys *keys;
    unsigned int at_once;     /* 0: one for each core */
    char directory[PATH_MAX]; /* of temporary files */
    unsigned int serial;
    unsigned int done; /* trials so far */
    struct known known;
    char failure[512]; /* why the last job failed that did; empty: none */
};

/* Values of all keys, and which experiments to run with them. */
struct runs_trial {
    const double *values;
    const bool *experiments; /* by number */
    bool whole;              /* every point and iteration, not the brief selection */
    double *out;             /* by point: the logarithm of the value; NAN: the model has none */
};

/* Makes the directory. Returns 0, or -1 with the reason in 'error'. */
int runs_open(struct runs *runs, char *error, size_t size);
void runs_close(struct runs *runs);

/* Runs all trials; 'what' is shown as progress. Returns 0, or the number of the signal that
 * interrupted it, or -1 with runs->failure if files could not be written. */
int runs_evaluate(struct runs *runs, const struct runs_trial *trials, unsigned int count,
                  const char *what);

/* Runs lines of a sweep on several sets of values. Returns as runs_evaluate() does. '*out' gets the
 * results of each, or NULL; the caller frees them. */
int runs_sweep(struct runs *runs, const char *lines, const double *const *values,
               unsigned int count, const char *what, struct results **out);

#endif
