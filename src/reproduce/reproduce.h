/* The papers again, on the modelled adapters. */
#ifndef REPRODUCE_REPRODUCE_H
#define REPRODUCE_REPRODUCE_H

#include "judge.h"

#define REPRODUCTION_SCHEMA "verbena-reproduction/1"

/* A row and what became of it; 'before' counts only where there is a change. */
struct judged {
    const struct book_row *row;
    struct outcome now, before;
};

struct reproduction {
    const struct book *book;
    struct judge now, before;
    bool changed;
    unsigned int count;
    struct judged *rows; /* the chosen ones */
};

/* Adds what the chosen rows and figures need. */
void reproduction_want(const struct book *book, const struct judge *judge, struct jobs *jobs);

/* Judges the chosen rows; 'before' is NULL where nothing is changed. */
void reproduction_judge(const struct book *book, const struct judge *now,
                        const struct judge *before, struct reproduction *out);
void reproduction_free(struct reproduction *reproduction);

unsigned int reproduction_count(const struct reproduction *reproduction, enum verdict verdict);

/* For the terminal, for programs, for spreadsheets. */
void reproduction_print(const struct reproduction *reproduction, FILE *out);
json_t *reproduction_json(const struct reproduction *reproduction, const char *version,
                          const char *date, const char *command);
void reproduction_csv(const struct reproduction *reproduction, FILE *out);
void curves_csv(const json_t *reproduction, FILE *out);

#endif
