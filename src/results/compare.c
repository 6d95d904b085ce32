/* SPDX-License-Identifier: BSD-2-Clause */
#include "compare.h"
#include "allocate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct comparing {
    const struct results *a, *b;
    double threshold;
    struct comparison *out;
    char *error;
    size_t size;
};

const char *compare_change_name(enum change change)
{
    static const char *const names[] = {
        [CHANGE_SAME] = "same",
        [CHANGE_BETTER] = "better",
        [CHANGE_WORSE] = "worse",
        [CHANGE_OTHER] = "changed",
    };

    return names[change];
}

static void add_unmatched(struct comparison *out, struct unmatched unmatched)
{
    out->unmatched =
        allocate_one_more(out->unmatched, out->unmatched_count, sizeof(*out->unmatched));
    out->unmatched[out->unmatched_count++] = unmatched;
}

static void add_condition(struct comparison *out, struct condition condition)
{
    out->conditions =
        allocate_one_more(out->conditions, out->condition_count, sizeof(*out->conditions));
    out->conditions[out->condition_count++] = condition;
}

static void compare_metadata(struct comparison *out, const char *of, const struct metadata *a,
                             const struct metadata *b)
{
    for (unsigned int i = 0; i < a->count; i++) {
        const struct metadata_entry *entry = &a->rows[i];
        const char *other = results_metadata_get(b, entry->name);

        if (!other || strcmp(other, entry->value))
            add_condition(out, (struct condition){ of, entry->name, entry->value, other });
    }
    for (unsigned int i = 0; i < b->count; i++) {
        if (!results_metadata_get(a, b->rows[i].name))
            add_condition(out, (struct condition){ of, b->rows[i].name, NULL, b->rows[i].value });
    }
}

static enum change classify(const struct summary *a, const struct summary *b, enum better better,
                            double threshold)
{
    bool apart = a->high < b->low || b->high < a->low;

    if (!apart || fabs(b->median - a->median) <= threshold * fabs(a->median))
        return CHANGE_SAME;
    if (better == BETTER_NEITHER)
        return CHANGE_OTHER;
    return (b->median < a->median) == (better == BETTER_LOWER) ? CHANGE_BETTER : CHANGE_WORSE;
}

static const struct point *point_at(const struct series *series, double x)
{
    for (unsigned int i = 0; i < series->count; i++) {
        if (series->points[i].x == x)
            return &series->points[i];
    }
    return NULL;
}

static void compare_point(struct comparing *comparing, const struct experiment_result *experiment,
                          const struct series *series, const struct point *a, const struct point *b)
{
    struct comparison *out = comparing->out;
    struct compared_point point = { .experiment = experiment, .series = series, .a = a, .b = b };

    point.ratio = a->y.median == b->y.median ? 1 : b->y.median / a->y.median;
    point.change = classify(&a->y, &b->y, series->better, comparing->threshold);
    out->tally[point.change]++;
    out->points = allocate_one_more(out->points, out->count, sizeof(*out->points));
    out->points[out->count++] = point;
}

static int compare_series(struct comparing *comparing, const struct experiment_result *experiment,
                          const struct series *a, const struct series *b)
{
    if (strcmp(a->unit, b->unit) || strcmp(a->axis_unit, b->axis_unit) || a->better != b->better) {
        snprintf(comparing->error, comparing->size,
                 "%s, %s: %s in '%s' against '%s' (%s is better) in A, in '%s' against '%s' (%s) "
                 "in B",
                 experiment->name, a->name, a->quantity, a->unit, a->axis_unit,
                 schema_better_name(a->better), b->unit, b->axis_unit,
                 schema_better_name(b->better));
        return -1;
    }
    for (unsigned int i = 0; i < a->count; i++) {
        const struct point *other = point_at(b, a->points[i].x);

        if (other)
            compare_point(comparing, experiment, a, &a->points[i], other);
        else
            add_unmatched(comparing->out,
                          (struct unmatched){ true, experiment, a, &a->points[i], NULL });
    }
    for (unsigned int i = 0; i < b->count; i++) {
        if (!point_at(a, b->points[i].x))
            add_unmatched(comparing->out,
                          (struct unmatched){ false, experiment, b, &b->points[i], NULL });
    }
    return 0;
}

static const struct series *series_like(const struct experiment_result *experiment,
                                        const struct series *like)
{
    for (unsigned int i = 0; i < experiment->count; i++) {
        const struct series *series = &experiment->series[i];

        if (!strcmp(series->name, like->name) && !strcmp(series->quantity, like->quantity) &&
            !strcmp(series->axis, like->axis))
            return series;
    }
    return NULL;
}

static const char *reason_of(const struct experiment_result *experiment)
{
    return experiment->skipped ? experiment->skipped : experiment->failed;
}

static int compare_experiment(struct comparing *comparing, const struct experiment_result *a,
                              const struct experiment_result *b)
{
    compare_metadata(comparing->out, a->name, &a->settings, &b->settings);
    for (unsigned int i = 0; i < a->count; i++) {
        const struct series *other = series_like(b, &a->series[i]);

        if (!other)
            add_unmatched(comparing->out,
                          (struct unmatched){ true, a, &a->series[i], NULL, reason_of(b) });
        else if (compare_series(comparing, a, &a->series[i], other))
            return -1;
    }
    for (unsigned int i = 0; i < b->count; i++) {
        if (!series_like(a, &b->series[i]))
            add_unmatched(comparing->out,
                          (struct unmatched){ false, b, &b->series[i], NULL, reason_of(a) });
    }
    return 0;
}

/* A run may contain an experiment several times with different settings. The n-th occurrence is
 * compared with the n-th. */
static const struct experiment_result *experiment_like(const struct results *results,
                                                       const struct results *others,
                                                       const struct experiment_result *like)
{
    unsigned int before = 0;

    for (const struct experiment_result *other = others->experiments; other < like; other++)
        before += !strcmp(other->name, like->name);
    for (unsigned int i = 0; i < results->count; i++) {
        if (!strcmp(results->experiments[i].name, like->name) && !before--)
            return &results->experiments[i];
    }
    return NULL;
}

int results_compare(const struct results *a, const struct results *b, double threshold,
                    struct comparison *out, char *error, size_t size)
{
    struct comparing comparing = { a, b, threshold, out, error, size };

    memset(out, 0, sizeof(*out));
    compare_metadata(out, "machine", &a->machine, &b->machine);
    compare_metadata(out, "device", &a->device, &b->device);
    for (unsigned int i = 0; i < a->count; i++) {
        const struct experiment_result *experiment = &a->experiments[i];
        const struct experiment_result *other = experiment_like(b, a, experiment);

        if (!other) {
            add_unmatched(out, (struct unmatched){ .in_a = true, .experiment = experiment });
        } else if (compare_experiment(&comparing, experiment, other)) {
            compare_free(out);
            return -1;
        }
    }
    for (unsigned int i = 0; i < b->count; i++) {
        if (!experiment_like(a, b, &b->experiments[i]))
            add_unmatched(out, (struct unmatched){ .experiment = &b->experiments[i] });
    }
    if (out->count)
        return 0;
    snprintf(error, size, "%s and %s have no point in common", a->path, b->path);
    compare_free(out);
    return -1;
}

void compare_free(struct comparison *comparison)
{
    free(comparison->points);
    free(comparison->unmatched);
    free(comparison->conditions);
}
