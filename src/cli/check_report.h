/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_CHECK_REPORT_H
#define CLI_CHECK_REPORT_H

#include "check_run.h"

#include <stdio.h>

/* Escapes what HTML and XML do not take as it is. */
void check_write_escaped(FILE *file, const char *text);

/* The variations of a run, one on each line. */
void check_write_variation(FILE *file, const struct check_search *search,
                           const struct check_variation *variation);

/* The trace of the run that a report is about. */
void check_trace_path(const char *directory, char *path);

/* Writes index.html, and beside it what the programs wrote and what was found in run `number`. The
 * trace is there already. Returns 0, or -1 with errno. */
int check_report(const struct check_search *search, const struct check_variation *variation,
                 const struct check_verdict *verdict, unsigned number, const char *directory);

#endif
