/* SPDX-License-Identifier: BSD-2-Clause */
/* A run of the suite: experiments with their settings, and the results. */
#ifndef BENCH_SESSION_H
#define BENCH_SESSION_H

#include "bench/bench.h"
#include "results/threshold.h"

struct session_spec {
    const char *version;
    const char *command;   /* as it was typed */
    char *const *operands; /* experiments, groups, sweep files; none: all, quickly */
    int operand_count;
    char *const *words; /* options of the command line */
    int word_count;
    bool software; /* measures Verbena's software adapter */
};

/* Exit statuses. */
enum {
    SESSION_OK = 0,
    SESSION_FAILED = 1,      /* an experiment failed, or the results could not be written */
    SESSION_USAGE = 2,       /* invalid command line or sweep: nothing was measured */
    SESSION_THRESHOLD = 3,   /* a point meets a --fail-if condition */
    SESSION_SIGNALLED = 128, /* plus the number of the signal */
};

/* One experiment with its options. */
struct session_run {
    const struct experiment *experiment;
    char **words;
    int count;
    int ranks;
};

struct plan {
    struct session_run *runs;
    unsigned int count;
    int ranks; /* the largest number that any run needs */
    struct thresholds thresholds;
};

/* Reads operands and options. Returns SESSION_OK, or SESSION_USAGE after printing the reason. */
int plan_make(const struct session_spec *spec, struct plan *out);
void plan_free(struct plan *plan);

/* Runs the plan and returns an exit status. */
int session_run(const struct session_spec *spec, const struct plan *plan);

#endif
