/* SPDX-License-Identifier: BSD-2-Clause */
#include "calibrate/runs.h"

#include "reproduce/jobs.h"
#include "results/allocate.h"
#include "util/file.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLOWEST_RUN 600 /* seconds; a run that takes longer hangs */

int runs_open(struct runs *runs, char *error, size_t size)
{
    const char *base = getenv("TMPDIR");

    if (snprintf(runs->directory, sizeof(runs->directory), "%s/verbena-calibrate-XXXXXX",
                 base && *base ? base : "/tmp") < (int)sizeof(runs->directory) &&
        mkdtemp(runs->directory))
        return 0;
    snprintf(error, size, "%s: %s", runs->directory, strerror(errno));
    runs->directory[0] = '\0';
    return -1;
}

static void empty_directory(const struct runs *runs)
{
    DIR *directory = opendir(runs->directory);
    struct dirent *entry;

    while (directory && (entry = readdir(directory)))
        unlinkat(dirfd(directory), entry->d_name, 0);
    if (directory)
        closedir(directory);
}

void runs_close(struct runs *runs)
{
    known_free(&runs->known);
    if (!*runs->directory)
        return;
    empty_directory(runs);
    rmdir(runs->directory);
    runs->directory[0] = '\0';
}

/* jobs_run() reports progress without a context. */
static const char *stage;

