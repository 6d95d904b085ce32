/* SPDX-License-Identifier: BSD-2-Clause */
/* Fits the numbers of a paper's adapters to its values: to all of them, or to all but one, or but
 * those of a curve, to see how far these are if the model has not seen them. */
#ifndef CALIBRATE_LEAVE_OUT_H
#define CALIBRATE_LEAVE_OUT_H

#include "reproduce/reproduce.h"

#include <limits.h>

struct leave_out_row {
    const struct paper_row *row;
    bool is_shape; /* only that it matches counts, not by how much */
    bool stays;    /* of another paper, which only holds the fit: never left out */
    /* Relative errors of times, as logarithms; of a shape, by how much it exceeds its bound: */
    double now;    /* of the adapter files as they are */
    double seen;   /* fitted to all rows */
    double unseen; /* fitted to all others, or all other curves; NAN: none was left out */
    double again;  /* the same by real runs instead of the surrogate; NAN: not asked for */
};

#define FOLLOWERS_MAX 4

/* A fitted number of an adapter file. */
struct leave_out_parameter {
    const struct parameter_row *row;
    char file[PATH_MAX]; /* that sets it */
    /* "fitted, as" this one in the same file: they always have its value. */
    const struct parameter_row *followers[FOLLOWERS_MAX];
    unsigned int follower_count;
    double start;         /* in the file */
    double value;         /* around which the surrogate is */
    double prior, spread; /* logs: what other adapters have, over the value */
    double fitted, error; /* to all rows: its value, and the relative standard error */
};

#define TRIES_MAX 2

/* A count or size, a switch (0: no, 1: yes), or a time or rate of 0, that the files call fitted. */
struct leave_out_choice {
    struct leave_out_parameter number; /* its value is the one that was taken last */
    double gain; /* by how much the sum of squares fell when another value was taken; 0: none was */
    unsigned int try_count;
    struct leave_out_try {
        double value;
        double worse; /* the sum of squares by so much; infinite: rows cannot be run */
        bool moves;   /* any row */
    } tries[TRIES_MAX];
};

struct leave_out_spec {
    const char *paper; /* whose values are left out; NULL: of all papers */
    bool all;    /* fit to all rows, beginning with the files as they are, and leave none out */
    bool curves; /* leave out all values of a figure at once, and run the solutions */
    const char *refit; /* ids of rows to fit by real runs, separated by commas, "none"; NULL: all */
    const char *keep;  /* directory for the results of runs, or NULL */
    unsigned int at_once; /* runs in parallel; 0: one for each core */
};

struct leave_out {
    bool all; /* 'again' is the error after the fit to all rows */
    bool curves;
    unsigned int row_count;
    struct leave_out_row *rows;
    unsigned int parameter_count;
    struct leave_out_parameter *parameters;
    unsigned int choice_count; /* only fits to all rows judge them */
    struct leave_out_choice *choices;
    unsigned int run_count;
};

/* Of the selected rows of one paper. Returns 0; the number of the signal that interrupted it; or -1
 * with the reason in 'error'. Progress goes to standard error. */
int leave_out_run(const struct paper_db *db, const struct leave_out_spec *spec,
                  struct leave_out *out, char *error, size_t size);
void leave_out_free(struct leave_out *result);

/* Whether both rows are points of one curve: of one figure. */
bool leave_out_same_curve(const struct leave_out_row *one, const struct leave_out_row *other);

/* Whether the value of a row is an inverse time. */
bool leave_out_is_rate(const struct paper_row *row);

/* For the terminal, and for programs. */
void leave_out_print(const struct leave_out *result, FILE *out);
json_t *leave_out_json(const struct leave_out *result, const char *command);

#endif
