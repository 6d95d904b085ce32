/* SPDX-License-Identifier: BSD-2-Clause */
#include "sampling.h"

#include <stdlib.h>

#define VALUES_MAX 10000

int sampling_runs(struct bench *bench, int (*run)(void *context, double *value), void *context,
                  struct summary *out)
{
    unsigned int wanted = bench->settings->repetitions, done = 0;
    double *values = malloc(VALUES_MAX * sizeof(*values));
    uint64_t start = experiment_ns();
    int status = BENCH_FAILED;
    bool more = true;

    if (!values)
        return bench_fail(bench, "out of memory");
    while (more) {
        for (unsigned int i = 0; i < wanted && done < VALUES_MAX; i++) {
            if (run(context, &values[done++]))
                goto out;
        }
        histogram_of_values(values, done, out);
        more = done < VALUES_MAX;
        if (bench_continue_sampling(bench, out, start, &more))
            goto out;
    }
    status = BENCH_OK;
out:
    free(values);
    return status;
}

int sampling_iterations(struct bench *bench,
                        int (*batch)(void *context, uint64_t warmup, struct histogram *samples),
                        void *context, double scale, struct summary *out)
{
    struct histogram *samples = histogram_new();
    uint64_t warmup = bench->settings->warmup, start = experiment_ns();
    int status = BENCH_FAILED;
    bool more = true;

    while (more) {
        if (batch(context, warmup, samples))
            goto out;
        warmup = 0;
        histogram_summary(samples, scale, out);
        if (bench_continue_sampling(bench, out, start, &more))
            goto out;
    }
    histogram_trim(samples, bench->settings->trim / 100);
    histogram_summary(samples, scale, out);
    status = BENCH_OK;
out:
    histogram_free(samples);
    return status;
}
