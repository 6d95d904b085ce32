/* SPDX-License-Identifier: BSD-2-Clause */
/* Which experiment to run next: the one that tells most about what is not determined. */
#ifndef CALIBRATE_SUGGEST_H
#define CALIBRATE_SUGGEST_H

#include "calibrate/identify.h"

struct suggestion {
    const struct experiment *experiment; /* NULL: none of the suite helps */
    double effect;                       /* rms of the relative changes of its points */
    unsigned int group;                  /* of 'identify', from 1; 0: a single key */
    unsigned int key;
};

#define SUGGESTIONS_MAX 64

/* Names the control experiments of keys that have one, and tries the other experiments of the suite
 * that were not measured. Returns as runs_evaluate(). */
int suggest_experiments(struct fit *fit, const struct identify *identify, struct suggestion *out,
                        unsigned int *count);

#endif
