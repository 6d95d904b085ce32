/* SPDX-License-Identifier: BSD-2-Clause */
#include "advice.h"
#include "results/allocate.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static unsigned int adviser_count(void)
{
    unsigned int count = 0;

    while (advisers[count])
        count++;
    return count;
}

struct advice *advice_make(const struct advice_input *input)
{
    unsigned int count = adviser_count();
    struct advice *advices = allocate_zeroed((count + 1) * sizeof(*advices));

    for (unsigned int i = 0; i < count; i++) {
        advices[i].adviser = advisers[i];
        advisers[i]->advise(input, &advices[i]);
    }
    return advices;
}

void advice_free(struct advice *advices)
{
    for (struct advice *advice = advices; advice->adviser; advice++) {
        free(advice->text);
        free(advice->reason);
        free(advice->found);
        free(advice->evidence);
        free(advice->parameters);
    }
    free(advices);
}

/* Conditions on a series; NULL matches any. */
struct wanted {
    const char *experiment, *series, *beginning, *quantity, *axis;
};

static bool matches(const struct series *series, const struct wanted *wanted)
{
    return series->count && (!wanted->series || !strcmp(series->name, wanted->series)) &&
           (!wanted->beginning ||
            !strncmp(series->name, wanted->beginning, strlen(wanted->beginning))) &&
           (!wanted->quantity || !strcmp(series->quantity, wanted->quantity)) &&
           (!wanted->axis || !strcmp(series->axis, wanted->axis));
}

static bool source_in(const struct results *file, const struct wanted *wanted, struct source *out)
{
    for (unsigned int i = 0; i < file->count; i++) {
        const struct experiment_result *result = &file->experiments[i];

        if (strcmp(result->name, wanted->experiment))
            continue;
        for (unsigned int j = 0; j < result->count; j++) {
            if (matches(&result->series[j], wanted)) {
                *out = (struct source){ file, result, &result->series[j] };
                return true;
            }
        }
    }
    return false;
}

bool advice_source_find(const struct advice_input *input, const char *experiment,
                        const char *series, const char *quantity, struct source *out)
{
    struct wanted exact = { .experiment = experiment, .series = series, .quantity = quantity };
    struct wanted loose = { .experiment = experiment, .beginning = series, .quantity = quantity };

    for (unsigned int i = 0; i < input->count; i++) {
        if (source_in(input->files[i], &exact, out) || source_in(input->files[i], &loose, out))
            return true;
    }
    return false;
}

bool advice_source_along(const struct advice_input *input, const char *experiment, const char *axis,
                         struct source *out)
{
    struct wanted wanted = { .experiment = experiment, .axis = axis };

    for (unsigned int i = 0; i < input->count; i++) {
        if (source_in(input->files[i], &wanted, out))
            return true;
    }
    return false;
}

bool advice_source_is_exact(const struct source *source)
{
    const char *clock = results_metadata_get(&source->file->machine, "clock");

    return clock && !strcmp(clock, "virtual time");
}

void advice_say(struct advice *advice, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    advice->text = allocate_printed(format, arguments);
    va_end(arguments);
}

void advice_none(struct advice *advice, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    advice->reason = allocate_printed(format, arguments);
    va_end(arguments);
}

void advice_found(struct advice *advice, const char *name, double value, const char *unit)
{
    advice->found = allocate_one_more(advice->found, advice->found_count, sizeof(*advice->found));
    advice->found[advice->found_count++] = (struct found){ name, unit, value };
}

void advice_evidence(struct advice *advice, const struct source *source, double x)
{
    for (unsigned int i = 0; i < source->series->count; i++) {
        const struct point *point = &source->series->points[i];

        if (point->x != x)
            continue;
        advice->evidence =
            allocate_one_more(advice->evidence, advice->evidence_count, sizeof(*advice->evidence));
        advice->evidence[advice->evidence_count++] = (struct evidence){
            source->file, source->experiment, source->series, x, point->y.median,
        };
        return;
    }
}
