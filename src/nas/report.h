/* SPDX-License-Identifier: BSD-2-Clause */
/* The report of a run, as text and as a result file. */
#ifndef NAS_REPORT_H
#define NAS_REPORT_H

#include "run.h"

/* Called by all ranks; rank 0 prints, and writes to 'output' unless that is NULL. Returns 0, or -1
 * after printing why. */
int report_run(struct nas_run *run, const char *output, const char *command);

#endif
