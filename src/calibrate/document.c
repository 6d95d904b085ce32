/* SPDX-License-Identifier: BSD-2-Clause */
/* What a calibration came to: as text, as JSON, as an adapter file. */
#include "calibrate/calibrate.h"

#include "results/allocate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TITLE_MAX 120

static double *new_errors(const struct calibration *calibration)
{
    return allocate_zeroed(calibration->data.point_count * sizeof(double) + 1);
}

/* Adds the errors of the model in one experiment, relative to what was measured. */
static void add_errors(const struct calibration *calibration, unsigned int experiment,
                       double *errors, unsigned int *count)
{
    const struct data_experiment *entry = &calibration->data.experiments[experiment];

    for (unsigned int i = entry->first_point; i < entry->first_point + entry->count; i++) {
        if (!isnan(calibration->values[i]))
            errors[(*count)++] =
                fabs(expm1(calibration->values[i] - calibration->data.points[i].measured));
    }
}

static struct summary summarise(double *errors, unsigned int count)
{
    struct summary summary;

    histogram_of_values(errors, count, &summary);
    free(errors);
    return summary;
}

static struct summary errors_of(const struct calibration *calibration, unsigned int experiment)
{
    double *errors = new_errors(calibration);
    unsigned int count = 0;

    add_errors(calibration, experiment, errors, &count);
    return summarise(errors, count);
}

static struct summary errors_of_role(const struct calibration *calibration, enum data_role role)
{
    double *errors = new_errors(calibration);
    unsigned int count = 0;

    for (unsigned int i = 0; i < calibration->data.experiment_count; i++) {
        if (calibration->data.experiments[i].role == role)
            add_errors(calibration, i, errors, &count);
    }
    return summarise(errors, count);
}

/* ---- text ---- */

static const char *origin_text(const struct calibration *calibration, const struct key *key,
                               char *text, size_t size)
{
    switch (key->origin) {
    case KEY_DEVICE:
        snprintf(text, size, "reported by the device");
        break;
    case KEY_MEASURED:
        snprintf(text, size, "measured: %s", key->note);
        break;
    case KEY_FITTED:
        if (key->variation != KEY_DISCRETE)
            snprintf(text, size, "fitted, +- %.2g%%", 100 * key->error);
        else if (key->high > key->low)
            snprintf(text, size, "fitted, %.0f to %.0f fit equally well", key->low, key->high);
        else
            snprintf(text, size, "fitted");
        break;
    case KEY_SHARED:
        snprintf(text, size, "fitted, part of combination %u", key->combined);
        break;
    default:
        snprintf(text, size, "not determined by these data, kept from %s", calibration->keys.name);
    }
    return text;
}

static void print_keys(const struct calibration *calibration, FILE *out)
{
    fprintf(out, "%-26s %14s %14s  %s\n", "parameter", calibration->keys.name, "now", "origin");
    for (unsigned int i = 0; i < calibration->keys.count; i++) {
        const struct key *key = &calibration->keys.list[i];
        char start[64], now[64], origin[192];

        if (key->origin == KEY_KEPT)
            continue;
        fprintf(out, "%-26s %14s %14s  %s\n", key->row->key,
                keys_text(key->row, key->start, start, sizeof(start)),
                keys_text(key->row, key->value, now, sizeof(now)),
                origin_text(calibration, key, origin, sizeof(origin)));
    }
}

/* "a + b + c", or "a, b, c". */
static void print_group(const struct calibration *calibration, const struct identify_group *group,
                        FILE *out)
{
    const struct key *first = &calibration->keys.list[group->keys[0]];
    char text[64];

    for (unsigned int i = 0; i < group->count; i++)
        fprintf(out, "%s%s", i ? group->is_sum ? " + " : ", " : "",
                calibration->keys.list[group->keys[i]].row->key);
    if (group->is_sum)
        fprintf(out, " = %s +- %.2g%%", keys_text(first->row, group->sum, text, sizeof(text)),
                100 * group->error);
}

static void print_groups(const struct calibration *calibration, const char *prefix, FILE *out)
{
    for (unsigned int i = 0; i < calibration->identify.count; i++) {
        fprintf(out, "%scombination %u, not its parts: ", prefix, i + 1);
        print_group(calibration, &calibration->identify.groups[i], out);
        fputc('\n', out);
    }
}

static void print_target(const struct calibration *calibration, const struct suggestion *suggestion,
                         bool more, FILE *out)
{
    fputs(more ? ", " : "", out);
    if (suggestion->group)
        fprintf(out, "combination %u", suggestion->group);
    else
        fputs(calibration->keys.list[suggestion->key].row->key, out);
}

/* One line for each experiment, with all that it would tell. */
static void print_suggestions(const struct calibration *calibration, FILE *out)
{
    const struct suggestion *list = calibration->suggestions;

    for (unsigned int i = 0; i < calibration->suggestion_count; i++) {
        bool printed = !list[i].experiment;

        for (unsigned int k = 0; k < i; k++)
            printed |= list[k].experiment == list[i].experiment;
        if (printed)
            continue;
        fprintf(out, "next: verbena bench %s, for ", list[i].experiment->name);
        for (unsigned int k = i; k < calibration->suggestion_count; k++) {
            if (list[k].experiment == list[i].experiment)
                print_target(calibration, &list[k], k > i, out);
        }
        fputc('\n', out);
    }
}

static void print_totals(const struct calibration *calibration, const char *prefix, FILE *out)
{
    for (int role = DATA_CONTROL; role <= DATA_HELD_OUT; role++) {
        struct summary errors = errors_of_role(calibration, role);

        if (errors.count)
            fprintf(out, "%s%s: %u points, median error %.2f%%, worst %.1f%%\n", prefix,
                    data_role_name(role), (unsigned int)errors.count, 100 * errors.median,
                    100 * errors.maximum);
    }
}

