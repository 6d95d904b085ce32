/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers in ascending order, and what stands at a place of them. */
#ifndef UTIL_SORTED_H
#define UTIL_SORTED_H

#include <stdlib.h>

static inline int sorted_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static inline void sorted_make(double *numbers, size_t count)
{
    qsort(numbers, count, sizeof(*numbers), sorted_compare);
}

/* Of at least one. */
static inline double sorted_median(const double *sorted, size_t count)
{
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

/* Nine in ten are no larger. */
static inline double sorted_nine_in_ten(const double *sorted, size_t count)
{
    return sorted[(9 * count + 9) / 10 - 1];
}

#endif
