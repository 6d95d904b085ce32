/* What the experiments on scaling have in common: a figure against a list of numbers, with a curve
 * for each size of message. */
#ifndef BENCH_EXPERIMENTS_SCALING_H
#define BENCH_EXPERIMENTS_SCALING_H

#include "bench/flow.h"

struct scaling_curve {
    const char *name; /* the size is added where there are several */
    /* Collective. */
    int (*measure)(struct bench *bench, void *context, size_t size, unsigned int number,
                   struct summary *out);
};

struct scaling {
    const char *quantity;
    const char *unit;
    enum better better;
    const char *axis;
    const struct number_list *numbers;
    uint64_t limit;                  /* the largest number that this rank's device allows */
    const char *limiter;             /* what there are so many of: "queue pairs" */
    const struct number_list *sizes; /* NULL: they do not matter */
    void *context;
    unsigned int count;
    const struct scaling_curve *curves;
};

/* Collective. Numbers beyond the limit of any rank are left out, which a note tells. With --refine
 * there are further ones where the first curve steps. */
int scaling_run(struct bench *bench, const struct scaling *scaling);

/* A panel of a single curve that is called after its quantity. */
int scaling_quantity(struct bench *bench, struct scaling scaling, const char *quantity,
                     int (*measure)(struct bench *bench, void *context, size_t size,
                                    unsigned int number, struct summary *out));

/* A panel of a single curve of times in us against the numbers of queue pairs in the settings. */
int scaling_by_qps(struct bench *bench, const char *quantity, const struct scaling_curve *curve);

/* Latency and bandwidth of sends between ranks 0 and 1, by flows that 'describe' changes; the sizes
 * are those of the settings. */
int scaling_of_flow(struct bench *bench, struct scaling scaling,
                    void (*describe)(struct flow_spec *spec, unsigned int number));

/* A ping-pong that uses every slot at least once before and while it is timed. 'every': see
 * pingpong.h. */
int scaling_latency(struct bench *bench, const struct flow_spec *spec, unsigned int every,
                    struct summary *out);

/* Connected queue pairs of this device, which need 'cqs' completion queues each. */
uint64_t scaling_qp_limit(const struct bench *bench, unsigned int cqs);

/* Flows between rank 0 and each of 'count' other ranks, from 'first' on. */
struct star {
    int first;
    unsigned int count;
    struct flow *flows;
};

/* Collective over all ranks; the spec's peer does not matter. */
int star_open(struct bench *bench, const struct flow_spec *spec, int first, unsigned int count,
              struct star *out);
void star_close(struct star *star);

/* The flow of a rank other than 0, or NULL if it has none. */
struct flow *star_flow(const struct bench *bench, const struct star *star);

/* The largest of a list. */
uint64_t scaling_largest(const struct number_list *numbers);

#endif
