/* SPDX-License-Identifier: BSD-2-Clause */
#include "threshold.h"
#include "allocate.h"
#include "util/option.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const statistic_names[STATISTIC_COUNT] = { "median", "min", "mean",  "p99",
                                                              "p999",   "max", "stddev" };
static const char *const comparison_signs[] = { ">", ">=", "<", "<=" };

/* Rates count messages. */
static const struct unit {
    const char *name;
    const char *dimension;
    double scale;
} units[] = {
    { "ns", "time", 1e-9 },
    { "us", "time", 1e-6 },
    { "ms", "time", 1e-3 },
    { "s", "time", 1 },
    { "B/s", "bandwidth", 1 },
    { "KB/s", "bandwidth", 1e3 },
    { "MB/s", "bandwidth", 1e6 },
    { "GB/s", "bandwidth", 1e9 },
    { "Mbit/s", "bandwidth", 1e6 / 8 },
    { "Gbit/s", "bandwidth", 1e9 / 8 },
    { "/s", "rate", 1 },
    { "K/s", "rate", 1e3 },
    { "M/s", "rate", 1e6 },
    { "K", "rate", 1e3 },
    { "M", "rate", 1e6 },
    { "B", "memory", 1 },
    { "KB", "memory", 1024 },
    { "MB", "memory", 1024 * 1024 },
    { "%", "share", 1 },
};

static const struct unit *unit_find(const char *name)
{
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
        if (!strcmp(units[i].name, name))
            return &units[i];
    }
    return NULL;
}

bool threshold_convert_unit(double value, const char *from, const char *to, double *out)
{
    const struct unit *source = unit_find(from), *target = unit_find(to);

    if (!source || !target || strcmp(source->dimension, target->dimension))
        return false;
    *out = value * source->scale / target->scale;
    return true;
}

/* Parses the text and records the first error. */
struct reader {
    const char *text;
    const char *at;
    char *error;
    size_t size;
};

static int syntax_error(const struct reader *reader, const char *what)
{
    snprintf(reader->error, reader->size, "'%s': %s at '%s'", reader->text, what,
             *reader->at ? reader->at : "the end");
    return -1;
}

static void skip_blanks(struct reader *reader)
{
    while (isspace((unsigned char)*reader->at))
        reader->at++;
}

static bool take(struct reader *reader, char wanted)
{
    skip_blanks(reader);
    if (*reader->at != wanted)
        return false;
    reader->at++;
    return true;
}

static bool in_name(char letter)
{
    return isalnum((unsigned char)letter) || letter == '-' || letter == '_' || letter == ' ';
}

/* Reads a quoted name, or an unquoted one without trailing blanks. */
static int read_name(struct reader *reader, const char *what, char name[THRESHOLD_NAME_MAX])
{
    const char *start;
    size_t length;
    char quote = 0;

    skip_blanks(reader);
    if (*reader->at == '"' || *reader->at == '\'')
        quote = *reader->at++;
    start = reader->at;
    while (*reader->at && (quote ? *reader->at != quote : in_name(*reader->at)))
        reader->at++;
    length = reader->at - start;
    while (!quote && length && isspace((unsigned char)start[length - 1]))
        length--;
    if (!length || length >= THRESHOLD_NAME_MAX)
        return syntax_error(reader, what);
    if (quote && *reader->at++ != quote) {
        reader->at = start - 1;
        return syntax_error(reader, "unterminated quote");
    }
    memcpy(name, start, length);
    name[length] = '\0';
    return 0;
}

static bool is_statistic(const char *name, enum statistic *out)
{
    for (int i = 0; i < STATISTIC_COUNT; i++) {
        if (!strcmp(statistic_names[i], name)) {
            *out = i;
            return true;
        }
    }
    return false;
}

/* An unknown percentile must not be taken for a series. */
static bool is_percentile(const char *name)
{
    return name[0] == 'p' && isdigit((unsigned char)name[1]);
}

/* ".SERIES", ".STATISTIC" or both, in this order. */
static int read_qualifiers(struct reader *reader, struct threshold *term)
{
    char name[THRESHOLD_NAME_MAX];
    bool has_statistic = false;

    while (take(reader, '.')) {
        const char *start = reader->at;

        if (read_name(reader, "expected the name of a series or a statistic", name))
            return -1;
        if (has_statistic ||
            ((*term->series || is_percentile(name)) && !is_statistic(name, &term->statistic))) {
            reader->at = start;
            return syntax_error(reader, "expected min, median, mean, p99, p999, max or stddev");
        }
        has_statistic = is_statistic(name, &term->statistic);
        if (!has_statistic)
            strcpy(term->series, name);
    }
    return 0;
}

static int read_x(struct reader *reader, struct threshold *term)
{
    const char *end;
    uint64_t number;
    char *stop;

    if (!take(reader, '['))
        return 0;
    skip_blanks(reader);
    term->has_x = true;
    if (option_read_number(reader->at, &end, &number) && *end != '.') {
        term->x = number;
    } else {
        term->x = strtod(reader->at, &stop);
        if (stop == reader->at || !isfinite(term->x))
            return syntax_error(reader, "expected a number such as 64K");
        end = stop;
    }
    reader->at = end;
    return take(reader, ']') ? 0 : syntax_error(reader, "expected ']'");
}

static int read_comparison(struct reader *reader, struct threshold *term)
{
    bool below, at;

    skip_blanks(reader);
    if (*reader->at != '<' && *reader->at != '>')
        return syntax_error(reader, "expected one of > >= < <=");
    below = *reader->at++ == '<';
    at = *reader->at == '=';
    reader->at += at;
    term->comparison = below ? (at ? COMPARE_BELOW_OR_AT : COMPARE_BELOW)
                             : (at ? COMPARE_ABOVE_OR_AT : COMPARE_ABOVE);
    return 0;
}

