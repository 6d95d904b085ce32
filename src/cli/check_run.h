/* SPDX-License-Identifier: BSD-2-Clause */
/* One run of a search: what varies with its seed, the programs, and the verdict. */
#ifndef CLI_CHECK_RUN_H
#define CLI_CHECK_RUN_H

#include "check/plan.h"
#include "sim/adapter/parameters.h"
#include "util/util.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define CHECK_PROGRAMS_MAX 16

/* What all runs of a search have in common. */
struct check_search {
    unsigned programs;
    char **words[CHECK_PROGRAMS_MAX]; /* each ends with NULL */
    char commands[CHECK_PROGRAMS_MAX][128]; /* the words, as far as they fit, to show */
    struct parameters base;           /* of the modelled adapter */
    const char *settings;             /* of the user, part of 'base'; or NULL */
    bool errors;                      /* runs may inject errors, not only vary times */
    const struct plan *inject;        /* of the user, instead of random faults; or NULL */
    unsigned limit;                   /* real seconds for a run */
    bool any_order;                   /* runs vary the order in which the programs start */
    const char *trace;                /* file for a trace of the run, or NULL */
    char directory[PATH_MAX];         /* for the output of programs */
};

/* What a seed varies. */
struct check_variation {
    uint64_t seed;
    char settings[4096]; /* of the adapter */
    char faults[64];     /* of the links */
    unsigned first;      /* the program that starts first; the others follow in the order given */
    unsigned rows;
    char row[PLAN_ROWS_MAX][PLAN_ROW_SIZE]; /* of the fault plan */
};

struct check_verdict {
    bool failed;
    double seconds;
    char kind[32];     /* "crash", "deadlock", ... */
    char reason[1024]; /* one line */
};

/* Real time. */
static inline double check_seconds_since(uint64_t begin_ns)
{
    return (now_ns() - begin_ns) / 1e9;
}

void check_vary(const struct check_search *search, uint64_t seed, struct check_variation *out);

/* Runs the programs once, in the calling process, which should be a child made for this: it gets a
 * network namespace of its own where the system allows that. `number` tells runs apart that go on
 * at the same time. Returns false, and no verdict, if a program could not be started. */
bool check_run(const struct check_search *search, const struct check_variation *variation,
               unsigned number, struct check_verdict *verdict);

/* The file with what the run found, one line of JSON each. */
void check_findings_path(const struct check_search *search, unsigned number, char *path);
/* The file with what program `program` of the run wrote. */
void check_output_path(const struct check_search *search, unsigned number, unsigned program,
                       char *path);

#endif
