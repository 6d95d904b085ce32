/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares what a paper reports with the curves that the jobs measured. */
#ifndef REPRODUCE_EVALUATE_H
#define REPRODUCE_EVALUATE_H

#include "paper_db.h"
#include "jobs.h"

enum verdict {
    VERDICT_MATCHES,
    VERDICT_MISSES,
    VERDICT_NOT_RUN,
    VERDICTS,
};

/* Settings of one adapter. */
struct variation_setting {
    const char *adapter;
    const char *set; /* or NULL */
};

/* A what-if: another adapter, or changed parameters, of all adapters or of each, or longer runs;
 * members may be NULL. */
struct variation {
    const char *adapter;
    const char *set;
    unsigned int setting_count;
    const struct variation_setting *settings;
    unsigned int longer; /* times the warm-up and the iterations; 0: as the paper's file has them */
};

struct evaluation {
    const struct jobs *jobs;
    const struct variation *variation;
    bool quick;
    double tolerance; /* % of the paper's value */
};

struct outcome {
    enum verdict verdict;
    double ours;    /* NAN for a shape, which has no value */
    double error;   /* %, NAN for a shape; of a saving, that of the ratio of times */
    double points;  /* of a saving: ours less the paper's; NAN otherwise */
    double excess;  /* of a shape: log of its worst ratio over the bound; below 0: it matches */
    char text[512]; /* the values behind a shape, or why the row was not run */
    char criterion[1024]; /* when the row matches, in words, and how near it is to that */
};

void evaluate_row(const struct evaluation *evaluation, const struct paper_row *row,
                  struct outcome *out);
const char *evaluate_verdict_name(enum verdict verdict);

/* Applies the variation to an adapter and its settings. The caller frees *set_out. */
void evaluate_apply_variation(const struct variation *variation, const char *adapter,
                              const char *set, const char **adapter_out, char **set_out);

/* The command line of a run under the variation. The caller frees it. */
char *evaluate_run_line(const struct evaluation *evaluation, const struct paper *paper,
                        const char *run);

/* Returns the job for a paper's run under the variation, or NULL if there is none. */
const struct job *evaluate_job(const struct evaluation *evaluation, const struct paper *paper,
                               const char *run, const char *adapter, const char *set);

#endif
