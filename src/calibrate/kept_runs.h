/* SPDX-License-Identifier: BSD-2-Clause */
/* Results of runs in a directory that outlives the calibration: a second one, or the rest of one
 * that was interrupted, does not run them again. */
#ifndef CALIBRATE_KEPT_RUNS_H
#define CALIBRATE_KEPT_RUNS_H

#include "reproduce/jobs.h"

/* Gives jobs the results that 'directory' has of them. */
void kept_runs_take(const char *directory, struct jobs *jobs);

/* Keeps the results of a job that has run in 'from'. Returns 0, or -1 with errno. */
int kept_runs_put(const char *directory, const char *from, const struct job *job);

#endif
