/* SPDX-License-Identifier: BSD-2-Clause */
/* The values that the papers report, and the experiments that reproduce them: papers/results.csv
 * and papers/NAME.json. docs/reproduce.md describes the format. */
#ifndef REPRODUCE_PAPER_DB_H
#define REPRODUCE_PAPER_DB_H

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
    unsigned int directory; /* which of those that were read */
    json_t *document;
    json_t *left_out;   /* how far its values are when the model has not seen them, or NULL */
    const char *name;   /* "pcie" */
    const char *number; /* "004" */
    bool whole;         /* selected as a whole */
};

/* A value that a paper reports. */
struct paper_row {
    char *fields[FIELD_COUNT];
    const struct paper *paper;
    const json_t *spec; /* entry in the paper's "rows" */
    double value;       /* NAN for a shape, which has no value */
    bool selected;
};

struct paper_db {
    unsigned int paper_count;
    struct paper *papers;
    unsigned int replaced_count;
    struct paper *replaced; /* by a paper of the same name in a later directory */
    unsigned int row_count;
    struct paper_row *rows; /* grouped by paper */
};

/* Return 0, or -1 with the reason in 'error'. Each directory has a results.csv and a file for each
 * paper in it; a paper replaces one of the same name in an earlier directory. */
int paper_db_read(const char *const *directories, unsigned int count, struct paper_db *out,
                  char *error, size_t size);
int paper_db_select(struct paper_db *db, const char *name, char *error,
                    size_t size); /* a paper, a row, or all rows of an experiment */

void paper_db_select_all(struct paper_db *db);
void paper_db_free(struct paper_db *db);

/* One point, or all points, of a curve in the results of a run. */
struct reference {
    const char *adapter;
    const char *set; /* or NULL */
    const char *run;
    char quantity[64];
    char series[96];
    bool all;
    double x;
};

/* 'what' is "QUANTITY/SERIES/X", or an object with that as "point" and members that override the
 * row's adapter, set or run. */
int paper_db_reference_read(const struct paper_row *row, const json_t *what, struct reference *out,
                            char *error, size_t size);

/* The command line of a run without "verbena". The caller frees it. */
char *paper_db_run_line(const struct paper *paper, const char *run, bool quick);

/* Calls 'visit' for every reference of the row until it returns nonzero. Returns that, or -1 with
 * the reason in 'error' if a reference cannot be read, which paper_db_read() has ruled out for
 * its rows: others pass NULL. */
int paper_db_visit_references(const struct paper_row *row,
                              int (*visit)(const struct reference *reference, void *context),
                              void *context, char *error, size_t size);

/* A figure is drawn if its whole paper is selected, or a row that it shows. */
bool paper_db_figure_selected(const struct paper_db *db, const struct paper *paper,
                              const json_t *figure);

/* Returns a string member, or NULL if it is missing. */
const char *paper_db_text(const json_t *object, const char *name);

#endif
