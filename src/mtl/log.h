/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages for the user, through Open MPI, which prefixes the name of the process. */
#ifndef MTL_LOG_H
#define MTL_LOG_H

#include <opal/util/output.h>

#define mtl_log(format, ...) opal_output(0, "verbena: " format, ##__VA_ARGS__)

#endif
