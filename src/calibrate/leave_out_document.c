/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes how far left-out values are, as text and JSON. */
#include "calibrate/leave_out.h"

#include "calibrate/choices.h"
#include "calibrate/keys.h"
#include "reproduce/evaluate.h"
#include "reproduce/left_out.h"
#include "results/allocate.h"
#include "sim/adapter/parameters.h"
#include "util/sorted.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEAR         0.05
#define FAR          0.10
#define UNDETERMINED 0.5  /* standard error of a logarithm; before the fit it is 1 */
#define UNMOVED      1e-3 /* relative */

/* The relative error of the value, from the logarithm of that of its time. */
static double error_of(const struct leave_out_row *row, double residual)
{
    return expm1(leave_out_is_rate(row->row) ? -residual : residual);
}

struct total {
    unsigned int count, near, far;
    double median, nine_in_ten, worst;
};

static double now_of(const struct leave_out_row *row)
{
    return row->now;
}

/* What real runs have shown counts more than the estimate. */
static double unseen_of(const struct leave_out_row *row)
{
    return isnan(row->again) ? row->unseen : row->again;
}

/* Of all rows, or those of one curve. */
static struct total total_of(const struct leave_out *result, const struct leave_out_row *curve,
                             double (*residual_of)(const struct leave_out_row *row))
{
    double *errors = allocate_zeroed((result->row_count + 1) * sizeof(*errors));
    struct total total = { 0 };

    for (unsigned int i = 0; i < result->row_count; i++) {
        const struct leave_out_row *row = &result->rows[i];

        if (!row->is_shape && (!curve || leave_out_same_curve(curve, row)) &&
            !isnan(residual_of(row)))
            errors[total.count++] = fabs(error_of(row, residual_of(row)));
    }
    sorted_make(errors, total.count);
    for (unsigned int i = 0; i < total.count; i++) {
        total.near += errors[i] <= NEAR;
        total.far += errors[i] <= FAR;
    }
    if (total.count) {
        total.median = sorted_median(errors, total.count);
        total.nine_in_ten = sorted_nine_in_ten(errors, total.count);
        total.worst = errors[total.count - 1];
    }
    free(errors);
    return total;
}

static const char *verdict_of(double excess)
{
    return evaluate_verdict_name(excess < 0 ? VERDICT_MATCHES : VERDICT_MISSES);
}

static void print_error(const struct leave_out_row *row, double residual, FILE *out)
{
    if (isnan(residual))
        fprintf(out, " %9s", "-");
    else if (row->is_shape)
        fprintf(out, " %9s", verdict_of(residual));
    else
        fprintf(out, " %+8.1f%%", 100 * error_of(row, residual));
}

static void print_followers(const struct leave_out_parameter *parameter, const char *value,
                            FILE *out)
{
    for (unsigned int i = 0; i < parameter->follower_count; i++)
        fprintf(out, "%s = %s  # fitted, as %s\n", parameter->followers[i]->key, value,
                parameter->row->key);
}

static void print_parameter(const struct leave_out_parameter *parameter, FILE *out)
{
    char now[64], fitted[64];

    keys_text(parameter->row, parameter->start, now, sizeof(now));
    keys_text(parameter->row, parameter->fitted, fitted, sizeof(fitted));
    if (fabs(parameter->fitted / parameter->start - 1) < UNMOVED && parameter->error > UNDETERMINED)
        fprintf(out, "%s = %s  # not determined by these values, kept\n", parameter->row->key, now);
    else if (parameter->error > UNDETERMINED)
        fprintf(out, "%s = %s  # fitted, but determined only with others; was %s\n",
                parameter->row->key, fitted, now);
    else
        fprintf(out, "%s = %s  # fitted, +- %.2g%%; was %s\n", parameter->row->key, fitted,
                100 * parameter->error, now);
    print_followers(parameter, fitted, out);
}

static void print_choice(const struct leave_out_choice *choice, FILE *out)
{
    char value[64], before[64], found[256];

    keys_text(choice->number.row, choice->number.value, value, sizeof(value));
    keys_text(choice->number.row, choice->number.start, before, sizeof(before));
    choices_describe(choice, found, sizeof(found));
    fprintf(out, "%s = %s  # %s", choice->number.row->key, value, found);
    if (choice->gain)
        fprintf(out, "; was %s, clearly worse (by %.0f)", before, choice->gain);
    fputc('\n', out);
    print_followers(&choice->number, value, out);
}

static const char *file_of(const struct leave_out *result, unsigned int index)
{
    return index < result->parameter_count
               ? result->parameters[index].file
               : result->choices[index - result->parameter_count].number.file;
}

