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

/* A part of a trial: every n-th of its experiments, in one process. */
struct part {
    const struct runs_trial *trial;
    unsigned int first, step; /* among the chosen experiments */
};

/* Calls 'visit' with each experiment of the part. */
static void each_experiment(const struct runs *runs, const struct part *part,
                            void (*visit)(unsigned int experiment, void *context), void *context)
{
    unsigned int chosen = 0;

    for (unsigned int i = 0; i < runs->data->experiment_count; i++) {
        if (part->trial->experiments[i] && chosen++ % part->step == part->first)
            visit(i, context);
    }
}

struct text {
    const struct data *data;
    bool whole;
    FILE *out;
};

static void put_line(unsigned int experiment, void *context)
{
    const struct text *text = context;
    const struct data_experiment *entry = &text->data->experiments[experiment];

    fputs(text->whole ? entry->whole : entry->brief, text->out);
}

struct taking {
    const struct data *data;
    const struct results *results;
    unsigned int next; /* experiment of the results */
    double *out;
};

static void take_values(unsigned int experiment, void *context)
{
    struct taking *taking = context;
    const struct data_experiment *entry = &taking->data->experiments[experiment];
    const struct experiment_result *result;

    if (taking->next == taking->results->count)
        return;
    result = &taking->results->experiments[taking->next++];
    for (unsigned int i = entry->first_point; i < entry->first_point + entry->count; i++)
        taking->out[i] = data_find(&taking->data->points[i], result);
}

static int add_part(struct runs *runs, struct jobs *jobs, const char *adapter,
                    const struct part *part)
{
    struct file_text file;
    struct text text = { runs->data, part->trial->whole, file_begin(&file) };
    int status;

    if (!text.out)
        return write_failed(runs, runs->directory);
    each_experiment(runs, part, put_line, &text);
    fflush(text.out);
    status = file.size ? add_job(runs, jobs, adapter, file.text) : 1;
    file_drop(&file);
    return status;
}

/* A lone trial is divided among the cores. */
static int add_trials(struct runs *runs, const struct runs_trial *trials, unsigned int count,
                      struct jobs *jobs, struct part *parts)
{
    unsigned int all = runs->at_once ? runs->at_once : jobs_cores();
    unsigned int step = count < all ? (all + count - 1) / count : 1;
    char adapter[PATH_MAX];

    for (unsigned int i = 0; i < count; i++) {
        if (write_adapter(runs, trials[i].values, adapter))
            return -1;
        for (unsigned int k = 0; k < step; k++) {
            struct part part = { &trials[i], k, step };
            int status = add_part(runs, jobs, adapter, &part);

            if (status < 0)
                return -1;
            if (!status)
                parts[jobs->count - 1] = part;
        }
        for (unsigned int k = 0; k < runs->data->point_count; k++)
            trials[i].out[k] = NAN;
    }
    return 0;
}

int runs_evaluate(struct runs *runs, const struct runs_trial *trials, unsigned int count,
                  const char *what)
{
    struct part *parts = allocate_zeroed(count * (jobs_cores() + runs->at_once) * sizeof(*parts));
    struct jobs jobs = { 0 };
    int status;

    status = add_trials(runs, trials, count, &jobs, parts);
    if (!status)
        status = run_jobs(runs, &jobs, what);
    for (unsigned int i = 0; !status && i < jobs.count; i++) {
        struct taking taking = { .data = runs->data,
                                 .results = jobs.list[i].results,
                                 .out = parts[i].trial->out };

        if (taking.results)
            each_experiment(runs, &parts[i], take_values, &taking);
    }
    runs->done += count;
    jobs_free(&jobs);
    free(parts);
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
