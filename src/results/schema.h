/* SPDX-License-Identifier: BSD-2-Clause */
/* The names that writer and reader share; docs/results.md explains them. */
#ifndef RESULTS_SCHEMA_H
#define RESULTS_SCHEMA_H

#include "results.h"

#define RESULTS_SCHEMA "verbena-results/1"

/* The statistics of a point except its count, in the order in which they are written. */
struct statistic_field {
    const char *name;
    size_t offset; /* in struct summary */
};

extern const struct statistic_field results_statistics[];
extern const unsigned int results_statistic_count;

static inline double *schema_statistic(const struct statistic_field *row, struct summary *summary)
{
    return (double *)((char *)summary + row->offset);
}

/* Neither JSON nor CSV can represent infinity or NaN. */
bool results_finite(const struct results *results);

/* Integers, such as sizes, are written in full, other numbers with this many significant digits. */
#define RESULTS_DIGITS 9
bool schema_is_whole(double number);

#endif