static bool is_first_of_file(const struct leave_out *result, unsigned int index)
{
    for (unsigned int i = 0; i < index; i++) {
        if (!strcmp(file_of(result, i), file_of(result, index)))
            return false;
    }
    return true;
}

/* Lines for the adapter files. */
static void print_fitted(const struct leave_out *result, FILE *out)
{
    unsigned int count = result->parameter_count + result->choice_count;

    for (unsigned int i = 0; i < count; i++) {
        const char *file = file_of(result, i), *slash = strrchr(file, '/');

        if (!is_first_of_file(result, i))
            continue;
        fprintf(out, "\n# %s\n", slash ? slash + 1 : file);
        for (unsigned int k = i; k < count; k++) {
            if (strcmp(file_of(result, k), file))
                continue;
            if (k < result->parameter_count)
                print_parameter(&result->parameters[k], out);
            else
                print_choice(&result->choices[k - result->parameter_count], out);
        }
    }
}

static void print_fit(const struct leave_out *result, FILE *out)
{
    struct total now = total_of(result, NULL, now_of), fitted = total_of(result, NULL, unseen_of);

    fprintf(out, "%-24s %10s %-6s %9s %9s\n", "ID", "PAPER", "UNIT", "NOW", "FITTED");
    for (unsigned int i = 0; i < result->row_count; i++) {
        const struct leave_out_row *row = &result->rows[i];

        fprintf(out, "%-24s ", row->row->fields[FIELD_ID]);
        if (row->is_shape)
            fprintf(out, "%10s %-6s", "shape", "");
        else
            fprintf(out, "%10.6g %-6s", row->row->value, row->row->fields[FIELD_UNIT]);
        print_error(row, row->now, out);
        print_error(row, row->again, out);
        fputc('\n', out);
    }
    fprintf(out, "\nerrors, median and worst: now %.1f%%, %.1f%%, fitted %.1f%%, %.1f%%\n",
            100 * now.median, 100 * now.worst, 100 * fitted.median, 100 * fitted.worst);
    print_fitted(result, out);
}

static bool is_first_of_curve(const struct leave_out *result, unsigned int index)
{
    for (unsigned int i = 0; i < index; i++) {
        if (leave_out_same_curve(&result->rows[i], &result->rows[index]))
            return false;
    }
    return true;
}

static const char *name_of_curve(const struct leave_out_row *row)
{
    const char *figure = paper_db_text(row->row->spec, "figure");

    return figure ? figure : row->row->fields[FIELD_ID];
}

static void print_curves(const struct leave_out *result, FILE *out)
{
    fprintf(out, "\n%-24s %10s %18s %18s\n", "CURVE", "VALUES", "NOW median, worst", "LEFT OUT");
    for (unsigned int i = 0; i < result->row_count; i++) {
        struct total now, unseen;

        if (!is_first_of_curve(result, i))
            continue;
        now = total_of(result, &result->rows[i], now_of);
        unseen = total_of(result, &result->rows[i], unseen_of);
        fprintf(out, "%-24s %10u %9.1f%% %6.1f%% %9.1f%% %6.1f%%\n",
                name_of_curve(&result->rows[i]), now.count, 100 * now.median, 100 * now.worst,
                100 * unseen.median, 100 * unseen.worst);
    }
}

void leave_out_print(const struct leave_out *result, FILE *out)
{
    struct total total = total_of(result, NULL, unseen_of);

    if (result->all) {
        print_fit(result, out);
        return;
    }
    fprintf(out, "%-24s %10s %-6s %9s %9s %9s %9s\n", "ID", "PAPER", "UNIT", "NOW", "SEEN",
            "UNSEEN", "REFITTED");
    for (unsigned int i = 0; i < result->row_count; i++) {
        const struct leave_out_row *row = &result->rows[i];

        if (row->stays)
            continue;
        fprintf(out, "%-24s %10.6g %-6s", row->row->fields[FIELD_ID], row->row->value,
                row->row->fields[FIELD_UNIT]);
        print_error(row, row->now, out);
        print_error(row, row->seen, out);
        print_error(row, row->unseen, out);
        print_error(row, row->again, out);
        fputc('\n', out);
    }
    fprintf(
        out,
        "\n%u values, %u fitted numbers, %u runs; left out of its fit, a value is off by %.1f%% "
        "(median), nine in ten by at most %.1f%%; %u are within %.0f%%, %u within %.0f%%\n",
        total.count, result->parameter_count, result->run_count, 100 * total.median,
        100 * total.nine_in_ten, total.near, 100 * NEAR, total.far, 100 * FAR);
    if (result->curves)
        print_curves(result, out);
}

static json_t *percent_json(const struct leave_out_row *row, double residual)
{
    return isnan(residual) ? json_null() : json_real(100 * error_of(row, residual));
}

