/* SPDX-License-Identifier: BSD-2-Clause */
/* Reproduces the papers' values on the modelled adapters. */
#ifndef REPRODUCE_REPRODUCE_H
#define REPRODUCE_REPRODUCE_H

#include "evaluate.h"
#include "role.h"

#define REPRODUCTION_SCHEMA "verbena-reproduction/1"

/* 'before' is valid only in a what-if. */
struct row_outcome {
    const struct paper_row *row;
    enum role role;
    double unseen; /* error in percent if the model has not seen the value; NAN: not known */
    struct outcome now, before;
};

struct reproduction {
    const struct paper_db *db;
    struct evaluation now, before;
    bool changed;
    unsigned int count;
    struct row_outcome *rows; /* of the selected rows */
};

/* Adds the jobs that a row needs. */
void reproduce_add_row_jobs(const struct paper_row *row, const struct evaluation *evaluation,
                            struct jobs *jobs);

/* Adds the jobs that the selected rows and figures need. */
void reproduce_add_jobs(const struct paper_db *db, const struct evaluation *evaluation,
                        struct jobs *jobs);

/* Evaluates the selected rows. 'before' is NULL unless this is a what-if. */
void reproduce_evaluate(const struct paper_db *db, const struct evaluation *now,
                        const struct evaluation *before, struct reproduction *out);
void reproduce_free(struct reproduction *reproduction);

/* Rows by role, and those of them that are within the tolerance and within twice of it; shapes that
 * match count as within. */
struct reproduce_summary {
    unsigned int all[ROLES], within[ROLES], within_twice[ROLES], not_run;
    unsigned int independent; /* values that are predicted or fitted */
    /* Of the fitted ones: known is the error that they have when left out of their fit. */
    unsigned int unseen, unseen_within, unseen_within_twice;
    unsigned int unseen_estimated; /* no real run has shown it */
};

struct reproduce_summary reproduce_summarise(const struct reproduction *reproduction);
unsigned int reproduce_count(const struct reproduction *reproduction, enum verdict verdict);

/* Of a what-if with longer runs: names the rows that these move by more than 'tolerance' percent,
 * or whose verdict they change. Returns how many there are. */
unsigned int reproduce_print_moved(const struct reproduction *reproduction, double tolerance,
                                   FILE *out);

/* For the terminal, for programs, for spreadsheets. */
void reproduce_print(const struct reproduction *reproduction, FILE *out);
json_t *document_json(const struct reproduction *reproduction, const char *version,
                      const char *date, const char *command);
void document_csv(const struct reproduction *reproduction, FILE *out);
void document_curves_csv(const json_t *reproduction, FILE *out);

#endif
