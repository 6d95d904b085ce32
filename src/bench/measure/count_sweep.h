/* SPDX-License-Identifier: BSD-2-Clause */
/* Sweeps over a count (queue pairs, regions, nodes, threads): a value for each count, with a curve
 * for each message size. */
#ifndef BENCH_MEASURE_COUNT_SWEEP_H
#define BENCH_MEASURE_COUNT_SWEEP_H

#include "flow.h"

/* Collective. Measures one point. */
typedef int (*count_sweep_measure)(struct bench *bench, void *context, size_t size,
                                   unsigned int count, struct summary *out);

struct count_sweep_curve {
    const char *name; /* the message size is appended if there are several */
    count_sweep_measure measure;
};

struct count_sweep {
    const char *quantity;
    const char *unit;
    enum better better;
    const char *axis;
    const struct number_list *counts;
    uint64_t limit;                  /* the largest count that this rank's device allows */
    const char *limiter;             /* what the device limits, in the plural: "queue pairs" */
    const struct number_list *sizes; /* NULL: the message size does not matter */
    void *context;
    unsigned int curve_count;
    const struct count_sweep_curve *curves;
};

/* Collective. Leaves out counts beyond the smallest limit of all ranks, and notes it. --refine adds
 * counts where the first curve steps. */
int count_sweep_run(struct bench *bench, const struct count_sweep *sweep);

/* Runs the sweep with a single curve, which is named after its quantity. */
int count_sweep_one_curve(struct bench *bench, struct count_sweep sweep, const char *quantity,
                          count_sweep_measure measure);

/* Runs a single curve of times in us over the settings' numbers of queue pairs. */
int count_sweep_time_by_qps(struct bench *bench, const char *quantity,
                            const struct count_sweep_curve *curve);

/* Latency and bandwidth of sends between ranks 0 and 1 over the settings' sizes. 'describe' adapts
 * the flow to the count. */
int count_sweep_flow(struct bench *bench, struct count_sweep sweep,
                     void (*describe)(struct flow_spec *spec, unsigned int count));

/* A ping-pong that uses every slot at least once during the warm-up and at least once while it is
 * timed. 'every': see pingpong.h. */
int count_sweep_latency(struct bench *bench, const struct flow_spec *spec, unsigned int every,
                        struct summary *out);

/* How many connected queue pairs this device allows if each needs 'cqs' completion queues. */
uint64_t count_sweep_qp_limit(const struct bench *bench, unsigned int cqs);

#endif
