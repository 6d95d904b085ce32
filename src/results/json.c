/* SPDX-License-Identifier: BSD-2-Clause */
/* Results as JSON. */
#include "json.h"
#include "schema.h"
#include "allocate.h"
#include "util/file.h"

#include <errno.h>
#include <stdlib.h>

/* Names of programs and devices may contain any bytes, but JSON requires UTF-8. */
static json_t *text_value(const char *text)
{
    json_t *value = text ? json_string(text) : json_null();
    char *plain;

    if (value)
        return value;
    plain = allocate_text(text);
    for (char *byte = plain; *byte; byte++) {
        if (*byte & 0x80)
            *byte = '?';
    }
    value = json_string(plain);
    free(plain);
    return value;
}

static json_t *number_value(double number)
{
    if (schema_is_whole(number))
        return json_integer((json_int_t)number);
    return json_real(number);
}

static json_t *numbers_value(const double *numbers, unsigned int count)
{
    json_t *array = json_array();

    for (unsigned int i = 0; i < count; i++)
        json_array_append_new(array, number_value(numbers[i]));
    return array;
}

static json_t *metadata_value(const struct metadata *metadata)
{
    json_t *object = json_object();

    for (unsigned int i = 0; i < metadata->count; i++)
        json_object_set_new(object, metadata->rows[i].name, text_value(metadata->rows[i].value));
    return object;
}

static json_t *point_value(const struct point *point)
{
    json_t *object = json_object();
    struct summary y = point->y;

    json_object_set_new(object, "x", number_value(point->x));
    json_object_set_new(object, "count", json_integer((json_int_t)point->y.count));
    for (unsigned int i = 0; i < results_statistic_count; i++) {
        const struct statistic_field *row = &results_statistics[i];

        json_object_set_new(object, row->name, number_value(*schema_statistic(row, &y)));
    }
    if (point->round_count)
        json_object_set_new(object, "rounds", numbers_value(point->rounds, point->round_count));
    return object;
}

static json_t *series_value(const struct series *series)
{
    json_t *object = json_object();
    json_t *points = json_array();

    json_object_set_new(object, "name", text_value(series->name));
    json_object_set_new(object, "quantity", text_value(series->quantity));
    json_object_set_new(object, "unit", text_value(series->unit));
    json_object_set_new(object, "axis", text_value(series->axis));
    json_object_set_new(object, "axis_unit", text_value(series->axis_unit));
    json_object_set_new(object, "better", text_value(schema_better_name(series->better)));
    for (unsigned int i = 0; i < series->count; i++)
        json_array_append_new(points, point_value(&series->points[i]));
    json_object_set_new(object, "points", points);
    return object;
}

static json_t *experiment_value(const struct experiment_result *result)
{
    json_t *object = json_object();
    json_t *series = json_array();

    json_object_set_new(object, "name", text_value(result->name));
    json_object_set_new(object, "group", text_value(result->group));
    json_object_set_new(object, "title", text_value(result->title));
    json_object_set_new(object, "source", text_value(result->source));
    json_object_set_new(object, "skipped", text_value(result->skipped));
    json_object_set_new(object, "failed", text_value(result->failed));
    json_object_set_new(object, "settings", metadata_value(&result->settings));
    json_object_set_new(object, "notes", metadata_value(&result->notes));
    for (unsigned int i = 0; i < result->count; i++)
        json_array_append_new(series, series_value(&result->series[i]));
    json_object_set_new(object, "series", series);
    return object;
}

json_t *results_json(const struct results *results)
{
    json_t *object = json_object();
    json_t *experiments = json_array();

    json_object_set_new(object, "schema", json_string(RESULTS_SCHEMA));
    json_object_set_new(object, "version", text_value(results->version));
    json_object_set_new(object, "date", text_value(results->date));
    json_object_set_new(object, "command", text_value(results->command));
    json_object_set_new(object, "interrupted", json_boolean(results->interrupted));
    json_object_set_new(object, "deterministic", json_boolean(results->deterministic));
    if (results->load_count)
        json_object_set_new(object, "loads", numbers_value(results->loads, results->load_count));
    json_object_set_new(object, "machine", metadata_value(&results->machine));
    json_object_set_new(object, "device", metadata_value(&results->device));
    for (unsigned int i = 0; i < results->count; i++)
        json_array_append_new(experiments, experiment_value(&results->experiments[i]));
    json_object_set_new(object, "experiments", experiments);
    return object;
}

int results_write_json(const struct results *results, FILE *out)
{
    json_t *value;
    int status;

    if (!results_finite(results)) {
        errno = EDOM;
        return -1;
    }
    value = results_json(results);
    status = json_dumpf(value, out, JSON_INDENT(1) | JSON_REAL_PRECISION(RESULTS_DIGITS));
    json_decref(value);
    if (status || fputc('\n', out) == EOF || fflush(out))
        return -1;
    return 0;
}

json_t *json_read(const char *path, char *error, size_t size)
{
    size_t length;
    char *text = file_read(path, FILE_DATA_MAX, &length, error, size);
    json_error_t parse;
    json_t *value;

    if (!text)
        return NULL;
    value = json_loadb(text, length, JSON_REJECT_DUPLICATES, &parse);
    if (!value)
        snprintf(error, size, "%s: line %d, column %d: %s", path, parse.line, parse.column,
                 parse.text);
    free(text);
    return value;
}
