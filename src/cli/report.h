/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "results/results.h"

#include <jansson.h>

/* Writes the page of a reproduction. Returns CLI_OK, or CLI_FAILED after printing the reason.
 * Prints a note if Verbena was built without the page: the other files are complete without it. */
int report_reproduction(json_t *reproduction, const char *path);

/* Writes a page that shows the curves of several runs together. Returns CLI_OK, or CLI_FAILED after
 * printing the reason. */
int report_runs(struct results *const *runs, const char *const *labels, unsigned int count,
                const char *path);

#endif
