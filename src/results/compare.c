/* SPDX-License-Identifier: BSD-2-Clause */
#include "compare.h"
#include "allocate.h"
#include "permutation.h"
#include "schema.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct comparing {
    const struct results *a, *b;
    struct comparison *out;
    char *error;
    size_t size;
};

const char *compare_change_name(enum change change)
{
    static const char *const names[] = {
        [CHANGE_SAME] = "same",   [CHANGE_UNDECIDED] = "undecided", [CHANGE_BETTER] = "better",
        [CHANGE_WORSE] = "worse", [CHANGE_OTHER] = "changed",
    };

    return names[change];
}

const char *compare_method_name(enum compare_method method)
{
    static const char *const names[] = {
        [COMPARE_EXACT] = "exact",
        [COMPARE_PERMUTATION] = "permutation",
        [COMPARE_NOTHING] = "none",
    };

    return names[method];
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

/* Names of files, fabrics and hosts say nothing about what was measured, nor do conditions that the
 * suite measures itself. */
static bool is_irrelevant(const char *name)
{
    static const char *const names[] = {
        "host",       "harness overhead", "output",  "trace",   "trace-limit", "pcap",
        "pcap-limit", "stats-file",       "fabric",  "shm-dir", "connect",     "tcp-port",
        "fail-if",    "rounds",           "timeout", "explain", "stats",       "quick",
        "adapter",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (!strcmp(name, names[i]))
            return true;
    }
    return false;
}

static void compare_metadata(struct comparison *out, const char *of, const struct metadata *a,
                             const struct metadata *b)
{
    for (unsigned int i = 0; i < a->count; i++) {
        const struct metadata_entry *entry = &a->rows[i];
        const char *other = results_metadata_get(b, entry->name);

        if (!is_irrelevant(entry->name) && (!other || strcmp(other, entry->value)))
            add_condition(out, (struct condition){ of, entry->name, entry->value, other });
    }
    for (unsigned int i = 0; i < b->count; i++) {
        if (!is_irrelevant(b->rows[i].name) && !results_metadata_get(a, b->rows[i].name))
            add_condition(out, (struct condition){ of, b->rows[i].name, NULL, b->rows[i].value });
    }
}

/* The load of a round is known if there is one of each. */
static bool is_disturbed(const struct results *run, unsigned int rounds, unsigned int round)
{
    return run->load_count == rounds && run->loads[round] > COMPARE_LOAD_MAX;
}

/* A run without rounds is a run of one. */
static unsigned int round_count(const struct point *point)
{
    return point->round_count ? point->round_count : 1;
}

/* The values of the point in the undisturbed rounds; to be freed. */
static double *undisturbed_values(const struct results *run, const struct point *point,
                                  unsigned int *count)
{
    const double *values = point->round_count ? point->rounds : &point->y.median;
    double *kept = allocate_zeroed(round_count(point) * sizeof(*kept));

    *count = 0;
    for (unsigned int i = 0; i < round_count(point); i++) {
        if (!is_disturbed(run, round_count(point), i))
            kept[(*count)++] = values[i];
    }
    return kept;
}

static double value_of(const struct results *run, const struct point *point)
{
    struct summary summary = point->y;
    unsigned int count;
    double *kept = undisturbed_values(run, point, &count);

    if (count)
        histogram_of_values(kept, count, &summary);
    else if (point->round_count)
        histogram_of_values(point->rounds, point->round_count, &summary);
    free(kept);
    return summary.median;
}

static void compare_point(struct comparing *comparing, const struct experiment_result *experiment,
                          const struct series *series, const struct point *a, const struct point *b)
{
    struct comparison *out = comparing->out;
    struct compared_point point = { .experiment = experiment,
                                    .series = series,
                                    .a = a,
                                    .b = b,
                                    .probability = NAN,
                                    .detectable = NAN };

    point.a_value = value_of(comparing->a, a);
    point.b_value = value_of(comparing->b, b);
    point.ratio = point.a_value == point.b_value ? 1 : point.b_value / point.a_value;
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
        const struct point *other = results_point_at(b, a->points[i].x);

        if (other)
            compare_point(comparing, experiment, a, &a->points[i], other);
        else
            add_unmatched(comparing->out,
                          (struct unmatched){ true, experiment, a, &a->points[i], NULL });
    }
    for (unsigned int i = 0; i < b->count; i++) {
        if (!results_point_at(a, b->points[i].x))
            add_unmatched(comparing->out,
                          (struct unmatched){ false, experiment, b, &b->points[i], NULL });
    }
    return 0;
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
        const struct series *other = result_counterpart(b, &a->series[i]);

        if (!other)
            add_unmatched(comparing->out,
                          (struct unmatched){ true, a, &a->series[i], NULL, reason_of(b) });
        else if (compare_series(comparing, a, &a->series[i], other))
            return -1;
    }
    for (unsigned int i = 0; i < b->count; i++) {
        if (!result_counterpart(a, &b->series[i]))
            add_unmatched(comparing->out,
                          (struct unmatched){ false, b, &b->series[i], NULL, reason_of(a) });
    }
    return 0;
}

static enum change direction(const struct compared_point *point, double a, double b)
{
    enum better better = point->series->better;

    if (better == BETTER_NEITHER)
        return CHANGE_OTHER;
    return (b < a) == (better == BETTER_LOWER) ? CHANGE_BETTER : CHANGE_WORSE;
}

static bool exceeds(double a, double b, double threshold)
{
    return fabs(b - a) > threshold * fabs(a);
}

