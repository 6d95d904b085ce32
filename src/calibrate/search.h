/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts, such as the entries of a cache: the value that fits best, by search. */
#ifndef CALIBRATE_SEARCH_H
#define CALIBRATE_SEARCH_H

#include "calibrate/fit.h"

/* Which experiments each discrete key moves, by key and experiment. */
struct search_map {
    bool *moves;
};

/* Runs the experiments with extreme values of each key. Returns as runs_evaluate(). */
int search_open(struct fit *fit, struct search_map *map);
void search_close(struct search_map *map);

enum search_pass {
    SEARCH_SHAPES, /* entries of caches, by the shape of the curves alone */
    SEARCH_CACHES, /* the same by their values */
    SEARCH_COUNTS, /* all other counts, by the values of the curves */
    SEARCH_NEARBY, /* counts that the data determine, near what was found */
};

/* Searches each discrete key in turn. Adds the experiments that keys with new values move to
 * 'changed', and sets *any if there are such. Returns as runs_evaluate(). */
int search_run(struct fit *fit, const struct search_map *map, enum search_pass pass, bool *changed,
               bool *any);

/* A key that START has at 0, and that the data do not determine, stays where the fit has led if
 * the data contradict the 0. Returns as runs_evaluate(). */
int search_switched_off(struct fit *fit);

#endif
