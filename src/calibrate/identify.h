/* SPDX-License-Identifier: BSD-2-Clause */
/* Which keys the data determine, which only together, and which not at all. */
#ifndef CALIBRATE_IDENTIFY_H
#define CALIBRATE_IDENTIFY_H

#include "calibrate/fit.h"

/* Keys of which the data determine one combination only. */
struct identify_group {
    unsigned int count;
    unsigned int keys[PARAMETER_ROWS_MAX]; /* their numbers */
    double direction[PARAMETER_ROWS_MAX];  /* of each, in which the data are weakest; largest: 1 */
    bool is_sum;                           /* all are times, and their sum is determined */
    double sum, error;
};

struct identify {
    unsigned int count;
    struct identify_group groups[PARAMETER_ROWS_MAX / 2];
};

/* Sets origin and error of every smooth key from the Jacobian of the last fit. */
void identify_keys(struct fit *fit, struct identify *out);

#endif
