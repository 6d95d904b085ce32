/* SPDX-License-Identifier: BSD-2-Clause */
/* A run of the suite: which experiments, with which settings, and what becomes of the results. */
#ifndef BENCH_SESSION_H
#define BENCH_SESSION_H

#include "bench/bench.h"
#include "results/threshold.h"

struct session_spec {
    const char *version;
    const char *command;   /* as it was typed */
    char *const *operands; /* experiments, groups, sweep files; none: the quick tour */
    int operand_count;
    char *const *words; /* options the user gave */
    int word_count;
    bool software; /* Verbena's own adapter is below */
};

/* Exit statuses. */
enum {
    SESSION_OK = 0,
    SESSION_FAILED = 1,      /* an experiment failed, or the results could not be written */
    SESSION_USAGE = 2,       /* nothing was measured: the command line or a sweep is wrong */
    SESSION_THRESHOLD = 3,   /* a --fail-if holds */
    SESSION_SIGNALLED = 128, /* and the number of the signal */
};

/* One experiment with its options. */
struct session_run {
    const struct experiment *experiment;
    char **words;
    int count;
    int ranks;
};

struct plan_make {
    struct session_run *runs;
    unsigned int count;
    int ranks; /* the most that any of them needs */
    struct thresholds thresholds;
};

/* Reads operands and options; returns SESSION_OK, or SESSION_USAGE having said why. */
int plan_make(const struct session_spec *spec, struct plan_make *out);
void plan_free(struct plan_make *plan);

/* Measures; returns an exit status. */
int session_run(const struct session_spec *spec, const struct plan_make *plan);

#endif
