/* SPDX-License-Identifier: BSD-2-Clause */
/* verbena compare: two runs side by side, and which differences exceed noise. */
#include "commands.h"
#include "results/compare.h"

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

static void print_points(const struct comparison *comparison)
{
    struct widths widths = widths_of(comparison);
    char text[128], ratio[32];

    printf("%-*s  %-*s  %-*s  %10s %10s %-5s %7s  %s\n", widths.experiment, "EXPERIMENT",
           widths.series, "SERIES", widths.point, "AT", "A", "B", "UNIT", "B/A", "CHANGE");
    for (unsigned int i = 0; i < comparison->count; i++) {
        const struct compared_point *point = &comparison->points[i];

        snprintf(ratio, sizeof(ratio), isfinite(point->ratio) ? "%.3f" : "-", point->ratio);
        printf("%-*s  %-*s  %-*s  %10.5g %10.5g %-5s %7s  %s\n", widths.experiment,
               point->experiment->name, widths.series, point->series->name, widths.point,
               point_text(point->series, point->a->x, text, sizeof(text)), point->a->y.median,
               point->b->y.median, point->series->unit, ratio, compare_change_name(point->change));
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

static void print_table(const struct results *a, const struct results *b,
                        const struct comparison *comparison)
{
    printf("A: %s (%s)\nB: %s (%s)\n", a->path, a->date, b->path, b->date);
    print_conditions(comparison);
    putchar('\n');
    print_points(comparison);
    putchar('\n');
    print_unmatched(comparison);
    printf("%u better, %u worse, %u same", comparison->tally[CHANGE_BETTER],
           comparison->tally[CHANGE_WORSE], comparison->tally[CHANGE_SAME]);
    if (comparison->tally[CHANGE_OTHER])
        printf(", %u changed", comparison->tally[CHANGE_OTHER]);
    putchar('\n');
}

static json_t *points_json(const struct comparison *comparison)
{
    json_t *array = json_array();

    for (unsigned int i = 0; i < comparison->count; i++) {
        const struct compared_point *point = &comparison->points[i];
        json_t *ratio = isfinite(point->ratio) ? json_real(point->ratio) : json_null();

        json_array_append_new(
            array,
            json_pack("{ss ss ss ss ss sf sf sf so ss}", "experiment", point->experiment->name,
                      "series", point->series->name, "quantity", point->series->quantity, "unit",
                      point->series->unit, "axis", point->series->axis, "x", point->a->x, "a",
                      point->a->y.median, "b", point->b->y.median, "ratio", ratio, "change",
                      compare_change_name(point->change)));
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
    json_t *object =
        json_pack("{ss ss so so so si si si si}", "a", a->path, "b", b->path, "conditions",
                  conditions_json(comparison), "points", points_json(comparison), "alone",
                  unmatched_json(comparison), "better", comparison->tally[CHANGE_BETTER], "worse",
                  comparison->tally[CHANGE_WORSE], "same", comparison->tally[CHANGE_SAME],
                  "changed", comparison->tally[CHANGE_OTHER]);

    json_dumpf(object, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(object);
}

static int compare_and_print(const struct invocation *invocation, const struct results *a,
                             const struct results *b)
{
    double percent = strtod(option_value_or_default(invocation, "threshold"), NULL);
    struct comparison comparison;
    char error[512];
    unsigned int worse;

    if (results_compare(a, b, percent / 100, &comparison, error, sizeof(error))) {
        cli_error("%s", error);
        return CLI_FAILED;
    }
    if (option_value(invocation, "json"))
        print_json(a, b, &comparison);
    else
        print_table(a, b, &comparison);
    worse = comparison.tally[CHANGE_WORSE];
    compare_free(&comparison);
    return worse && option_value(invocation, "fail-if-worse") ? CLI_LIMIT : CLI_OK;
}

int cli_compare(const struct invocation *invocation)
{
    struct results *a, *b;
    char error[512];
    int status;

    if (invocation->operand_count != 2)
        return cli_usage_error(invocation->command, "give two result files, not %d",
                               invocation->operand_count);
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
