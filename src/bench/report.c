/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/report.h"
#include "bench/metadata.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CURVES_MAX 64
#define COLUMN     12

struct report {
    struct results *results;
    FILE *out;
    bool progress; /* standard error is a terminal */
    time_t start;
    unsigned int planned;
    unsigned int done;

    struct experiment_result *result;
    unsigned int first_series;
    unsigned int curves;
    bool in_panel;
    bool row_open;
    double row_x;
    bool filled[CURVES_MAX];
    struct summary row[CURVES_MAX];
    int width[CURVES_MAX];
};

struct report *report_new(struct results *results, FILE *out, unsigned int planned)
{
    struct report *report = calloc(1, sizeof(*report));

    if (!report)
        return NULL;
    report->results = results;
    report->out = out;
    report->planned = planned;
    report->progress = isatty(STDERR_FILENO);
    report->start = time(NULL);
    return report;
}

void report_free(struct report *report)
{
    free(report);
}

static void progress_clear(struct report *report)
{
    if (report->progress)
        fputs("\r\033[K", stderr);
}

/* The remaining experiments are taken to last as long as those so far did. */
const char *report_time_left(double seconds, unsigned int done, unsigned int planned, char *text,
                             size_t size)
{
    double left = done ? seconds / done * planned - seconds : 0;

    text[0] = '\0';
    if (done && left >= 1)
        snprintf(text, size, left < 100 ? ", about %.0f s left" : ", about %.0f min left",
                 left < 100 ? left : left / 60);
    return text;
}

static void progress_show(struct report *report)
{
    char left[48];

    if (report->progress)
        fprintf(stderr, "\r\033[K[%u/%u] %s%s ...", report->done + 1, report->planned,
                report->result->name,
                report_time_left(time(NULL) - report->start, report->done, report->planned, left,
                                 sizeof(left)));
}

void report_begin(struct report *report, const struct experiment *experiment, const char *group,
                  const struct settings *settings)
{
    report->result = results_add(report->results, experiment->name, group, experiment->title,
                                 experiment->source);
    metadata_of_settings(settings, &report->result->settings);
    progress_clear(report);
    fprintf(report->out, "\n%s - %s\n", experiment->name, experiment->title);
    fflush(report->out);
    progress_show(report);
}

/* Four significant digits, and no exponent. */
static const char *number_text(double value, char *text, size_t size)
{
    int digits = value >= 999.95 ? 0 : value >= 99.995 ? 1 : value >= 9.9995 ? 2 : 3;

    snprintf(text, size, "%.*f", digits, value);
    return text;
}

static void print_axis(struct report *report, double x)
{
    const struct series *series = &report->result->series[report->first_series];
    char text[32];

    if (x == (uint64_t)x && !strcmp(series->axis_unit, "B"))
        option_number_text(x, text, sizeof(text));
    else
        snprintf(text, sizeof(text), "%g", x);
    fprintf(report->out, "%*s", COLUMN, text);
}

static void print_spread(struct report *report, const struct summary *y)
{
    const double values[] = { y->median, y->minimum, y->mean, y->p99, y->p999, y->maximum };
    char text[32];

    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
        fprintf(report->out, "%*s", COLUMN - 2, number_text(values[i], text, sizeof(text)));
    fprintf(report->out, "%*s", COLUMN - 2, number_text(y->deviation, text, sizeof(text)));
}

static void print_row(struct report *report)
{
    char text[32];

    if (!report->row_open)
        return;
    progress_clear(report);
    print_axis(report, report->row_x);
    if (report->curves == 1) {
        print_spread(report, &report->row[0]);
    } else {
        for (unsigned int i = 0; i < report->curves; i++)
            fprintf(report->out, "%*s", report->width[i],
                    report->filled[i] ? number_text(report->row[i].median, text, sizeof(text))
                                      : "-");
    }
    fputc('\n', report->out);
    fflush(report->out);
    report->row_open = false;
    memset(report->filled, 0, sizeof(report->filled));
    progress_show(report);
}

static void print_heading(struct report *report, const struct panel_spec *spec)
{
    static const char *const spread[] = {
        "median", "min", "mean", "p99", "p99.9", "max", "stddev"
    };
    char axis[64];

    progress_clear(report);
    fprintf(report->out, "  %s%s%s", spec->quantity, *spec->unit ? " in " : "", spec->unit);
    if (report->curves == 1 && *spec->names[0])
        fprintf(report->out, ", %s", spec->names[0]);
    snprintf(axis, sizeof(axis), "%s", spec->axis);
    fprintf(report->out, "\n%*s", COLUMN, axis);
    if (report->curves == 1) {
        for (size_t i = 0; i < sizeof(spread) / sizeof(*spread); i++)
            fprintf(report->out, "%*s", COLUMN - 2, spread[i]);
    } else {
        for (unsigned int i = 0; i < report->curves; i++)
            fprintf(report->out, "%*s", report->width[i], spec->names[i]);
    }
    fputc('\n', report->out);
    fflush(report->out);
}

void report_panel(struct report *report, const struct panel_spec *given)
{
    struct panel_spec whole = *given;
    const struct panel_spec *spec = &whole;

    whole.unit = given->unit ? given->unit : "";
    whole.axis_unit = given->axis_unit ? given->axis_unit : "";
    print_row(report);
    report->first_series = report->result->count;
    report->curves = spec->count < CURVES_MAX ? spec->count : CURVES_MAX;
    for (unsigned int i = 0; i < report->curves; i++) {
        int length = strlen(spec->names[i]) + 2;

        report->width[i] = length > COLUMN ? length : COLUMN;
        result_series(report->result, spec->names[i], spec->quantity, spec->unit, spec->axis,
                      spec->axis_unit, spec->better);
    }
    report->in_panel = true;
    print_heading(report, spec);
}

void report_point(struct report *report, unsigned int curve, double x, const struct summary *y)
{
    if (!report->in_panel || curve >= report->curves)
        return;
    if (report->row_open && (report->row_x != x || report->filled[curve]))
        print_row(report);
    results_series_add(&report->result->series[report->first_series + curve], x, y);
    report->row_open = true;
    report->row_x = x;
    report->filled[curve] = true;
    report->row[curve] = *y;
    if (report->curves == 1)
        print_row(report);
}

/* Whether the previous experiment had the same note, which is then not printed again. */
static bool is_repeated(const struct report *report, const char *name, const char *text)
{
    const struct results *results = report->results;
    const char *before = NULL;

    if (results->count > 1)
        before = results_metadata_get(&results->experiments[results->count - 2].notes, name);
    return before && !strcmp(before, text);
}

void report_note(struct report *report, const char *name, const char *text)
{
    print_row(report);
    progress_clear(report);
    results_metadata_set(&report->result->notes, name, "%s", text);
    if (is_repeated(report, name, text))
        return;
    fprintf(report->out, "  %s: %s\n", name, text);
    fflush(report->out);
}

void report_end(struct report *report, enum control_status status, const char *why)
{
    print_row(report);
    progress_clear(report);
    if (status == CONTROL_SKIPPED) {
        report->result->skipped = strdup(why);
        fprintf(report->out, "  skipped: %s\n", why);
    } else if (status == CONTROL_FAILED) {
        report->result->failed = strdup(why);
        fprintf(report->out, "  FAILED: %s\n", why);
    } else if (status == CONTROL_INTERRUPTED) {
        fputs("  interrupted\n", report->out);
    }
    report->in_panel = false;
    report->done++;
    fflush(report->out);
}
