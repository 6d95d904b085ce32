/* SPDX-License-Identifier: BSD-2-Clause */
/* The interface for experiments. An experiment runs in all its ranks at the same time; rank 0
 * measures and reports. docs/experiments/writing.md is the guide. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "bench/adapter.h"
#include "bench/clock.h"
#include "bench/control.h"
#include "bench/patience.h"
#include "bench/settings.h"
#include "results/results.h"

/* Return values of run(). */
enum {
    BENCH_OK = 0,
    BENCH_FAILED = -1, /* bench_fail() or bench_skip() has been called */
};

struct bench;
struct report;

/* Placement of the ranks on the hosts of a software fabric. */
enum layout {
    LAYOUT_TWO_HOSTS, /* even ranks on one, odd ranks on the other */
    LAYOUT_ALL_APART, /* each on its own host */
    LAYOUT_ONE_HOST,
};

struct experiment {
    const char *name;
    const char *title;   /* the question, in one line */
    const char *source;  /* paper and figure */
    const char *options; /* its defaults, as options */
    const char *quick;   /* options that --quick adds */
    enum layout layout;
    int ranks;                                     /* processes, if 'count' is NULL */
    int (*count)(const struct settings *settings); /* processes, depending on the settings */
    int (*run)(struct bench *bench);
    const void *spec; /* for experiments that share a run(), or NULL */
};

struct bench {
    const struct experiment *experiment;
    const struct settings *settings;
    struct control *control;
    struct adapter *adapter;
    struct report *report; /* NULL except in rank 0 */
    int rank;
    int ranks;
};

/* A panel is a table of curves: one quantity against one axis. Every rank may call these functions;
 * they only have an effect in rank 0. */
struct panel_spec {
    const char *quantity;
    const char *unit; /* NULL: none */
    const char *axis;
    const char *axis_unit; /* NULL: none, for a count */
    enum better better;
    unsigned int count; /* of names */
    const char *const *names;
};

void bench_panel(struct bench *bench, const struct panel_spec *spec);
void bench_point(struct bench *bench, unsigned int curve, double x, const struct summary *y);
void bench_note(struct bench *bench, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Both return BENCH_FAILED. An experiment is skipped if the device lacks a capability, which is not
 * a failure. */
int bench_fail(struct bench *bench, const char *format, ...) __attribute__((format(printf, 2, 3)));
int bench_skip(struct bench *bench, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Collective. */
int bench_exchange(struct bench *bench, const void *mine, size_t size, void *all);
int bench_barrier(struct bench *bench);

/* Collective, after each batch of samples. Sets *more if rank 0 needs another batch to reach
 * --tolerance. 'start' is when the first batch began (experiment_ns). */
int bench_continue_sampling(struct bench *bench, const struct summary *so_far, uint64_t start,
                            bool *more);

/* Not collective: for rank 0 if it measures alone. */
bool bench_needs_samples(const struct bench *bench, const struct summary *so_far, uint64_t start);

/* For waiting loops. Returns false if the experiment has failed in another rank, was interrupted,
 * or has made no progress since 'since' (patience_now) for --timeout seconds. In virtual time only
 * time counts in which no event was possible. Too slow to call in every iteration. */
bool bench_alive(struct bench *bench, uint64_t since);

/* Counts unsuccessful polls, to call bench_alive() now and then. */
struct bench_idle {
    uint64_t polls;
    uint64_t since;
};

#define BENCH_IDLE_POLLS         (1u << 16)
#define BENCH_IDLE_POLLS_VIRTUAL (1u << 4) /* an unsuccessful poll blocks by itself */

static inline bool bench_idle_expired(struct bench *bench, struct bench_idle *idle)
{
    idle->polls++;
    if (__builtin_expect(idle->polls % BENCH_IDLE_POLLS, 1) &&
        (!vtime.on || idle->polls % BENCH_IDLE_POLLS_VIRTUAL))
        return false;
    if (!idle->since)
        idle->since = patience_now();
    return !bench_alive(bench, idle->since);
}

#endif
