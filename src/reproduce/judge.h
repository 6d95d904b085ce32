/* Whether what a paper says holds on the curves that were made. */
#ifndef REPRODUCE_JUDGE_H
#define REPRODUCE_JUDGE_H

#include "paper_db.h"
#include "jobs.h"

enum verdict {
    VERDICT_HOLDS,
    VERDICT_MISSES,
    VERDICT_NOT_RUN,
    VERDICTS,
};

/* What replaces the adapters of the papers, all or in parts; members may be NULL. */
struct variation {
    const char *adapter;
    const char *set;
};

struct judge {
    const struct jobs *jobs;
    const struct variation *variation;
    bool quick;
    double tolerance; /* % by which a value may be off */
};

struct outcome {
    enum verdict verdict;
    double ours;    /* NAN: a shape has no number */
    double error;   /* %; NAN likewise */
    char text[512]; /* what was seen of a shape, or why nothing was */
};

void judge_row(const struct judge *judge, const struct paper_row *row, struct outcome *out);
const char *judge_verdict_name(enum verdict verdict);

/* Adapter and settings under a variation; *set is to be freed. */
void judge_variation_index(const struct variation *variation, const char *adapter, const char *set,
                     const char **adapter_out, char **set_out);

/* The job that a run of a paper becomes under a variation, or NULL. */
const struct job *judge_job(const struct judge *judge, const struct paper *paper, const char *run,
                            const char *adapter, const char *set);

#endif