static json_t *row_json(const struct leave_out_row *row)
{
    if (row->is_shape)
        return json_pack("{ss ss ss}", "id", row->row->fields[FIELD_ID], "now",
                         verdict_of(row->now), "refitted", verdict_of(row->again));
    return json_pack("{ss sf ss so so so so}", "id", row->row->fields[FIELD_ID], "paper",
                     row->row->value, "unit", row->row->fields[FIELD_UNIT], "now",
                     percent_json(row, row->now), "seen", percent_json(row, row->seen), "unseen",
                     percent_json(row, row->unseen), "refitted", percent_json(row, row->again));
}

static json_t *rows_json(const struct leave_out *result)
{
    json_t *rows = json_array();

    for (unsigned int i = 0; i < result->row_count; i++) {
        if (!result->rows[i].stays)
            json_array_append_new(rows, row_json(&result->rows[i]));
    }
    return rows;
}

static json_t *followers_json(const struct leave_out_parameter *parameter)
{
    json_t *followers = json_array();

    for (unsigned int i = 0; i < parameter->follower_count; i++)
        json_array_append_new(followers, json_string(parameter->followers[i]->key));
    return followers;
}

static json_t *parameters_json(const struct leave_out *result)
{
    json_t *parameters = json_array();

    for (unsigned int i = 0; i < result->parameter_count; i++) {
        const struct leave_out_parameter *parameter = &result->parameters[i];
        const char *slash = strrchr(parameter->file, '/');

        json_array_append_new(
            parameters,
            json_pack("{ss ss so sf sf sf so so}", "key", parameter->row->key, "file",
                      slash ? slash + 1 : parameter->file, "followers", followers_json(parameter),
                      "value", parameter->start, "prior", parameter->start * exp(parameter->prior),
                      "spread", exp(parameter->spread), "fitted",
                      result->all ? json_real(parameter->fitted) : json_null(), "error",
                      result->all ? json_real(100 * parameter->error) : json_null()));
    }
    return parameters;
}

/* What cannot be run is null. */
static json_t *tries_json(const struct leave_out_choice *choice)
{
    json_t *tries = json_array();

    for (unsigned int i = 0; i < choice->try_count; i++) {
        const struct leave_out_try *try = &choice->tries[i];

        json_array_append_new(tries,
                              json_pack("{sf so sb}", "value", try->value, "worse",
                                        isfinite(try->worse) ? json_real(try->worse) : json_null(),
                                        "moves", try->moves));
    }
    return tries;
}

static json_t *choices_json(const struct leave_out *result)
{
    json_t *choices = json_array();

    for (unsigned int i = 0; i < result->choice_count; i++) {
        const struct leave_out_choice *choice = &result->choices[i];
        const char *slash = strrchr(choice->number.file, '/');
        char found[256];

        choices_describe(choice, found, sizeof(found));
        json_array_append_new(
            choices, json_pack("{ss ss so sf sf sf so ss}", "key", choice->number.row->key, "file",
                               slash ? slash + 1 : choice->number.file, "followers",
                               followers_json(&choice->number), "value", choice->number.start,
                               "fitted", choice->number.value, "gain", choice->gain, "tried",
                               tries_json(choice), "found", found));
    }
    return choices;
}

static json_t *total_json(struct total total)
{
    return json_pack("{sf sf}", "median", 100 * total.median, "worst", 100 * total.worst);
}

static json_t *curves_json(const struct leave_out *result)
{
    json_t *curves = json_array();

    for (unsigned int i = 0; i < result->row_count; i++) {
        const struct leave_out_row *row = &result->rows[i];

        if (is_first_of_curve(result, i))
            json_array_append_new(curves,
                                  json_pack("{ss so so}", "curve", name_of_curve(row), "now",
                                            total_json(total_of(result, row, now_of)), "unseen",
                                            total_json(total_of(result, row, unseen_of))));
    }
    return curves;
}

json_t *leave_out_json(const struct leave_out *result, const char *command)
{
    struct total total = total_of(result, NULL, unseen_of);
    json_t *document =
        json_pack("{ss ss si sf sf si si so so}", "schema", LEFT_OUT_SCHEMA, "command", command,
                  "runs", (int)result->run_count, "median", 100 * total.median, "nine_in_ten",
                  100 * total.nine_in_ten, "within_5", (int)total.near, "within_10", (int)total.far,
                  "rows", rows_json(result), "parameters", parameters_json(result));

    if (result->all)
        json_object_set_new(document, "choices", choices_json(result));
    if (result->curves)
        json_object_set_new(document, "curves", curves_json(result));
    return document;
}
