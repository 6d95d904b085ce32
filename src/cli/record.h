/* SPDX-License-Identifier: BSD-2-Clause */
/* --record FILE.goal: the schedule of an MPI program. Each rank writes a part. */
#ifndef CLI_RECORD_H
#define CLI_RECORD_H

#include "options.h"

/* Exports the path to the ranks. */
int record_export(const struct invocation *invocation);

/* Call when every process has ended: joins the parts, or removes them if the program has failed.
 * Returns the status, changed from CLI_OK if the schedule could not be written. */
int record_finish(int status);

#endif
