/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UTIL_FABRIC_LIMITS_H
#define UTIL_FABRIC_LIMITS_H

/* Limits of a fabric. They cost memory only as far as they are used. */
#define FABRIC_NODES_MAX     4096
#define FABRIC_PROCESSES_MAX 4096

#endif
