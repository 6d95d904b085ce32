/* SPDX-License-Identifier: BSD-2-Clause */
/* verbena compare: two runs side by side, and which differences exceed noise. */
#include "commands.h"
#include "results/compare.h"
#include "results/csv.h"
#include "results/permutation.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct widths {
    int experiment, series, point;
};

static const char *point_text(const struct series *series, double x, char *text, size_t size)
{
    char number[32];

    if (!strcmp(series->axis_unit, "B") && x >= 0 && x == floor(x))
        option_number_text((uint64_t)x, number, sizeof(number));
    else
        snprintf(number, sizeof(number), "%.9g", x);
    snprintf(text, size, "%s %s", series->axis, number);
    return text;
}

static void widen(int *width, const char *text)
{
    if ((int)strlen(text) > *width)
        *width = (int)strlen(text);
}

static struct widths widths_of(const struct comparison *comparison)
{
    struct widths widths = { sizeof("EXPERIMENT") - 1, sizeof("SERIES") - 1, sizeof("AT") - 1 };
    char text[128];

    for (unsigned int i = 0; i < comparison->count; i++) {
        const struct compared_point *point = &comparison->points[i];

        widen(&widths.experiment, point->experiment->name);
        widen(&widths.series, point->series->name);
        widen(&widths.point, point_text(point->series, point->a->x, text, sizeof(text)));
    }
    return widths;
}

static const char *percent_text(double share, char *text, size_t size)
{
    if (isnan(share))
        return "-";
    snprintf(text, size, share < 0.0995 ? "%.1f%%" : "%.0f%%", 100 * share);
    return text;
}

/* Values of deterministic runs are shown exactly. */
static void print_points(const struct comparison *comparison)
{
    bool exact = comparison->method == COMPARE_EXACT;
    struct widths widths = widths_of(comparison);
    char text[128], ratio[32], percent[32];

    printf("%-*s  %-*s  %-*s  %10s %10s %-5s %*s  %-10s %s\n", widths.experiment, "EXPERIMENT",
           widths.series, "SERIES", widths.point, "AT", "A", "B", "UNIT", exact ? 11 : 7, "B/A",
           exact ? "" : "DETECTABLE", "CHANGE");
    for (unsigned int i = 0; i < comparison->count; i++) {
        const struct compared_point *point = &comparison->points[i];

        snprintf(ratio, sizeof(ratio),
                 !isfinite(point->ratio) ? "-"
                 : exact                 ? "%.9g"
                                         : "%.3f",
                 point->ratio);
        printf("%-*s  %-*s  %-*s  %10.*g %10.*g %-5s %*s  %-10s %s", widths.experiment,
               point->experiment->name, widths.series, point->series->name, widths.point,
               point_text(point->series, point->a->x, text, sizeof(text)), exact ? 9 : 5,
               point->a_value, exact ? 9 : 5, point->b_value, point->series->unit, exact ? 11 : 7,
               ratio, exact ? "" : percent_text(point->detectable, percent, sizeof(percent)),
               compare_change_name(point->change));
        printf(point->statistic ? " (%s)\n" : "\n", point->statistic);
    }
}

static void print_unmatched(const struct comparison *comparison)
{
    char text[128];

    for (unsigned int i = 0; i < comparison->unmatched_count; i++) {
        const struct unmatched *unmatched = &comparison->unmatched[i];

        printf("only in %s: %s", unmatched->in_a ? "A" : "B", unmatched->experiment->name);
        if (unmatched->series)
            printf(", %s (%s)", unmatched->series->name, unmatched->series->quantity);
        if (unmatched->point)
            printf(", %s", point_text(unmatched->series, unmatched->point->x, text, sizeof(text)));
        printf(unmatched->why ? " (the other: %s)\n" : "\n", unmatched->why);
    }
}

static void print_conditions(const struct comparison *comparison)
{
    for (unsigned int i = 0; i < comparison->condition_count; i++) {
        const struct condition *condition = &comparison->conditions[i];

        printf("different conditions: %s, %s: A %s, B %s\n", condition->of, condition->name,
               condition->a ? condition->a : "does not say",
               condition->b ? condition->b : "does not say");
    }
}

/* The changes that would have been seen in the points of an experiment, from 'first' on. Returns
 * the first point of the next experiment. */