static void show_progress(unsigned int done, unsigned int all, double seconds,
                          const struct job *last)
{
    if (!isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r\033[K%s: run %u of %u, about %.0f s left", stage, done, all,
            seconds / done * (all - done));
    if (done == all)
        fputs("\r\033[K", stderr);
}

static int write_failed(struct runs *runs, const char *path)
{
    snprintf(runs->failure, sizeof(runs->failure), "%.400s: %s", path, strerror(errno));
    return -1;
}

static int write_adapter(struct runs *runs, const double *values, char *path)
{
    struct file_text file;
    FILE *out = file_begin(&file);

    snprintf(path, PATH_MAX, "%.3900s/%u.adapter", runs->directory, runs->serial);
    if (!out)
        return write_failed(runs, path);
    keys_write_trial(runs->keys, values, out);
    return file_end(&file, path) ? write_failed(runs, path) : 0;
}

/* Adds the job that runs a sweep with this text. */
static int add_job(struct runs *runs, struct jobs *jobs, const char *adapter, const char *text)
{
    char path[PATH_MAX], line[64], name[32];

    snprintf(name, sizeof(name), "%u", runs->serial++);
    snprintf(line, sizeof(line), "bench ./%s.sweep", name);
    snprintf(path, sizeof(path), "%.3900s/%s.sweep", runs->directory, name);
    if (file_write(path, text, strlen(text)))
        return write_failed(runs, path);
    jobs_add(jobs, "run", name, adapter, NULL, line);
    return 0;
}

static int run_jobs(struct runs *runs, struct jobs *jobs, const char *what)
{
    struct jobs_spec spec = { .directory = runs->directory,
                              .at_once = runs->at_once,
                              .limit = SLOWEST_RUN,
                              .progress = show_progress };
    int signal;

    stage = what;
    signal = jobs_run(jobs, &spec);
    for (unsigned int i = 0; i < jobs->count; i++) {
        if (jobs->list[i].failure)
            snprintf(runs->failure, sizeof(runs->failure), "%s", jobs->list[i].failure);
    }
    empty_directory(runs);
    return signal;
}

/* ---- trials ---- */

/* Experiments of a trial that run in one process. */
struct part {
    const struct runs_trial *trial;
    unsigned int count;
    unsigned int *experiments;
};

struct parts {
    struct jobs jobs;
    struct part *list; /* by job */
};

static const char *line_of(const struct runs *runs, const struct runs_trial *trial,
                           unsigned int experiment)
{
    const struct data_experiment *entry = &runs->data->experiments[experiment];

    return trial->whole ? entry->whole : entry->brief;
}

static int add_part(struct runs *runs, struct parts *parts, const char *adapter,
                    const struct runs_trial *trial, const unsigned int *experiments,
                    unsigned int count)
{
    struct part part = { trial, count, allocate_zeroed(count * sizeof(*experiments)) };
    struct file_text file;
    FILE *out = data_begin_lines(&file);
    char *lines;
    int status;

    for (unsigned int i = 0; i < count; i++) {
        part.experiments[i] = experiments[i];
        fputs(line_of(runs, trial, experiments[i]), out);
    }
    lines = data_take_lines(&file);
    parts->list = allocate_one_more(parts->list, parts->jobs.count, sizeof(*parts->list));
    parts->list[parts->jobs.count] = part;
    status = add_job(runs, &parts->jobs, adapter, lines);
    if (status)
        free(part.experiments);
    free(lines);
    return status;
}

/* Whether one of these experiments has the same line: it was measured more than once. */
static bool has_line(const struct runs *runs, const struct runs_trial *trial,
                     const unsigned int *experiments, unsigned int count, unsigned int experiment)
{
    for (unsigned int i = 0; i < count; i++) {
        if (!strcmp(line_of(runs, trial, experiments[i]), line_of(runs, trial, experiment)))
            return true;
    }
    return false;
}

/* Takes what is known, and adds jobs for the rest: one, or one for each experiment. */
static int add_trial(struct runs *runs, struct parts *parts, const struct runs_trial *trial,
                     bool apart)
{
    const struct data *data = runs->data;
    unsigned int *missing = allocate_zeroed(data->experiment_count * sizeof(*missing) + 1);
    unsigned int count = 0, step;
    char adapter[PATH_MAX];
    int status = 0;

    for (unsigned int i = 0; i < data->point_count; i++)
        trial->out[i] = NAN;
    for (unsigned int i = 0; i < data->experiment_count; i++) {
        if (trial->experiments[i] &&
            !known_find(&runs->known, i, trial->whole, trial->values, trial->out) &&
            !has_line(runs, trial, missing, count, i))
            missing[count++] = i;
    }
    step = apart ? 1 : count;
    if (count)
        status = write_adapter(runs, trial->values, adapter);
    for (unsigned int i = 0; !status && i < count; i += step)
        status = add_part(runs, parts, adapter, trial, missing + i, step);
    free(missing);
    return status;
}

static void take_result(struct runs *runs, const struct runs_trial *trial, unsigned int experiment,
                        const struct experiment_result *result)
{
    const struct data_experiment *entry = &runs->data->experiments[experiment];

    for (unsigned int i = entry->first_point; i < entry->first_point + entry->count; i++)
        trial->out[i] = data_find(&runs->data->points[i], result);
    known_keep(&runs->known, experiment, trial->whole, trial->values, trial->out);
}

static void take_results(struct runs *runs, const struct part *part, const struct results *results)
{
    for (unsigned int i = 0; i < part->count && i < results->count; i++) {
        for (unsigned int k = part->experiments[i]; k < runs->data->experiment_count; k++) {
            if (part->trial->experiments[k] &&
                has_line(runs, part->trial, &part->experiments[i], 1, k))
                take_result(runs, part->trial, k, &results->experiments[i]);
        }
    }
}

/* Few trials are divided, so that all cores have work. */
int runs_evaluate(struct runs *runs, const struct runs_trial *trials, unsigned int count,
                  const char *what)
{
    bool apart = count < 2 * (runs->at_once ? runs->at_once : jobs_cores());
    struct parts parts = { 0 };
    int status = 0;

    for (unsigned int i = 0; !status && i < count; i++)
        status = add_trial(runs, &parts, &trials[i], apart);
    if (!status)
        status = run_jobs(runs, &parts.jobs, what);
    for (unsigned int i = 0; i < parts.jobs.count; i++) {
        if (!status && parts.jobs.list[i].results)
            take_results(runs, &parts.list[i], parts.jobs.list[i].results);
        free(parts.list[i].experiments);
    }
    runs->done += count;
    jobs_free(&parts.jobs);
    free(parts.list);
    return status;
}

int runs_sweep(struct runs *runs, const char *lines, const double *const *values,
               unsigned int count, const char *what, struct results **out)
{
    struct jobs jobs = { 0 };
    char adapter[PATH_MAX];
    int status = 0;

    for (unsigned int i = 0; !status && i < count; i++) {
        status = write_adapter(runs, values[i], adapter);
        if (!status)
            status = add_job(runs, &jobs, adapter, lines);
    }
    if (!status)
        status = run_jobs(runs, &jobs, what);
    for (unsigned int i = 0; i < count; i++) {
        out[i] = NULL;
        if (!status) {
            out[i] = jobs.list[i].results;
            jobs.list[i].results = NULL;
        }
    }
    jobs_free(&jobs);
    return status;
}
