/* SPDX-License-Identifier: BSD-2-Clause */
/* The numbers of an adapter file, and where each of them comes from. */
#ifndef CALIBRATE_KEYS_H
#define CALIBRATE_KEYS_H

#include "sim/adapter/parameters.h"

#include <stdio.h>

enum key_origin {
    KEY_KEPT,         /* not varied: its value is that of START */
    KEY_DEVICE,       /* as the measured device reports it */
    KEY_MEASURED,     /* by a control experiment */
    KEY_FITTED,       /* to the data, with a standard error */
    KEY_SHARED,       /* fitted; the data determine only a combination with other keys */
    KEY_UNDETERMINED, /* the data do not determine it: its value is that of START */
    KEY_ORIGINS,
};

enum key_variation {
    KEY_FIXED,
    KEY_SMOOTH,   /* by least squares, on a logarithmic scale */
    KEY_DISCRETE, /* by search */
};

struct key {
    const struct parameter_row *row;
    double start, value;
    enum key_variation variation;
    enum key_origin origin;
    double error;          /* relative standard error of a fitted value */
    double low, high;      /* discrete: the values that fit equally well; 0: no such range */
    unsigned int combined; /* number of the combination of a shared key, from 1 */
    char note[128];        /* what a measured value comes from */
};

/* Every numeric key of START, in the order of parameter_rows. */
struct keys {
    char name[64];   /* of START, for comments */
    char path[4096]; /* of its file, absolute */
    struct parameters start;
    unsigned int count;
    struct key list[PARAMETER_ROWS_MAX];
};

/* Reads the adapter START. Returns 0, or -1 with the reason in 'error'. */
int keys_read(const char *start, struct keys *out, char *error, size_t size);

struct key *keys_find(struct keys *keys, const char *name);

/* Chooses what varies: the keys and prefixes ("bus", "hca.engines") of a comma-separated list, or
 * the usual ones if it is NULL or names "usual". Returns 0, or -1 with the reason in 'error'. */
int keys_choose(struct keys *keys, const char *list, char *error, size_t size);

/* The value that a key starts from: START's, or one to begin with where START has 0. */
double keys_seed(const struct key *key);

/* Returns keys that nothing has determined to START. Returns whether that changes any. */
bool keys_restore(struct keys *keys);

/* A value within the limits of its row, rounded as the row wants it. */
double keys_valid(const struct key *key, double value);

/* The value with its unit, in the syntax of adapter files. */
const char *keys_text(const struct parameter_row *row, double value, char *text, size_t size);

const char *keys_origin_name(enum key_origin origin);

/* Writes a whole adapter file, each value with its origin. */
void keys_write(const struct keys *keys, const char *title, FILE *out);

/* Writes an adapter file for a trial: START with other values. */
void keys_write_trial(const struct keys *keys, const double *values, FILE *out);

#endif
