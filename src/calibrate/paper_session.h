/* SPDX-License-Identifier: BSD-2-Clause */
/* The fitted numbers of a paper's adapters, and runs of the paper's rows with other values. */
#ifndef CALIBRATE_PAPER_SESSION_H
#define CALIBRATE_PAPER_SESSION_H

#include "calibrate/leave_out.h"
#include "calibrate/runs.h"
#include "calibrate/surrogate.h"

#define PAPER_ADAPTERS_MAX 16

struct paper_session {
    struct leave_out *out; /* its rows and parameters */
    const struct leave_out_spec *spec;
    unsigned int adapter_count; /* of the rows */
    const char *adapters[PAPER_ADAPTERS_MAX];
    struct origins *origins[PAPER_ADAPTERS_MAX];
    struct runs runs;  /* its directory */
    const char *stage; /* what progress is of */
    char *error;       /* the reason, if it fails */
    size_t size;
};

/* Finds the parameters of the rows in 'out', and what other adapters have. Returns 0, or -1 with
 * the reason in 'error'; to be closed in both cases. */
int paper_session_open(struct paper_session *session, struct leave_out *out,
                       const struct leave_out_spec *spec, char *error, size_t size);
void paper_session_close(struct paper_session *session);

/* The next functions return 0, the number of a signal, or -1 with the reason in session->error. 'x'
 * are the logs of the parameters' times over those of their present values. */

/* Runs 'count' trials, with the wanted rows (NULL: all). 'residuals' gets the logs of ours over the
 * paper's time, by trial and row; those of other rows stay as they are. */
int paper_session_run(struct paper_session *session, const double *x, unsigned int count,
                      const bool *wanted, double *residuals);

/* One number with another value. */
struct paper_trial {
    const double *x;
    struct leave_out_parameter *number;
    double value;
};

/* Runs trials with all rows. The residual of a row that cannot be run is NAN. */
int paper_session_try(struct paper_session *session, const struct paper_trial *trials,
                      unsigned int count, double *residuals);

/* Makes a surrogate around the present values, with one or two samples of each parameter. */
int paper_session_sample(struct paper_session *session, unsigned int samples, const bool *wanted,
                         struct surrogate *surrogate);

/* Makes x the present values, and then zero. */
void paper_session_move(struct paper_session *session, double *x);

/* The value of a parameter at x. */
double paper_session_value(const struct leave_out_parameter *parameter, double x);

#endif
