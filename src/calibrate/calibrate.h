/* SPDX-License-Identifier: BSD-2-Clause */
/* From measured results to an adapter file. */
#ifndef CALIBRATE_CALIBRATE_H
#define CALIBRATE_CALIBRATE_H

#include "calibrate/suggest.h"

#include <jansson.h>

struct calibrate_spec {
    const char *start;    /* the adapter to begin with */
    const char *held_out; /* experiments or files to predict, separated by commas, or NULL */
    const char *fit;      /* keys to fit, likewise; NULL: the usual ones */
    unsigned int at_once; /* runs in parallel; 0: one for each core */
};

struct calibration {
    struct keys keys;
    struct data data;
    struct identify identify;
    unsigned int suggestion_count;
    struct suggestion suggestions[SUGGESTIONS_MAX];
    struct results *modelled; /* every experiment on the calibrated adapter */
    double *values;           /* by point: logarithm of the modelled value, or NAN */
    unsigned int runs;
};

/* Returns 0; the number of the signal that interrupted it; or -1 with the reason in 'error'.
 * Progress goes to standard error. */
int calibrate_run(const struct calibrate_spec *spec, struct results **files, unsigned int count,
                  struct calibration *out, char *error, size_t size);
void calibrate_free(struct calibration *calibration);

/* For the terminal, for programs, and as an adapter file. */
void calibrate_print(const struct calibration *calibration, FILE *out);
json_t *calibrate_json(const struct calibration *calibration);
void calibrate_write(const struct calibration *calibration, const char *command, FILE *out);

#endif
