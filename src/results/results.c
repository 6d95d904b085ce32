/* SPDX-License-Identifier: BSD-2-Clause */
#include "results.h"
#include "allocate.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct results *results_new(const char *version, const char *date, const char *command)
{
    struct results *results = allocate_zeroed(sizeof(*results));

    results->version = allocate_text(version);
    results->date = allocate_text(date);
    results->command = allocate_text(command);
    return results;
}

static void metadata_free(struct metadata *metadata)
{
    for (unsigned int i = 0; i < metadata->count; i++) {
        free(metadata->rows[i].name);
        free(metadata->rows[i].value);
    }
    free(metadata->rows);
}

static void series_free(struct series *series)
{
    free(series->name);
    free(series->quantity);
    free(series->unit);
    free(series->axis);
    free(series->axis_unit);
    for (unsigned int i = 0; i < series->count; i++)
        free(series->points[i].rounds);
    free(series->points);
}

static void experiment_free(struct experiment_result *result)
{
    for (unsigned int i = 0; i < result->count; i++)
        series_free(&result->series[i]);
    free(result->series);
    metadata_free(&result->settings);
    metadata_free(&result->notes);
    free(result->name);
    free(result->group);
    free(result->title);
    free(result->source);
    free(result->skipped);
    free(result->failed);
}

void results_free(struct results *results)
{
    if (!results)
        return;
    for (unsigned int i = 0; i < results->count; i++)
        experiment_free(&results->experiments[i]);
    free(results->experiments);
    metadata_free(&results->machine);
    metadata_free(&results->device);
    free(results->loads);
    free(results->path);
    free(results->version);
    free(results->date);
    free(results->command);
    free(results);
}

static struct metadata_entry *entry_find(const struct metadata *metadata, const char *name)
{
    for (unsigned int i = 0; i < metadata->count; i++) {
        if (!strcmp(metadata->rows[i].name, name))
            return &metadata->rows[i];
    }
    return NULL;
}

void results_metadata_set(struct metadata *metadata, const char *name, const char *format, ...)
{
    struct metadata_entry *entry = entry_find(metadata, name);
    va_list arguments;
    char *value;

    va_start(arguments, format);
    value = allocate_printed(format, arguments);
    va_end(arguments);
    if (entry) {
        free(entry->value);
    } else {
        metadata->rows =
            allocate_one_more(metadata->rows, metadata->count, sizeof(*metadata->rows));
        entry = &metadata->rows[metadata->count++];
        entry->name = allocate_text(name);
    }
    entry->value = value;
}

const char *results_metadata_get(const struct metadata *metadata, const char *name)
{
    const struct metadata_entry *entry = entry_find(metadata, name);

    return entry ? entry->value : NULL;
}

struct experiment_result *results_add(struct results *results, const char *name, const char *group,
                                      const char *title, const char *source)
{
    struct experiment_result *result;

    results->experiments =
        allocate_one_more(results->experiments, results->count, sizeof(*results->experiments));
    result = &results->experiments[results->count++];
    *result = (struct experiment_result){
        .name = allocate_text(name),
        .group = allocate_text(group),
        .title = allocate_text(title),
        .source = allocate_text(source),
    };
    return result;
}

void result_skipped(struct experiment_result *result, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    free(result->skipped);
    result->skipped = allocate_printed(format, arguments);
    va_end(arguments);
}

void result_failed(struct experiment_result *result, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    free(result->failed);
    result->failed = allocate_printed(format, arguments);
    va_end(arguments);
}

struct series *result_series(struct experiment_result *result, const char *name,
                             const char *quantity, const char *unit, const char *axis,
                             const char *axis_unit, enum better better)
{
    struct series *series;

    result->series = allocate_one_more(result->series, result->count, sizeof(*result->series));
    series = &result->series[result->count++];
    *series = (struct series){
        .name = allocate_text(name),
        .quantity = allocate_text(quantity),
        .unit = allocate_text(unit),
        .axis = allocate_text(axis),
        .axis_unit = allocate_text(axis_unit),
        .better = better,
    };
    return series;
}

void results_series_add(struct series *series, double x, const struct summary *y)
{
    series->points = allocate_one_more(series->points, series->count, sizeof(*series->points));
    series->points[series->count++] = (struct point){ .x = x, .y = *y };
}

void results_point_add_round(struct point *point, double median)
{
    point->rounds = allocate_one_more(point->rounds, point->round_count, sizeof(*point->rounds));
    point->rounds[point->round_count++] = median;
}

const struct experiment_result *results_find(const struct results *results, const char *name)
{
    for (unsigned int i = 0; i < results->count; i++) {
        if (!strcmp(results->experiments[i].name, name))
            return &results->experiments[i];
    }
    return NULL;
}

const struct series *result_find(const struct experiment_result *result, const char *name,
                                 const char *quantity)
{
    for (unsigned int i = 0; i < result->count; i++) {
        const struct series *series = &result->series[i];

        if (!strcmp(series->name, name) && (!quantity || !strcmp(series->quantity, quantity)))
            return series;
    }
    return NULL;
}

void results_add_load(struct results *results, double load)
{
    results->loads =
        allocate_one_more(results->loads, results->load_count, sizeof(*results->loads));
    results->loads[results->load_count++] = load;
}

struct experiment_result *results_counterpart(const struct results *results,
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

struct series *result_counterpart(const struct experiment_result *result, const struct series *like)
{
    for (unsigned int i = 0; i < result->count; i++) {
        struct series *series = &result->series[i];

        if (!strcmp(series->name, like->name) && !strcmp(series->quantity, like->quantity) &&
            !strcmp(series->axis, like->axis))
            return series;
    }
    return NULL;
}

struct point *results_point_at(const struct series *series, double x)
{
    for (unsigned int i = 0; i < series->count; i++) {
        if (series->points[i].x == x)
            return &series->points[i];
    }
    return NULL;
}

void results_now(char *text, size_t size)
{
    time_t now = time(NULL);
    struct tm date;

    gmtime_r(&now, &date);
    strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", &date);
}