static void print_errors(const struct calibration *calibration, FILE *out)
{
    const struct data *data = &calibration->data;

    fprintf(out, "%-20s %-10s %8s %10s %10s\n", "experiment", "", "points", "median", "worst");
    for (unsigned int i = 0; i < data->experiment_count; i++) {
        const struct data_experiment *entry = &data->experiments[i];
        struct summary errors = errors_of(calibration, i);

        fprintf(out, "%-20s %-10s ", entry->result->name, data_role_name(entry->role));
        if (entry->role == DATA_UNUSED)
            fprintf(out, "%s\n", entry->why);
        else
            fprintf(out, "%8u %9.2f%% %9.1f%%\n", (unsigned int)errors.count, 100 * errors.median,
                    100 * errors.maximum);
    }
}

void calibrate_print(const struct calibration *calibration, FILE *out)
{
    print_keys(calibration, out);
    fputc('\n', out);
    if (calibration->identify.count) {
        print_groups(calibration, "", out);
        fputc('\n', out);
    }
    print_errors(calibration, out);
    fputc('\n', out);
    print_suggestions(calibration, out);
    print_totals(calibration, "", out);
}

/* ---- JSON ---- */

static json_t *keys_json(const struct calibration *calibration)
{
    json_t *array = json_array();

    for (unsigned int i = 0; i < calibration->keys.count; i++) {
        const struct key *key = &calibration->keys.list[i];
        char text[64];
        json_t *row =
            json_pack("{ss sf sf ss ss}", "key", key->row->key, "start", key->start, "value",
                      key->value, "text", keys_text(key->row, key->value, text, sizeof(text)),
                      "origin", keys_origin_name(key->origin));

        if (key->origin == KEY_FITTED && key->variation == KEY_SMOOTH)
            json_object_set_new(row, "error", json_real(key->error));
        if (key->variation == KEY_DISCRETE && key->high > 0) {
            json_object_set_new(row, "low", json_real(key->low));
            json_object_set_new(row, "high", json_real(key->high));
        }
        if (key->origin == KEY_SHARED)
            json_object_set_new(row, "combination", json_integer(key->combined));
        json_array_append_new(array, row);
    }
    return array;
}

static json_t *errors_json(struct summary errors)
{
    return json_pack("{si sf sf}", "points", (int)errors.count, "median", errors.median, "worst",
                     errors.maximum);
}

static json_t *experiments_json(const struct calibration *calibration)
{
    json_t *array = json_array();

    for (unsigned int i = 0; i < calibration->data.experiment_count; i++) {
        const struct data_experiment *entry = &calibration->data.experiments[i];
        json_t *row = errors_json(errors_of(calibration, i));

        json_object_set_new(row, "name", json_string(entry->result->name));
        json_object_set_new(row, "role", json_string(data_role_name(entry->role)));
        if (entry->role == DATA_UNUSED)
            json_object_set_new(row, "reason", json_string(entry->why));
        json_array_append_new(array, row);
    }
    return array;
}

static json_t *groups_json(const struct calibration *calibration)
{
    json_t *array = json_array();

    for (unsigned int i = 0; i < calibration->identify.count; i++) {
        const struct identify_group *group = &calibration->identify.groups[i];
        json_t *names = json_array();
        json_t *row = json_pack("{so}", "keys", names);

        for (unsigned int k = 0; k < group->count; k++)
            json_array_append_new(names,
                                  json_string(calibration->keys.list[group->keys[k]].row->key));
        if (group->is_sum) {
            json_object_set_new(row, "sum_ns", json_real(group->sum));
            json_object_set_new(row, "error", json_real(group->error));
        }
        json_array_append_new(array, row);
    }
    return array;
}

static json_t *suggestions_json(const struct calibration *calibration)
{
    json_t *array = json_array();

    for (unsigned int i = 0; i < calibration->suggestion_count; i++) {
        const struct suggestion *suggestion = &calibration->suggestions[i];
        json_t *row;

        if (!suggestion->experiment)
            continue;
        row = json_pack("{ss sf}", "experiment", suggestion->experiment->name, "effect",
                        suggestion->effect);
        if (suggestion->group)
            json_object_set_new(row, "combination", json_integer(suggestion->group));
        else
            json_object_set_new(row, "key",
                                json_string(calibration->keys.list[suggestion->key].row->key));
        json_array_append_new(array, row);
    }
    return array;
}

json_t *calibrate_json(const struct calibration *calibration)
{
    return json_pack("{ss si so so so so so so so}", "start", calibration->keys.name, "runs",
                     (int)calibration->runs, "parameters", keys_json(calibration), "combinations",
                     groups_json(calibration), "next", suggestions_json(calibration), "experiments",
                     experiments_json(calibration), "control",
                     errors_json(errors_of_role(calibration, DATA_CONTROL)), "fitted",
                     errors_json(errors_of_role(calibration, DATA_FITTED)), "held_out",
                     errors_json(errors_of_role(calibration, DATA_HELD_OUT)));
}

/* ---- the adapter file ---- */

void calibrate_write(const struct calibration *calibration, const char *command, FILE *out)
{
    char title[TITLE_MAX];

    snprintf(title, sizeof(title), "%.80s, calibrated", calibration->keys.start.title);
    fprintf(out, "# %s\n", command);
    print_groups(calibration, "# ", out);
    print_totals(calibration, "# ", out);
    fputc('\n', out);
    keys_write(&calibration->keys, title, out);
}
