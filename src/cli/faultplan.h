/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_FAULTPLAN_H
#define CLI_FAULTPLAN_H

#include "options.h"

/* Checks the values of --inject and --inject-file. Returns CLI_OK, or CLI_USAGE after printing the
 * reason. */
int faultplan_check(const struct invocation *invocation);

#endif
