/* SPDX-License-Identifier: BSD-2-Clause */
/* What "verbena calibrate --leave-one-out" has found, from NAME.left-out beside a paper's file. */
#ifndef REPRODUCE_LEFT_OUT_H
#define REPRODUCE_LEFT_OUT_H

#include "paper_db.h"

#define LEFT_OUT_SCHEMA "verbena-left-out/1"

/* Reads the record of a paper whose file is 'path'. Returns 0, also if there is none (*out is
 * NULL), or -1 with the reason in 'error'. */
int left_out_read(const char *path, json_t **out, char *error, size_t size);

/* Errors in percent that were recorded of the row; NAN if none was: if the model has not seen it, and
 * with the adapter file as it was. */
double left_out_recorded(const struct paper_row *row);
double left_out_now(const struct paper_row *row);

/* Whether no real run has shown what was recorded. */
bool left_out_is_estimate(const struct paper_row *row);

/* The same, and NAN if it was recorded with a model whose error of the row was another than
 * 'error'. */
double left_out_error(const struct paper_row *row, double error);

#endif