static unsigned int print_detectable(const struct comparison *comparison, unsigned int first)
{
    const struct experiment_result *experiment = comparison->points[first].experiment;
    double *all = calloc(comparison->count, sizeof(*all));
    char low[32], middle[32], high[32];
    unsigned int i, count = 0;
    struct summary summary;

    for (i = first; i < comparison->count && comparison->points[i].experiment == experiment; i++) {
        if (all && !isnan(comparison->points[i].detectable))
            all[count++] = comparison->points[i].detectable;
    }
    if (count) {
        histogram_of_values(all, count, &summary);
        printf("  %s: %s at half of its points; %s at the quietest, %s at the noisiest\n",
               experiment->name, percent_text(summary.median, middle, sizeof(middle)),
               percent_text(summary.minimum, low, sizeof(low)),
               percent_text(summary.maximum, high, sizeof(high)));
    }
    free(all);
    return i;
}

static void print_method(const struct comparison *comparison)
{
    if (comparison->method != COMPARE_EXACT && comparison->a_disturbed + comparison->b_disturbed)
        printf(
            "Left out: %u rounds of A and %u of B, while other programs used more than %.0f%% of "
            "the processors.\n",
            comparison->a_disturbed, comparison->b_disturbed, 100 * COMPARE_LOAD_MAX);
    switch (comparison->method) {
    case COMPARE_EXACT:
        puts("Both runs are deterministic: any difference is a change.");
        break;
    case COMPARE_PERMUTATION:
        printf("Permutation test of %u and %u rounds: at most 1 in %.0f pairs of equal runs shows "
               "a change anywhere,\nif the machine was in the same state during both. A change of "
               "this size would have been seen:\n",
               comparison->a_rounds, comparison->b_rounds, 1 / PERMUTATION_ALPHA);
        for (unsigned int i = 0; i < comparison->count;)
            i = print_detectable(comparison, i);
        break;
    case COMPARE_NOTHING:
        printf("Too few rounds to tell a change of any size from noise: A has %u, B has %u. "
               "'verbena bench --rounds 8' measures eight.\n",
               comparison->a_rounds, comparison->b_rounds);
        break;
    }
}

static void print_run(const char *letter, const struct results *run)
{
    const char *name = results_metadata_get(&run->device, "name");
    const char *kind = results_metadata_get(&run->device, "kind");

    printf("%s: %s (%s)", letter, run->path, run->date);
    printf(name && kind ? ": %s, %s\n" : "\n", name, kind);
}

static void print_table(const struct results *a, const struct results *b,
                        const struct comparison *comparison)
{
    print_run("A", a);
    print_run("B", b);
    print_conditions(comparison);
    putchar('\n');
    print_points(comparison);
    putchar('\n');
    print_unmatched(comparison);
    print_method(comparison);
    printf("%u better, %u worse, %u same", comparison->tally[CHANGE_BETTER],
           comparison->tally[CHANGE_WORSE], comparison->tally[CHANGE_SAME]);
    if (comparison->tally[CHANGE_OTHER])
        printf(", %u changed", comparison->tally[CHANGE_OTHER]);
    if (comparison->tally[CHANGE_UNDECIDED])
        printf(", %u undecided", comparison->tally[CHANGE_UNDECIDED]);
    putchar('\n');
}

static void print_csv(const struct comparison *comparison)
{
    puts("experiment,series,quantity,unit,axis,axis_unit,x,a,b,ratio,change,statistic,probability,"
         "detectable");
    for (unsigned int i = 0; i < comparison->count; i++) {
        const struct compared_point *point = &comparison->points[i];
        const struct series *series = point->series;
        const char *const texts[] = {
            point->experiment->name, series->name, series->quantity, series->unit, series->axis,
            series->axis_unit
        };
        const double numbers[] = { point->a->x, point->a_value, point->b_value, point->ratio };
        const double last[] = { point->probability, point->detectable };

        for (size_t k = 0; k < sizeof(texts) / sizeof(*texts); k++) {
            csv_put_text(texts[k], stdout);
            putchar(',');
        }
        for (size_t k = 0; k < sizeof(numbers) / sizeof(*numbers); k++) {
            if (isfinite(numbers[k]))
                csv_put_number(numbers[k], stdout);
            putchar(',');
        }
        printf("%s,%s", compare_change_name(point->change),
               point->statistic ? point->statistic : "median");
        for (size_t k = 0; k < sizeof(last) / sizeof(*last); k++) {
            putchar(',');
            if (isfinite(last[k]))
                csv_put_number(last[k], stdout);
        }
        putchar('\n');
    }
}

