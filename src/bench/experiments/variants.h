/* Sweeps over the message size in which each curve has one property of the flow changed. */
#ifndef BENCH_EXPERIMENTS_VARIANTS_H
#define BENCH_EXPERIMENTS_VARIANTS_H

#include "sweep.h"

#define VARIANTS_MAX 16

struct variants {
    struct bench *bench;
    unsigned int count;
    struct flow_spec specs[VARIANTS_MAX]; /* all but the size */
    struct curve_names names;
    void (*fit)(struct flow_spec *spec); /* to the size, which is set; or NULL */
};

/* The first of the operations that the user names. */
enum operation chosen_operation(const struct bench *bench);

/* A flow as the user's settings describe it, to be changed; NULL when there are enough. */
struct flow_spec *variants_add(struct variants *variants, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Each opens a panel. Sizes that a variant's service does not take are left out of its curve. */
int variants_latency(const struct variants *variants, const struct number_list *sizes);
int variants_bandwidth(const struct variants *variants, const struct number_list *sizes);

/* Both, over the user's sizes. */
int variants_measure(const struct variants *variants);

#endif
