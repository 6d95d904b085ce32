/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_FAULTPLAN_H
#define CLI_FAULTPLAN_H

#include "check/plan.h"
#include "options.h"

/* Reads the plan of --inject and --inject-file. Returns CLI_OK, or CLI_USAGE after printing the
 * reason. */
int faultplan_read(const struct invocation *invocation, struct plan *plan);

#endif
