/* SPDX-License-Identifier: BSD-2-Clause */
/* Least squares: the smooth keys that make the model agree with the data. */
#ifndef CALIBRATE_FIT_H
#define CALIBRATE_FIT_H

#include "calibrate/runs.h"

#define FIT_PRIOR 1.0 /* how far START may be from the truth: a factor of e */

/* The keys vary on a logarithmic scale. Residuals are relative errors in units of the standard
 * error of each point; those of outliers are smaller, so that their squares grow as the errors do.
 * A further residual for each key draws it weakly towards START, so that the data decide wherever
 * they can and START everywhere else. */
struct fit {
    struct runs *runs;
    struct data *data;
    struct keys *keys;
    unsigned int key_count;
    unsigned int *keys_of; /* numbers of the smooth keys */
    unsigned int point_count;
    unsigned int *points_of; /* numbers of the fitted points */
    double *offset;          /* by point: logarithm of the whole run's value to the brief run's */
    bool *sensitive;         /* by key and experiment: whether the key moves any of its points */
    double *jacobian; /* by column (key), of the points, in standard errors; NULL: none yet */
    double misfit;    /* rms of the residuals, at least 1 */
    int steps;        /* since the Jacobian was measured; the others are updates of it */
    bool comparable;  /* the residuals below can be compared with present ones */
    double *before_x, *before_residuals; /* at the last Jacobian */
    double measured_norm;                /* of the residuals where it was last measured */
    int stopped;                         /* the result of runs_evaluate() that ended the fit */
};

void fit_open(struct fit *fit, struct runs *runs, struct data *data, struct keys *keys);
void fit_close(struct fit *fit);

/* Runs whole and brief experiments at the present values: which points the model has, and how the
 * two kinds of run differ. Returns as runs_evaluate(). */
int fit_compare_runs(struct fit *fit);

/* Fits the smooth keys, with at most this many trials besides the Jacobians, and as many again while
 * that brings them much nearer to the data. Returns as runs_evaluate(). */
int fit_solve(struct fit *fit, int trials);

/* Measures the slopes of all points at the present values, upwards and downwards, and keeps the
 * gentler of the two in the Jacobian: for standard errors. Returns as runs_evaluate(). */
int fit_measure_slopes(struct fit *fit);

/* Finds the experiments that keys move, several keys at a time. Returns as runs_evaluate(). */
int fit_screen(struct fit *fit);

/* Measures the next Jacobian anew; any key may move these experiments. */
void fit_forget(struct fit *fit, const bool *experiments);

/* Leaves out keys that are not determined. */
void fit_restrict(struct fit *fit);

/* The sum of squares of the residuals of some experiments, from the output of a brief run. By
 * shape, the median distance of each curve does not count. */
double fit_loss(const struct fit *fit, const double *out, const bool *experiments, bool shape);

/* How far a point is from what was measured, in standard errors, from the output of a brief run. */
double fit_distance(const struct fit *fit, unsigned int point, double out);

/* Huber: its square is that of the distance, or, far away, grows as the distance does. One point
 * that the model cannot follow, or that was measured badly, must not decide. */
double fit_tame(double distance);
double fit_tame_slope(double distance);

/* The smooth keys, as logarithms of their ratios to START. */
void fit_position(const struct fit *fit, double *x);

/* The experiments that are fitted. */
void fit_experiments(const struct fit *fit, bool *experiments);

/* The present values of all keys. */
void fit_values(const struct fit *fit, double *values);

#endif
