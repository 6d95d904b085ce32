/* What experiments have in common that vary a flow along an axis: latency and bandwidth, a curve
 * for each variant. */
#ifndef BENCH_EXPERIMENTS_SWEEP_H
#define BENCH_EXPERIMENTS_SWEEP_H

#include "bench/stream.h"

#define SWEEP_CURVES_MAX 64
#define SWEEP_NAME_MAX   48

struct curve_names {
    const char *list[SWEEP_CURVES_MAX];
    char texts[SWEEP_CURVES_MAX][SWEEP_NAME_MAX];
};

struct sweep {
    const char *axis;
    const char *axis_unit;
    const struct number_list *values;
    unsigned int curves;
    const char *const *names;
    /* Describes the flow of a point; false if the curve has none there. */
    bool (*point)(const struct sweep *sweep, unsigned int curve, uint64_t value,
                  struct flow_spec *spec);
    const void *context;
};

/* Collective over ranks 0 and 1; each opens a panel. */
int sweep_latency(struct bench *bench, const struct sweep *sweep);
int sweep_bandwidth(struct bench *bench, const struct sweep *sweep);
int sweep_rate(struct bench *bench, const struct sweep *sweep);

/* How such a flow is streamed: the user's style where it is possible, and the user's window, or a
 * larger one where the signalled interval needs it. */
struct stream_plan sweep_plan(const struct bench *bench, const struct flow_spec *spec);

/* "64", "4K"; "1 segment", "2 segments". */
void name_sizes(struct curve_names *names, const struct number_list *sizes);
void name_counts(struct curve_names *names, const struct number_list *counts, const char *one,
                 const char *many);

/* Collective. Keeps the numbers up to the smallest limit of all ranks; a note tells of the others.
 * Skips the experiment if none is left. */
int keep_up_to(struct bench *bench, const struct number_list *numbers, uint64_t limit,
               const char *what, struct number_list *out);

#endif
