/* SPDX-License-Identifier: BSD-2-Clause */
/* Outcomes of runs. The model is deterministic: no experiment runs twice with the same values. */
#ifndef CALIBRATE_KNOWN_H
#define CALIBRATE_KNOWN_H

#include "calibrate/data.h"

struct known_run;

struct known {
    const struct data *data;
    unsigned int key_count;
    unsigned int count;
    struct known_run *runs;
};

/* Copies the points of an experiment from an earlier run with the same values, if there is one. */
bool known_find(const struct known *known, unsigned int experiment, bool whole,
                const double *values, double *out);

/* Keeps them. */
void known_keep(struct known *known, unsigned int experiment, bool whole, const double *values,
                const double *out);
void known_free(struct known *known);

#endif
