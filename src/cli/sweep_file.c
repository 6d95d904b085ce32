/* SPDX-License-Identifier: BSD-2-Clause */
#include "sweep_file.h"
#include "line.h"
#include "replay/generate.h"
#include "replay/settings.h"
#include "util/file.h"
#include "util/option.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUES_MAX 64
#define RANKS_MAX  65536
#define BYTES_MAX  (1ull << 40)

const char *const sweep_key_names[] = { "pattern", "adapter", "shape", "set",    "ranks-per-node",
                                        "policy",  "qps",     "ports", "devices" };
static const struct option_row ranks_row = {
    .name = "ranks", .kind = OPTION_NUMBERS, .minimum = 1, .maximum = RANKS_MAX
};
static const struct option_row size_row = {
    .name = "size", .kind = OPTION_NUMBERS, .minimum = 1, .maximum = BYTES_MAX
};

struct values {
    const char *value[VALUES_MAX];
    unsigned int count;
};

struct chart {
    const char *name;
    struct values keys[SWEEP_KEYS];
    struct number_list ranks, sizes;
};

struct reading {
    struct sweep *sweep;
    const char *path;
    unsigned int line;
    char *error;
    size_t size;
};

static int fail(const struct reading *reading, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int fail(const struct reading *reading, const char *format, ...)
{
    char reason[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    snprintf(reading->error, reading->size, "%s:%u: %s", reading->path, reading->line, reason);
    return -1;
}

/* ---- a line ---- */

static int read_values(const struct reading *reading, struct chart *chart, const char *key,
                       char *text)
{
    unsigned int index = 0;
    struct values *values;
    char *value;

    while (index < SWEEP_KEYS && strcmp(key, sweep_key_names[index]))
        index++;
    if (index == SWEEP_KEYS)
        return fail(reading,
                    "'%s' is none of pattern, ranks, size, adapter, shape, set, ranks-per-node, "
                    "policy, qps, ports, devices",
                    key);
    values = &chart->keys[index];
    while ((value = strsep(&text, ","))) {
        if (values->count == VALUES_MAX)
            return fail(reading, "%s has more than %d values", key, VALUES_MAX);
        if (!*value)
            return fail(reading, "%s has an empty value", key);
        values->value[values->count++] = value;
    }
    return 0;
}

static int read_numbers(const struct reading *reading, const struct option_row *row,
                        const char *text, struct number_list *out)
{
    char reason[256];

    return option_store(row, text, out, reason, sizeof(reason)) ? fail(reading, "%s", reason) : 0;
}

static int read_word(const struct reading *reading, struct chart *chart, char *word)
{
    char *value = strchr(word, '=');

    if (!value)
        return fail(reading, "expected KEY=VALUE, not '%s'", word);
    *value++ = '\0';
    if (!strcmp(word, "ranks"))
        return read_numbers(reading, &ranks_row, value, &chart->ranks);
    if (!strcmp(word, "size"))
        return read_numbers(reading, &size_row, value, &chart->sizes);
    return read_values(reading, chart, word, value);
}

static int check_chart(const struct reading *reading, struct chart *chart)
{
    struct values *patterns = &chart->keys[SWEEP_PATTERN];

    if (!patterns->count || !chart->ranks.count || !chart->keys[SWEEP_ADAPTER].count)
        return fail(reading, "a chart needs pattern, ranks and adapter");
    for (unsigned int i = 0; i < patterns->count; i++) {
        const struct generate_pattern *pattern = generate_find(patterns->value[i]);

        if (!pattern)
            return fail(reading, "unknown pattern '%s'", patterns->value[i]);
        for (unsigned int k = 0; k < chart->ranks.count; k++) {
            if (!pattern->steps(chart->ranks.value[k]))
                return fail(reading, "%s with %llu ranks: %s", pattern->name,
                            (unsigned long long)chart->ranks.value[k], pattern->needs);
        }
    }
    for (size_t i = 0; i < reading->sweep->count; i++) {
        if (!strcmp(reading->sweep->jobs[i].chart, chart->name))
            return fail(reading, "there is a chart %s already", chart->name);
    }
    return 0;
}

/* ---- its replays ---- */

static void add_to_curve(struct sweep_job *job, bool differs, const char *value)
{
    size_t length = strlen(job->curve);

    if (differs)
        snprintf(job->curve + length, sizeof(job->curve) - length, "%s%s", length ? " " : "",
                 value);
}

/* A number needs the name of its key to be understood. */
static void add_key(struct sweep_job *job, bool differs, enum sweep_key key)
{
    const char *value = job->values[key];
    char named[256];

    if (differs && strspn(value, "0123456789") == strlen(value)) {
        snprintf(named, sizeof(named), "%s=%s", sweep_key_names[key], value);
        value = named;
    }
    add_to_curve(job, differs, value);
}

/* The combination with this number; the numbers of the axis change first. */
static struct sweep_job make_job(const struct chart *chart, size_t number)
{
    struct sweep_job job = { .chart = chart->name,
                             .over_sizes = chart->ranks.count == 1 && chart->sizes.count > 1,
                             .one_size = chart->sizes.count == 1 };
    unsigned int sizes = chart->sizes.count ? chart->sizes.count : 1, at;
    char text[64];

    if (job.over_sizes) {
        at = number % sizes;
        number /= sizes;
        job.ranks = chart->ranks.value[0];
    } else {
        job.ranks = chart->ranks.value[number % chart->ranks.count];
        number /= chart->ranks.count;
        at = number % sizes;
        number /= sizes;
    }
    for (int key = SWEEP_KEYS - 1; key >= 0; key--) {
        unsigned int count = chart->keys[key].count;

        job.values[key] = count ? chart->keys[key].value[number % count] : NULL;
        job.shared |= (unsigned int)(count == 1) << key;
        number /= count ? count : 1;
    }
    job.pattern = generate_find(job.values[SWEEP_PATTERN]);
    job.size = chart->sizes.count ? chart->sizes.value[at] : job.pattern->default_size;
    for (int key = 0; key < SWEEP_KEYS; key++)
        add_key(&job, chart->keys[key].count > 1, key);
    add_to_curve(&job, !job.over_sizes && sizes > 1,
                 option_number_text(job.size, text, sizeof(text)));
    add_to_curve(&job, !*job.curve, job.pattern->name);
    return job;
}

void sweep_job_options(const struct sweep_job *job, struct line *line)
{
    static const char *const options[SWEEP_KEYS] = {
        [SWEEP_ADAPTER] = "--adapter",
        [SWEEP_SHAPE] = "--fabric-shape",
        [SWEEP_SET] = "--set",
        [SWEEP_RANKS_PER_NODE] = "--ranks-per-node",
        [SWEEP_POLICY] = "--policy",
        [SWEEP_QPS] = "--qps",
        [SWEEP_PORTS] = "--ports",
        [SWEEP_DEVICES] = "--devices",
    };

    for (int key = 0; key < SWEEP_KEYS; key++) {
        if (options[key] && job->values[key]) {
            line_add(line, options[key]);
            line_add(line, job->values[key]);
        }
    }
}

static int check_job(const struct reading *reading, const struct sweep_job *job)
{
    struct line line = { .count = 0 };
    struct replay_settings settings;
    char reason[512];

    sweep_job_options(job, &line);
    return replay_settings_read(&settings, line.count, line.words, reason, sizeof(reason)) ||
                   replay_settings_check(&settings, reason, sizeof(reason))
               ? fail(reading, "%s", reason)
               : 0;
}

static int add_jobs(const struct reading *reading, const struct chart *chart)
{
    struct sweep *sweep = reading->sweep;
    size_t count = chart->ranks.count * (size_t)(chart->sizes.count ? chart->sizes.count : 1);
    struct sweep_job *jobs;

    for (int key = 0; key < SWEEP_KEYS; key++)
        count *= chart->keys[key].count ? chart->keys[key].count : 1;
    jobs = realloc(sweep->jobs, (sweep->count + count) * sizeof(*jobs));
    if (!jobs)
        return fail(reading, "out of memory for %zu replays", sweep->count + count);
    sweep->jobs = jobs;
    for (size_t i = 0; i < count; i++) {
        jobs[sweep->count] = make_job(chart, i);
        if (check_job(reading, &jobs[sweep->count++]))
            return -1;
    }
    return 0;
}

static int read_line(struct reading *reading, char *line)
{
    struct chart chart = { .name = NULL };
    char *word;

    line[strcspn(line, "#")] = '\0';
    while ((word = strsep(&line, " \t\r"))) {
        if (!*word)
            continue;
        if (!chart.name)
            chart.name = word;
        else if (read_word(reading, &chart, word))
            return -1;
    }
    if (!chart.name)
        return 0;
    return check_chart(reading, &chart) || add_jobs(reading, &chart) ? -1 : 0;
}

int sweep_file_read(struct sweep *sweep, const char *path, char *error, size_t size)
{
    struct reading reading = { .sweep = sweep, .path = path, .error = error, .size = size };
    char *rest, *line;
    size_t length;

    *sweep = (struct sweep){ .count = 0 };
    sweep->text = rest = file_read(path, FILE_TEXT_MAX, &length, error, size);
    if (!rest)
        return -1;
    while ((line = strsep(&rest, "\n"))) {
        reading.line++;
        if (read_line(&reading, line)) {
            sweep_file_free(sweep);
            return -1;
        }
    }
    if (!sweep->count) {
        snprintf(error, size, "%s: no chart", path);
        sweep_file_free(sweep);
        return -1;
    }
    return 0;
}

void sweep_file_free(struct sweep *sweep)
{
    free(sweep->jobs);
    free(sweep->text);
    *sweep = (struct sweep){ .count = 0 };
}
