/* The papers again, on the modelled adapters. */
#ifndef REPRODUCE_REPRODUCE_H
#define REPRODUCE_REPRODUCE_H

#include "judge.h"

#define REPRODUCTION_SCHEMA "verbena-reproduction/1"

/* A row and what became of it; 'before' counts only where there is a change. */
struct judged {
    const struct paper_row *row;
    struct outcome now, before;
};

struct reproduction {
    const struct paper_db *book;
    struct judge now, before;
    bool changed;
    unsigned int count;
    struct judged *rows; /* the chosen ones */
};

/* Adds what the chosen rows and figures need. */
void reproduce_want(const struct paper_db *book, const struct judge *judge, struct jobs *jobs);

/* Judges the chosen rows; 'before' is NULL where nothing is changed. */
void reproduce_judge(const struct paper_db *book, const struct judge *now,
                        const struct judge *before, struct reproduction *out);
void reproduce_free(struct reproduction *reproduction);

unsigned int reproduce_count(const struct reproduction *reproduction, enum verdict verdict);

/* For the terminal, for programs, for spreadsheets. */
void reproduce_print(const struct reproduction *reproduction, FILE *out);
json_t *document_json(const struct reproduction *reproduction, const char *version,
                          const char *date, const char *command);
void document_csv(const struct reproduction *reproduction, FILE *out);
void document_curves_csv(const json_t *reproduction, FILE *out);

#endif
