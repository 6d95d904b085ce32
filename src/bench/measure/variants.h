/* SPDX-License-Identifier: BSD-2-Clause */
/* Sweeps over the message size in which each curve changes one property of the flow. */
#ifndef BENCH_MEASURE_VARIANTS_H
#define BENCH_MEASURE_VARIANTS_H

#include "sweep.h"

#define VARIANTS_MAX 16

struct variants {
    struct bench *bench;
    unsigned int count;
    struct flow_spec specs[VARIANTS_MAX]; /* all but the size */
    struct sweep_names names;
    void (*fit)(struct flow_spec *spec); /* adapts the spec to its size; or NULL */
};

/* Adds a flow as the user's settings describe it, for the caller to change. Returns NULL if there
 * are VARIANTS_MAX already. */
struct flow_spec *variants_add(struct variants *variants, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Opens a panel. A curve has no point for sizes beyond the limit of its transport service. */
int variants_latency(const struct variants *variants, const struct number_list *sizes);

/* Latency, then bandwidth, over the user's sizes. */
int variants_measure(const struct variants *variants);

#endif
