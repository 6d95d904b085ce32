/* What a run came to, as text and as a file of results. */
#ifndef NAS_REPORT_H
#define NAS_REPORT_H

#include "run.h"

/* All ranks call it; rank 0 prints, and writes to 'output' unless that is NULL. Returns 0, or -1
 * having said what went wrong. */
int report_run(struct nas_run *run, const char *output, const char *command);

#endif
