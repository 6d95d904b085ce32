/* SPDX-License-Identifier: BSD-2-Clause */
#include "rounds.h"

static void add_point(struct series *series, const struct point *other)
{
    struct point *point = results_point_at(series, other->x);

    if (!point)
        return;
    if (!point->round_count)
        results_point_add_round(point, point->y.median);
    results_point_add_round(point, other->y.median);
}

static void add_experiment(struct experiment_result *result, const struct experiment_result *other)
{
    for (unsigned int i = 0; i < other->count; i++) {
        struct series *series = result_counterpart(result, &other->series[i]);

        for (unsigned int k = 0; series && k < other->series[i].count; k++)
            add_point(series, &other->series[i].points[k]);
    }
    if (other->failed && !result->failed)
        result_failed(result, "in a later round: %s", other->failed);
}

void rounds_add(struct results *results, const struct results *round)
{
    for (unsigned int i = 0; i < round->count; i++) {
        struct experiment_result *result =
            results_counterpart(results, round, &round->experiments[i]);

        if (result)
            add_experiment(result, &round->experiments[i]);
    }
    for (unsigned int i = 0; i < round->load_count; i++)
        results_add_load(results, round->loads[i]);
}
