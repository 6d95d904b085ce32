/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts, such as the entries of a cache: the value that fits best, by search. */
#ifndef CALIBRATE_SEARCH_H
#define CALIBRATE_SEARCH_H

#include "calibrate/fit.h"

/* Searches each discrete key in turn. Sets *changed if any has another value now. Returns as
 * runs_evaluate(). */
int search_run(struct fit *fit, bool *changed);

#endif
