/* SPDX-License-Identifier: BSD-2-Clause */
/* How much of the processors other programs use while this one measures. */
#ifndef BENCH_OTHER_LOAD_H
#define BENCH_OTHER_LOAD_H

struct other_load {
    double total, busy; /* of all processors since boot, s */
    double own;         /* of this process and the children that it has waited for, s */
};

/* Sets the members to the present counts, or to NAN if the system does not tell. */
void other_load_read(struct other_load *out);

/* The share of the time of all processors since 'since' that was used by others, 0 to 1; NAN if
 * unknown. */
double other_load_since(const struct other_load *since);

#endif
