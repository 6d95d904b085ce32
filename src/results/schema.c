/* SPDX-License-Identifier: BSD-2-Clause */
#include "schema.h"

#include <math.h>

const struct statistic_field results_statistics[] = {
    { "min", offsetof(struct summary, minimum) },
    { "median", offsetof(struct summary, median) },
    { "mean", offsetof(struct summary, mean) },
    { "p99", offsetof(struct summary, p99) },
    { "p999", offsetof(struct summary, p999) },
    { "max", offsetof(struct summary, maximum) },
    { "stddev", offsetof(struct summary, deviation) },
    { "ci_low", offsetof(struct summary, low) },
    { "ci_high", offsetof(struct summary, high) },
};

const unsigned int results_statistic_count =
    sizeof(results_statistics) / sizeof(*results_statistics);

const char *schema_better_name(enum better better)
{
    static const char *const names[] = {
        [BETTER_LOWER] = "lower",
        [BETTER_HIGHER] = "higher",
        [BETTER_NEITHER] = "neither",
    };

    return names[better];
}

/* Above 2^53 a double cannot represent every integer. */
bool schema_is_whole(double number)
{
    return number == floor(number) && fabs(number) <= 0x1p53;
}

static bool point_finite(const struct point *point)
{
    struct summary y = point->y;

    for (unsigned int i = 0; i < results_statistic_count; i++) {
        if (!isfinite(*schema_statistic(&results_statistics[i], &y)))
            return false;
    }
    for (unsigned int i = 0; i < point->round_count; i++) {
        if (!isfinite(point->rounds[i]))
            return false;
    }
    return isfinite(point->x);
}

bool results_finite(const struct results *results)
{
    for (unsigned int i = 0; i < results->count; i++) {
        const struct experiment_result *result = &results->experiments[i];

        for (unsigned int j = 0; j < result->count; j++) {
            for (unsigned int k = 0; k < result->series[j].count; k++) {
                if (!point_finite(&result->series[j].points[k]))
                    return false;
            }
        }
    }
    return true;
}
