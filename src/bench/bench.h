/* SPDX-License-Identifier: BSD-2-Clause */
/* What an experiment sees. It runs in every process of the experiment at the same time, as one of
 * 'ranks'; rank 0 takes the times and reports. docs/experiments/writing.md is the guide. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "bench/adapter.h"
#include "bench/clock.h"
#include "bench/control.h"
#include "bench/settings.h"
#include "results/results.h"

/* What run() returns. */
enum {
    BENCH_OK = 0,
    BENCH_FAILED = -1, /* the reason has been given to bench_fail() or bench_skip() */
};

struct bench;
struct report;

/* Where the processes live: matters only where nodes are software. */
enum layout {
    LAYOUT_TWO_HOSTS, /* even ranks on one, odd ranks on the other */
    LAYOUT_ALL_APART, /* each on a node of its own */
    LAYOUT_ONE_HOST,
};

struct experiment {
    const char *name;
    const char *group;
    const char *title;   /* the question, in one line */
    const char *source;  /* paper and figure */
    const char *options; /* its own defaults, as words of settings_rows */
    const char *quick;   /* what --quick changes in them */
    enum layout layout;
    int ranks;                                     /* processes, if 'count' is NULL */
    int (*count)(const struct settings *settings); /* processes, by its settings */
    int (*run)(struct bench *bench);
    const void *spec; /* what run() is to measure, if several experiments share it; else NULL */
};

struct bench {
    const struct experiment *experiment;
    const struct settings *settings;
    struct control *control;
    struct adapter *adapter;
    struct report *report; /* of rank 0, else NULL */
    int rank;
    int ranks;
};

/* One curve of a chart. Every rank may call these; only rank 0's count. A panel is what is printed
 * as one table: curves of one quantity against one axis. */
struct panel_spec {
    const char *quantity;
    const char *unit; /* NULL: none */
    const char *axis;
    const char *axis_unit; /* NULL: none, as of a count */
    enum better better;
    unsigned int count; /* of names */
    const char *const *names;
};

void bench_panel(struct bench *bench, const struct panel_spec *spec);
void bench_point(struct bench *bench, unsigned int curve, double x, const struct summary *y);
void bench_note(struct bench *bench, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Both return BENCH_FAILED, so that they can end a function. Skipping says that the device lacks
 * something, which is no failure. */
int bench_fail(struct bench *bench, const char *format, ...) __attribute__((format(printf, 2, 3)));
int bench_skip(struct bench *bench, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Collective. */
int bench_exchange(struct bench *bench, const void *mine, size_t size, void *all);
int bench_barrier(struct bench *bench);

/* Collective, after each batch of samples: whether rank 0 wants another one, because the user asked
 * for a tolerance that is not met yet. 'start' is when the first batch began (experiment_ns). */
int bench_go_on(struct bench *bench, const struct summary *so_far, uint64_t start, bool *more);

/* The same question, of rank 0 to itself, where it measures alone. */
bool bench_wants_more(const struct bench *bench, const struct summary *so_far, uint64_t start);

/* For loops that wait: false when the experiment has failed elsewhere, was interrupt_seen, or nothing
 * has moved since 'since' (of monotonic_ns) for too long. In virtual time, where that depends on
 * the machine, only time counts in which nothing could move. Not to be called at every turn. */
bool bench_alive(struct bench *bench, uint64_t since);

/* A counter of empty turns for such loops. */
struct patience {
    uint64_t turns;
    uint64_t since;
};

#define PATIENCE_TURNS (1u << 16)

static inline bool patience_ends(struct bench *bench, struct patience *patience)
{
    /* In virtual time a turn that finds nothing sleeps by itself. */
    if (__builtin_expect(++patience->turns % PATIENCE_TURNS, 1) && !vtime.on)
        return false;
    if (!patience->since)
        patience->since = monotonic_ns();
    return !bench_alive(bench, patience->since);
}

#endif
