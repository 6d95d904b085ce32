/* The names that writer and reader share; docs/results.md tells what they mean. */
#ifndef RESULTS_SCHEMA_H
#define RESULTS_SCHEMA_H

#include "results.h"

#define RESULTS_SCHEMA "verbena-results/1"

/* The figures of a point but its count, in the order in which they are written. */
struct figure_row {
    const char *name;
    size_t offset; /* in struct summary */
};

extern const struct figure_row results_figures[];
extern const unsigned int results_figure_count;

static inline double *figure_of(const struct figure_row *row, struct summary *summary)
{
    return (double *)((char *)summary + row->offset);
}

/* No format has a way to write infinity, or no number. */
bool results_finite(const struct results *results);

/* Whole numbers, such as sizes, are written in full, others with as many digits as any clock is
 * good for. */
#define RESULTS_DIGITS 9
bool schema_is_whole(double number);

#endif
