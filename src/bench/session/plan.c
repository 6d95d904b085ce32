/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns the command line into a list of experiments with settings. */
#include "bench/session/session.h"
#include "bench/session/experiments.h"
#include "util/file.h"
#include "util/nearest.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLANKS       " \t\r\n"

/* Options between an experiment's own and the user's. */
struct options {
    char *common;      /* of previous lines of the sweep */
    const char *line;  /* of the experiment's line */
    const char *where; /* "FILE:LINE: ", for messages */
    bool quick;
};

static int refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int refuse(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fputs("verbena bench: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return SESSION_USAGE;
}

static bool add_word(struct session_run *run, const char *word, size_t length)
{
    char **more = realloc(run->words, (run->count + 1) * sizeof(*more));

    if (!more)
        return false;
    run->words = more;
    more[run->count] = strndup(word, length);
    return more[run->count++] != NULL;
}

static bool add_text(struct session_run *run, const char *text)
{
    while (text && *(text += strspn(text, BLANKS))) {
        size_t length = strcspn(text, BLANKS);

        if (!add_word(run, text, length))
            return false;
        text += length;
    }
    return true;
}

static void free_words(struct session_run *run)
{
    for (int i = 0; i < run->count; i++)
        free(run->words[i]);
    free(run->words);
}

/* Checks the settings of a run, so that mistakes are found before anything is measured. */
static int check_run(struct plan *plan, struct session_run *run, const char *where)
{
    char error[512];
    struct settings settings;

    settings_init(&settings);
    if (settings_read(&settings, run->words, run->count, error, sizeof(error)))
        return refuse("%s%s", where, error);
    run->ranks =
        run->experiment->count ? run->experiment->count(&settings) : run->experiment->ranks;
    if (run->ranks > CONTROL_RANKS_MAX)
        return refuse("%s%s needs %d processes; the limit is %d", where, run->experiment->name,
                      run->ranks, CONTROL_RANKS_MAX);
    if (run->ranks > plan->ranks)
        plan->ranks = run->ranks;
    return SESSION_OK;
}

/* Combines the experiment's options, those of the sweep, and last those of the command line. */
static int add_run(struct plan *plan, const struct session_spec *spec,
                   const struct experiment *experiment, const struct options *options)
{
    struct session_run *more = realloc(plan->runs, (plan->count + 1) * sizeof(*more));
    struct session_run *run;
    bool enough;

    if (!more)
        return refuse("out of memory");
    plan->runs = more;
    run = &more[plan->count++];
    *run = (struct session_run){ .experiment = experiment };
    enough = add_text(run, experiment->options);
    if (options->quick)
        enough = enough && add_text(run, experiment->quick);
    enough = enough && add_text(run, options->common) && add_text(run, options->line);
    for (int i = 0; i < spec->word_count; i++)
        enough = enough && add_word(run, spec->words[i], strlen(spec->words[i]));
    return enough ? check_run(plan, run, options->where) : refuse("out of memory");
}

static int refuse_name(const char *where, const char *typed, const char *what)
{
    struct nearest nearest;

    nearest_begin(&nearest, typed, strlen(typed));
    for_each_experiment (row) {
        nearest_try(&nearest, row->name);
        nearest_try(&nearest, experiment_group(row));
    }
    if (nearest.count)
        return refuse("%sunknown %s '%s'%s", where, what, typed, nearest_text(&nearest));
    return refuse("%sunknown %s '%s'; 'verbena list experiments' shows all", where, what, typed);
}

/* Adds an experiment, a group, or "all"; sets *found if there is one of that name. */
static int add_named(struct plan *plan, const struct session_spec *spec, const char *name,
                     const struct options *options, bool *found)
{
    int status = SESSION_OK;

    *found = false;
    for_each_experiment (row) {
        if (strcmp(row->name, name) && strcmp(experiment_group(row), name) && strcmp("all", name))
            continue;
        *found = true;
        status = add_run(plan, spec, row, options);
        if (status)
            break;
    }
    return status;
}

/* Rejects options of the whole run. */
static int check_line(const char *text, const char *where)
{
    for (; text && *(text += strspn(text, BLANKS)); text += strcspn(text, BLANKS)) {
        const struct option_row *row = settings_row_of(text);

        if (row && row->tags & SETTING_RUN)
            return refuse("%s--%s applies to the whole run: give it on the command line", where,
                          row->name);
    }
    return SESSION_OK;
}

/* One line: "EXPERIMENT OPTION...", or "OPTION..." for the lines after it. */
static int add_line(struct plan *plan, const struct session_spec *spec, char *line,
                    struct options *options)
{
    char *name, *rest;
    bool found;
    int status;

    line[strcspn(line, "#")] = '\0';
    name = line + strspn(line, BLANKS);
    if (!*name)
        return SESSION_OK;
    if (!strncmp(name, "--", 2)) {
        char *more = NULL;

        if (asprintf(&more, "%s %s", options->common ? options->common : "", name) < 0)
            return refuse("out of memory");
        free(options->common);
        options->common = more;
        return check_line(name, options->where);
    }
    rest = name + strcspn(name, BLANKS);
    if (*rest)
        *rest++ = '\0';
    options->line = rest;
    status = check_line(rest, options->where);
    if (!status)
        status = add_named(plan, spec, name, options, &found);
    return status || found ? status : refuse_name(options->where, name, "experiment or group");
}

static int add_sweep(struct plan *plan, const struct session_spec *spec, const char *path,
                     bool quick)
{
    struct options options = { .quick = quick };
    char where[512], error[512];
    int status = SESSION_OK;
    unsigned int number = 0, before = plan->count;
    size_t length;
    char *text = file_read(path, FILE_TEXT_MAX, &length, error, sizeof(error)), *rest = text;

    if (!text)
        return refuse("%s", error);
    options.where = where;
    while (status == SESSION_OK && rest) {
        snprintf(where, sizeof(where), "%s:%u: ", path, ++number);
        status = add_line(plan, spec, strsep(&rest, "\n"), &options);
    }
    if (!status && plan->count == before)
        status = refuse("%s: contains no experiment", path);
    free(options.common);
    free(text);
    return status;
}

static int add_operand(struct plan *plan, const struct session_spec *spec, const char *operand,
                       bool quick)
{
    struct options options = { .where = "", .quick = quick };
    bool found;
    int status = add_named(plan, spec, operand, &options, &found);

    if (status || found)
        return status;
    if (!access(operand, F_OK))
        return add_sweep(plan, spec, operand, quick);
    return refuse_name("", operand, "experiment, group or file");
}

/* Every term must refer to an experiment of the plan. */
static int add_thresholds(struct plan *plan, const char *text)
{
    char error[512];

    if (!text)
        return SESSION_OK;
    if (thresholds_read(text, &plan->thresholds, error, sizeof(error)))
        return refuse("--fail-if %s", error);
    for (unsigned int i = 0; i < plan->thresholds.count; i++) {
        const char *name = plan->thresholds.terms[i].experiment;
        bool planned = false;

        for (unsigned int k = 0; k < plan->count; k++)
            planned |= !strcmp(plan->runs[k].experiment->name, name);
        if (!experiment_find(name))
            return refuse_name("--fail-if: ", name, "experiment");
        if (!planned)
            return refuse("--fail-if: '%s' is not among the experiments of this run", name);
    }
    return SESSION_OK;
}

int plan_make(const struct session_spec *spec, struct plan *out)
{
    char error[512];
    struct settings settings;
    int status = SESSION_OK;

    memset(out, 0, sizeof(*out));
    settings_init(&settings);
    if (settings_read(&settings, spec->words, spec->word_count, error, sizeof(error)))
        return refuse("%s", error);
    for (int i = 0; i < spec->operand_count && !status; i++)
        status = add_operand(out, spec, spec->operands[i], settings.quick);
    if (!spec->operand_count)
        status = add_operand(out, spec, "all", true);
    if (!status)
        status = add_thresholds(out, settings.fail_if);
    if (status)
        plan_free(out);
    return status;
}

void plan_free(struct plan *plan)
{
    for (unsigned int i = 0; i < plan->count; i++)
        free_words(&plan->runs[i]);
    free(plan->runs);
    thresholds_free(&plan->thresholds);
    memset(plan, 0, sizeof(*plan));
}
