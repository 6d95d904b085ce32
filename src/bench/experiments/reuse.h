/* What the two schemes of buffer reuse have in common. */
#ifndef BENCH_EXPERIMENTS_REUSE_H
#define BENCH_EXPERIMENTS_REUSE_H

#include "variants.h"

struct reuse_scheme {
    /* How many messages make the sequence of buffers, or 0 with the reason why this share has none.
     */
    unsigned int (*length)(const struct bench *bench, unsigned int percent, const char **why);

    /* Writes the buffer of each of these messages. */
    void (*order)(unsigned int percent, unsigned int length, unsigned int *buffers);

    /* See struct variants. */
    void (*fit)(struct flow_spec *spec);
};

/* A curve for each share of reuse that was asked for; latency, then bandwidth. */
int reuse_measure(struct bench *bench, const struct reuse_scheme *scheme);

#endif
