/* SPDX-License-Identifier: BSD-2-Clause */
/* Sweeps of a flow along an axis: latency, bandwidth or message rate, with a curve for each
 * variant of the flow. */
#ifndef BENCH_MEASURE_SWEEP_H
#define BENCH_MEASURE_SWEEP_H

#include "stream.h"

#define SWEEP_CURVES_MAX 64
#define SWEEP_NAME_MAX   48

struct sweep_names {
    const char *list[SWEEP_CURVES_MAX];
    char texts[SWEEP_CURVES_MAX][SWEEP_NAME_MAX];
};

struct sweep {
    const char *axis;
    const char *axis_unit;
    const struct number_list *values;
    unsigned int curves;
    const char *const *names;
    /* Describes the flow of a point; false if the curve has no point at this value. */
    bool (*point)(const struct sweep *sweep, unsigned int curve, uint64_t value,
                  struct flow_spec *spec);
    const void *context;
};

/* Collective over ranks 0 and 1; each opens a panel. */
int sweep_latency(struct bench *bench, const struct sweep *sweep);
int sweep_bandwidth(struct bench *bench, const struct sweep *sweep);
int sweep_rate(struct bench *bench, const struct sweep *sweep);

/* How the sweeps stream a flow: in the user's style if the operation and transport allow it, and
 * with the user's window, or a larger one if the signalled interval requires it. */
struct stream_plan sweep_plan(const struct bench *bench, const struct flow_spec *spec);

/* The first of the operations that the user chose. */
enum operation sweep_operation(const struct bench *bench);

uint64_t sweep_largest(const struct number_list *values);

/* Names curves "64", "4K"; or "1 segment", "2 segments". */
void sweep_name_sizes(struct sweep_names *names, const struct number_list *sizes);
void sweep_name_counts(struct sweep_names *names, const struct number_list *counts,
                       const char *singular, const char *plural);

/* Collective. Keeps the values up to the smallest limit of all ranks and notes how many it left
 * out. Skips the experiment if none remains. */
int sweep_keep_up_to(struct bench *bench, const struct number_list *values, uint64_t limit,
                     const char *limiter, struct number_list *out);

#endif
