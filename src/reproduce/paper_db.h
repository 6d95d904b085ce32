/* What the papers say, and which experiment stands for it: papers/results.csv and papers/NAME.json.
 * docs/reproduce.md is the format. */
#ifndef REPRODUCE_BOOK_H
#define REPRODUCE_BOOK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Columns of results.csv. */
enum field {
    FIELD_ID,
    FIELD_PAPER,
    FIELD_PLATFORM,
    FIELD_EXPERIMENT,
    FIELD_SETUP,
    FIELD_METRIC,
    FIELD_UNIT,
    FIELD_VALUE,
    FIELD_KIND,
    FIELD_NOTE,
    FIELD_COUNT,
};

extern const char *const field_names[FIELD_COUNT];

struct paper {
    char *path;
    json_t *document;
    const char *name;   /* "pcie" */
    const char *number; /* "004" */
    bool whole;         /* all of it was asked for */
};

/* A figure that a paper quotes. */
struct paper_row {
    char *fields[FIELD_COUNT];
    const struct paper *paper;
    const json_t *how; /* of the paper's "rows" */
    double value;      /* NAN: a shape without a number */
    bool chosen;
};

struct paper_db {
    unsigned int paper_count;
    struct paper *papers;
    unsigned int row_count;
    struct paper_row *rows; /* those of a paper follow each other */
};

/* These return 0, or -1 with the reason in 'error'. */
int paper_db_read(const char *directory, struct paper_db *out, char *error, size_t size);
int paper_db_choose(struct paper_db *book, const char *name, char *error,
                size_t size); /* a paper, a row, or rows of one experiment */

void paper_db_choose_all(struct paper_db *book);
void paper_db_free(struct paper_db *book);

/* One point, or all points of a curve, of the experiment that a run makes. */
struct reference {
    const char *adapter;
    const char *set; /* or NULL */
    const char *run;
    char quantity[64];
    char series[96];
    bool all;
    double x;
};

/* 'what' is "QUANTITY/SERIES/X", or an object with that as "point" and what is not the row's own.
 */
int paper_db_reference_read(const struct paper_row *row, const json_t *what, struct reference *out,
                   char *error, size_t size);

/* The command of a run without "verbena"; to be freed. */
char *paper_db_run_line(const struct paper *paper, const char *run, bool quick);

/* Calls 'visit' for every reference of the row, until it returns other than 0. */
int paper_db_row_references(const struct paper_row *row,
                   int (*visit)(const struct reference *reference, void *context), void *context);

/* A figure is drawn if its paper is wanted as a whole, or a row that stands in it. */
bool paper_db_row_chosen(const struct paper_db *book, const struct paper *paper, const json_t *figure);

/* A member that is text; NULL if it is not there. */
const char *paper_db_text(const json_t *object, const char *name);

#endif