/* The median first: the others matter if it has not changed. */
static void judge_exactly(struct compared_point *point, double threshold)
{
    struct summary a = point->a->y, b = point->b->y;

    if (exceeds(a.median, b.median, threshold)) {
        point->change = direction(point, a.median, b.median);
        return;
    }
    for (unsigned int i = 0; i < results_statistic_count; i++) {
        const struct statistic_field *row = &results_statistics[i];
        double left = *schema_statistic(row, &a), right = *schema_statistic(row, &b);

        if (exceeds(left, right, threshold)) {
            point->statistic = row->name;
            point->change = direction(point, left, right);
            return;
        }
    }
}

/* The values of the point in the 'wanted' undisturbed rounds of the run, which has 'all'; NULL if
 * it was not measured in each. A deterministic run would measure the same in any. */
static double *rounds_of(const struct results *run, const struct point *point, unsigned int all,
                         unsigned int wanted)
{
    double *values;

    if (!run->deterministic)
        return round_count(point) == all ? undisturbed_values(run, point, &wanted) : NULL;
    values = allocate_zeroed(wanted * sizeof(*values));
    for (unsigned int i = 0; i < wanted; i++)
        values[i] = point->y.median;
    return values;
}

static void judge_by_rounds(struct comparing *comparing)
{
    struct comparison *out = comparing->out;
    struct permutation_point *tested = allocate_zeroed(out->count * sizeof(*tested));
    unsigned int *index = allocate_zeroed(out->count * sizeof(*index)), count = 0;

    for (unsigned int i = 0; i < out->count; i++) {
        struct compared_point *point = &out->points[i];
        double *a =
            rounds_of(comparing->a, point->a, out->a_rounds + out->a_disturbed, out->a_rounds);
        double *b =
            rounds_of(comparing->b, point->b, out->b_rounds + out->b_disturbed, out->b_rounds);

        point->change = CHANGE_UNDECIDED;
        tested[count] = (struct permutation_point){ .a = a, .b = b };
        if (a && b) {
            index[count++] = i;
        } else {
            free(a);
            free(b);
        }
    }
    permutation_test(tested, count, out->a_rounds, out->b_rounds);
    for (unsigned int i = 0; i < count; i++) {
        struct compared_point *point = &out->points[index[i]];

        point->probability = tested[i].probability;
        point->detectable = fmax(tested[i].detectable, out->threshold);
        point->change = point->probability <= PERMUTATION_ALPHA &&
                                exceeds(point->a_value, point->b_value, out->threshold)
                            ? direction(point, point->a_value, point->b_value)
                            : CHANGE_SAME;
        free((double *)tested[i].a);
        free((double *)tested[i].b);
    }
    free(index);
    free(tested);
}

/* Counts the rounds of the points that have most of them. */
static void count_rounds(const struct comparison *comparison, const struct results *run, bool is_b,
                         unsigned int *good, unsigned int *disturbed)
{
    unsigned int most = 1;

    for (unsigned int i = 0; i < comparison->count; i++) {
        const struct point *point = is_b ? comparison->points[i].b : comparison->points[i].a;

        if (point->round_count > most)
            most = point->round_count;
    }
    *disturbed = 0;
    for (unsigned int i = 0; i < most; i++)
        *disturbed += is_disturbed(run, most, i);
    *good = most - *disturbed;
}

static void choose_method(struct comparing *comparing)
{
    const struct results *a = comparing->a, *b = comparing->b;
    struct comparison *out = comparing->out;

    count_rounds(out, a, false, &out->a_rounds, &out->a_disturbed);
    count_rounds(out, b, true, &out->b_rounds, &out->b_disturbed);
    if (a->deterministic && b->deterministic) {
        out->method = COMPARE_EXACT;
        return;
    }
    if (a->deterministic)
        out->a_rounds = out->b_rounds;
    if (b->deterministic)
        out->b_rounds = out->a_rounds;
    out->method =
        permutation_has_power(out->a_rounds, out->b_rounds) ? COMPARE_PERMUTATION : COMPARE_NOTHING;
}

static void judge(struct comparing *comparing)
{
    struct comparison *out = comparing->out;

    choose_method(comparing);
    if (isnan(out->threshold))
        out->threshold = out->method == COMPARE_EXACT ? 0 : COMPARE_THRESHOLD;
    if (out->method == COMPARE_PERMUTATION)
        judge_by_rounds(comparing);
    for (unsigned int i = 0; i < out->count; i++) {
        struct compared_point *point = &out->points[i];

        if (out->method == COMPARE_EXACT)
            judge_exactly(point, out->threshold);
        else if (out->method == COMPARE_NOTHING && point->a_value != point->b_value)
            point->change = CHANGE_UNDECIDED;
        out->tally[point->change]++;
    }
}

int results_compare(const struct results *a, const struct results *b, double threshold,
                    struct comparison *out, char *error, size_t size)
{
    struct comparing comparing = { a, b, out, error, size };

    *out = (struct comparison){ .threshold = threshold };
    compare_metadata(out, "machine", &a->machine, &b->machine);
    compare_metadata(out, "device", &a->device, &b->device);
    for (unsigned int i = 0; i < a->count; i++) {
        const struct experiment_result *experiment = &a->experiments[i];
        const struct experiment_result *other = results_counterpart(b, a, experiment);

        if (!other) {
            add_unmatched(out, (struct unmatched){ .in_a = true, .experiment = experiment });
        } else if (compare_experiment(&comparing, experiment, other)) {
            compare_free(out);
            return -1;
        }
    }
    for (unsigned int i = 0; i < b->count; i++) {
        if (!results_counterpart(a, b, &b->experiments[i]))
            add_unmatched(out, (struct unmatched){ .experiment = &b->experiments[i] });
    }
    if (out->count) {
        judge(&comparing);
        return 0;
    }
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
