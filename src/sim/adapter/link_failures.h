/* SPDX-License-Identifier: BSD-2-Clause */
/* Cables between switches that fail at a time of the run, for good. */
#ifndef SIM_ADAPTER_LINK_FAILURES_H
#define SIM_ADAPTER_LINK_FAILURES_H

#include "sim/adapter/shape.h"

#define LINK_FAILURES_MAX 16

struct link_failure {
    char ends[2][SHAPE_NAME_BYTES]; /* names of the switches */
    uint64_t time;                  /* ns */
};

/* Parses "leaf0 spine1 20us, leaf1 spine0 1ms", or "none". Returns how many, or -1 with the reason
 * in 'error'. */
int link_failures_read(const char *text, struct link_failure out[LINK_FAILURES_MAX], char *error,
                       size_t size);

#endif