static int read_limit(struct reader *reader, struct threshold *term)
{
    const char *start;
    size_t length;
    char *end;

    skip_blanks(reader);
    term->limit = strtod(reader->at, &end);
    if (end == reader->at || !isfinite(term->limit))
        return syntax_error(reader, "expected a number");
    reader->at = end;
    skip_blanks(reader);
    start = reader->at;
    length = strcspn(start, "; \t\n");
    if (length >= sizeof(term->unit))
        return syntax_error(reader, "unknown unit");
    memcpy(term->unit, start, length);
    term->unit[length] = '\0';
    if (length && !unit_find(term->unit))
        return syntax_error(reader, "unknown unit (units are ns us ms s, B/s KB/s MB/s GB/s Mbit/s "
                                    "Gbit/s, /s K/s M/s, B KB MB, %)");
    reader->at += length;
    return 0;
}

static int read_term(struct reader *reader, struct threshold *term)
{
    memset(term, 0, sizeof(*term));
    if (read_name(reader, "expected the name of an experiment", term->experiment) ||
        read_qualifiers(reader, term) || read_x(reader, term) || read_comparison(reader, term) ||
        read_limit(reader, term))
        return -1;
    skip_blanks(reader);
    return *reader->at && *reader->at != ';' ? syntax_error(reader, "expected ';'") : 0;
}

int thresholds_read(const char *text, struct thresholds *out, char *error, size_t size)
{
    struct reader reader = { .text = text, .at = text, .error = error, .size = size };

    memset(out, 0, sizeof(*out));
    do {
        struct threshold term;

        skip_blanks(&reader);
        if (!*reader.at && out->count)
            break;
        if (read_term(&reader, &term)) {
            thresholds_free(out);
            return -1;
        }
        out->terms = allocate_one_more(out->terms, out->count, sizeof(term));
        out->terms[out->count++] = term;
    } while (take(&reader, ';'));
    return 0;
}

void thresholds_free(struct thresholds *thresholds)
{
    free(thresholds->terms);
    memset(thresholds, 0, sizeof(*thresholds));
}

static double statistic_of(const struct summary *summary, enum statistic statistic)
{
    const double values[STATISTIC_COUNT] = { summary->median,   summary->minimum, summary->mean,
                                             summary->p99,      summary->p999,    summary->maximum,
                                             summary->deviation };

    return values[statistic];
}

static bool compare(enum comparison comparison, double value, double limit)
{
    switch (comparison) {
    case COMPARE_ABOVE:
        return value > limit;
    case COMPARE_ABOVE_OR_AT:
        return value >= limit;
    case COMPARE_BELOW:
        return value < limit;
    case COMPARE_BELOW_OR_AT:
        return value <= limit;
    }
    return false;
}

/* "send" matches "send" and "send poll", but not "send-imm poll". */
static bool series_matches(const char *wanted, const char *name)
{
    size_t length = strlen(wanted);

    return !length || (!strncmp(wanted, name, length) && (!name[length] || name[length] == ' '));
}

static unsigned int check_series(const struct threshold *term, const char *experiment,
                                 const struct series *series, unsigned int *seen, FILE *out)
{
    unsigned int violations = 0;
    double limit = term->limit;

    if (*term->unit && strcmp(term->unit, series->unit) &&
        !threshold_convert_unit(term->limit, term->unit, series->unit, &limit))
        return 0;
    for (unsigned int i = 0; i < series->count; i++) {
        const struct point *point = &series->points[i];
        double value = statistic_of(&point->y, term->statistic);
        char x[32];

        if (term->has_x && point->x != term->x)
            continue;
        ++*seen;
        if (!compare(term->comparison, value, limit))
            continue;
        violations++;
        if (point->x == (uint64_t)point->x && !strcmp(series->axis_unit, "B"))
            option_number_text(point->x, x, sizeof(x));
        else
            snprintf(x, sizeof(x), "%g", point->x);
        fprintf(out, "fail-if: %s, %s, %s %s: %s %.4g %s %s %.4g %s\n", experiment, series->name,
                series->axis, x, statistic_names[term->statistic], value, series->unit,
                comparison_signs[term->comparison], limit, series->unit);
    }
    return violations;
}

static unsigned int check_term(const struct threshold *term, const struct results *results,
                               FILE *out)
{
    unsigned int violations = 0, seen = 0;

    for (unsigned int i = 0; i < results->count; i++) {
        const struct experiment_result *result = &results->experiments[i];

        if (strcmp(result->name, term->experiment))
            continue;
        for (unsigned int k = 0; k < result->count; k++) {
            if (series_matches(term->series, result->series[k].name))
                violations += check_series(term, result->name, &result->series[k], &seen, out);
        }
    }
    if (seen)
        return violations;
    fprintf(out, "fail-if: nothing was measured for %s", term->experiment);
    if (*term->series)
        fprintf(out, ", %s", term->series);
    if (term->has_x)
        fprintf(out, ", at %g", term->x);
    fprintf(out, "%s%s\n", *term->unit ? ", in " : "", term->unit);
    return 1;
}

unsigned int thresholds_check(const struct thresholds *thresholds, const struct results *results,
                              FILE *out)
{
    unsigned int violations = 0;

    for (unsigned int i = 0; i < thresholds->count; i++)
        violations += check_term(&thresholds->terms[i], results, out);
    return violations;
}