static json_t *number_or_null(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

static json_t *points_json(const struct comparison *comparison)
{
    json_t *array = json_array();

    for (unsigned int i = 0; i < comparison->count; i++) {
        const struct compared_point *point = &comparison->points[i];

        json_array_append_new(
            array, json_pack("{ss ss ss ss ss sf sf sf so ss ss so so}", "experiment",
                             point->experiment->name, "series", point->series->name, "quantity",
                             point->series->quantity, "unit", point->series->unit, "axis",
                             point->series->axis, "x", point->a->x, "a", point->a_value, "b",
                             point->b_value, "ratio", number_or_null(point->ratio), "change",
                             compare_change_name(point->change), "statistic",
                             point->statistic ? point->statistic : "median", "probability",
                             number_or_null(point->probability), "detectable",
                             number_or_null(point->detectable)));
    }
    return array;
}

static json_t *unmatched_json(const struct comparison *comparison)
{
    json_t *array = json_array();

    for (unsigned int i = 0; i < comparison->unmatched_count; i++) {
        const struct unmatched *unmatched = &comparison->unmatched[i];
        json_t *x = unmatched->point ? json_real(unmatched->point->x) : json_null();

        json_array_append_new(
            array, json_pack("{ss ss ss? ss? so ss?}", "in", unmatched->in_a ? "a" : "b",
                             "experiment", unmatched->experiment->name, "series",
                             unmatched->series ? unmatched->series->name : NULL, "quantity",
                             unmatched->series ? unmatched->series->quantity : NULL, "x", x,
                             "reason", unmatched->why));
    }
    return array;
}

static json_t *conditions_json(const struct comparison *comparison)
{
    json_t *array = json_array();

    for (unsigned int i = 0; i < comparison->condition_count; i++) {
        const struct condition *condition = &comparison->conditions[i];

        json_array_append_new(array,
                              json_pack("{ss ss ss? ss?}", "of", condition->of, "name",
                                        condition->name, "a", condition->a, "b", condition->b));
    }
    return array;
}

static void print_json(const struct results *a, const struct results *b,
                       const struct comparison *comparison)
{
    json_t *object = json_pack(
        "{ss ss ss sf si si si si so so so si si si si si}", "a", a->path, "b", b->path, "method",
        compare_method_name(comparison->method), "threshold", comparison->threshold, "rounds_a",
        comparison->a_rounds, "rounds_b", comparison->b_rounds, "disturbed_a",
        comparison->a_disturbed, "disturbed_b", comparison->b_disturbed, "conditions",
        conditions_json(comparison), "points", points_json(comparison), "alone",
        unmatched_json(comparison), "better", comparison->tally[CHANGE_BETTER], "worse",
        comparison->tally[CHANGE_WORSE], "same", comparison->tally[CHANGE_SAME], "changed",
        comparison->tally[CHANGE_OTHER], "undecided", comparison->tally[CHANGE_UNDECIDED]);

    json_dumpf(object, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(object);
}

/* A test that cannot fail must not pass. */
static int status_of(const struct comparison *comparison, bool fail_if_worse)
{
    if (!fail_if_worse)
        return CLI_OK;
    if (comparison->tally[CHANGE_WORSE])
        return CLI_LIMIT;
    if (comparison->method != COMPARE_NOTHING)
        return CLI_OK;
    cli_error("--fail-if-worse: the runs have too few rounds to see any change; measure both with "
              "--rounds 8");
    return CLI_FAILED;
}

static int compare_and_print(const struct invocation *invocation, const struct results *a,
                             const struct results *b)
{
    const char *percent = option_value(invocation, "threshold");
    struct comparison comparison;
    char error[512];
    int status;

    if (results_compare(a, b, percent ? strtod(percent, NULL) / 100 : NAN, &comparison, error,
                        sizeof(error))) {
        cli_error("%s", error);
        return CLI_FAILED;
    }
    if (option_value(invocation, "json"))
        print_json(a, b, &comparison);
    else if (option_value(invocation, "csv"))
        print_csv(&comparison);
    else
        print_table(a, b, &comparison);
    status = status_of(&comparison, option_value(invocation, "fail-if-worse"));
    compare_free(&comparison);
    return status;
}

int cli_compare(const struct invocation *invocation)
{
    struct results *a, *b;
    char error[512];
    int status;

    if (invocation->operand_count != 2)
        return cli_usage_error(invocation->command, "give two result files, not %d",
                               invocation->operand_count);
    if (option_value(invocation, "json") && option_value(invocation, "csv"))
        return cli_usage_error(invocation->command, "--json and --csv are mutually exclusive");
    if (results_read(invocation->operands[0], &a, error, sizeof(error))) {
        cli_error("%s", error);
        return CLI_FAILED;
    }
    if (results_read(invocation->operands[1], &b, error, sizeof(error))) {
        cli_error("%s", error);
        results_free(a);
        return CLI_FAILED;
    }
    status = compare_and_print(invocation, a, b);
    results_free(b);
    results_free(a);
    return status;
}
