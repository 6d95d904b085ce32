/* SPDX-License-Identifier: BSD-2-Clause */
/* verbena reproduce: the papers' values on modelled adapters. */
#include "commands.h"
#include "papers.h"
#include "bench/report.h"
#include "report.h"
#include "reproduce/reproduce.h"
#include "results/schema.h"
#include "sim/adapter/parameters.h"
#include "util/file.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LONGER     5   /* times the warm-up and iterations of a check of convergence */
#define MOVED_MOST 1.0 /* percent by which it may move a value */

static int make_directory(const char *path)
{
    if (!mkdir(path, 0777) || errno == EEXIST)
        return CLI_OK;
    cli_error("%s: %s", path, strerror(errno));
    return CLI_FAILED;
}

static int make_directories(const char *path, char *runs)
{
    if (make_directory(path))
        return CLI_FAILED;
    if (snprintf(runs, PATH_MAX, "%s/runs", path) >= PATH_MAX) {
        cli_error("%s: %s", path, strerror(ENAMETOOLONG));
        return CLI_FAILED;
    }
    return make_directory(runs);
}

static int read_papers(const struct invocation *invocation, struct paper_db *db)
{
    char error[512];

    if (papers_read(invocation, db))
        return CLI_FAILED;
    if (!invocation->operand_count)
        paper_db_select_all(db);
    for (int i = 0; i < invocation->operand_count; i++) {
        if (paper_db_select(db, invocation->operands[i], error, sizeof(error))) {
            paper_db_free(db);
            return cli_usage_error(invocation->command, "%s", error);
        }
    }
    return CLI_OK;
}

/* Rejects invalid settings before anything runs. */
static int check_adapters(const struct invocation *invocation, const struct jobs *jobs)
{
    char path[PATH_MAX], error[PATH_MAX + 512];
    struct parameters parameters;

    for (unsigned int i = 0; i < jobs->count; i++) {
        const struct job *job = &jobs->list[i];

        if (parameters_find(job->adapter, path, sizeof(path), error, sizeof(error)) ||
            parameters_read(path, job->set, &parameters, error, sizeof(error)))
            return cli_usage_error(invocation->command, "%s", error);
    }
    return CLI_OK;
}

static void show_progress(unsigned int done, unsigned int all, double seconds,
                          const struct job *last)
{
    bool terminal = isatty(STDERR_FILENO);
    char left[48];

    if (last->failure)
        fprintf(stderr, "%s%s failed: %s\n", terminal ? "\r\033[K" : "", last->name, last->failure);
    if (!terminal)
        return;
    fprintf(stderr, "\r\033[K[%u/%u] %s%s ...", done, all, last->name,
            report_time_left(seconds, done, all, left, sizeof(left)));
    if (done == all)
        fputs("\r\033[K", stderr);
}

/* Files written beside runs/; the last is the page. */
static const char *const written[] = { "results.json", "results.csv", "curves.csv", "report.html" };
enum { WRITTEN_JSON, WRITTEN_ROWS, WRITTEN_CURVES, WRITTEN_PAGE, WRITTEN_COUNT };

static int write_one(const struct reproduction *reproduction, json_t *document, int which,
                     const char *path)
{
    struct file_text file;
    FILE *out = file_begin(&file);

    if (!out) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    if (which == WRITTEN_JSON) {
        json_dumpf(document, out, JSON_INDENT(1) | JSON_REAL_PRECISION(RESULTS_DIGITS));
        fputc('\n', out);
    } else if (which == WRITTEN_ROWS) {
        document_csv(reproduction, out);
    } else {
        document_curves_csv(document, out);
    }
    if (!file_end(&file, path))
        return CLI_OK;
    cli_error("%s: %s", file_shown(path), strerror(errno));
    return CLI_FAILED;
}

static int write_files(const struct reproduction *reproduction, json_t *document,
                       const char *directory)
{
    char path[PATH_MAX];
    int status = CLI_OK;

    for (int i = 0; i < WRITTEN_COUNT && !status; i++) {
        if (snprintf(path, sizeof(path), "%s/%s", directory, written[i]) >= PATH_MAX) {
            cli_error("%s: %s", directory, strerror(ENAMETOOLONG));
            return CLI_FAILED;
        }
        status = i == WRITTEN_PAGE ? report_reproduction(document, path)
                                   : write_one(reproduction, document, i, path);
    }
    return status;
}

/* The adapter file must not be one of the output files. */
static int check_adapter_file(const struct invocation *invocation)
{
    const char *directory = option_value_or_default(invocation, "output");
    const char *adapter = option_value(invocation, "adapter");
    char path[PATH_MAX];

    for (int i = 0; adapter && i < WRITTEN_COUNT; i++) {
        snprintf(path, sizeof(path), "%s/%s", directory, written[i]);
        if (file_same(path, adapter))
            return cli_usage_error(invocation->command,
                                   "--output would overwrite --adapter %s: choose another "
                                   "directory",
                                   adapter);
    }
    return CLI_OK;
}

static bool writes_to_stdout(const struct invocation *invocation)
{
    return file_is_stdout(option_value(invocation, "output"));
}

static int conclude(const struct invocation *invocation, const struct reproduction *reproduction)
{
    const char *directory = option_value_or_default(invocation, "output");
    char *command = options_invocation_text(invocation, "output"), date[32];
    json_t *document;
    int status;

    results_now(date, sizeof(date));
    document = document_json(reproduction, VERBENA_VERSION, date, command);
    if (writes_to_stdout(invocation))
        status = write_one(reproduction, document, WRITTEN_JSON, directory);
    else
        status = write_files(reproduction, document, directory);
    json_decref(document);
    free(command);
    reproduce_print(reproduction, writes_to_stdout(invocation) ? stderr : stdout);
    if (status)
        return status;
    if (!writes_to_stdout(invocation))
        printf("report: %s/report.html\n", directory);
    if (option_value(invocation, "check-convergence"))
        return reproduce_print_moved(reproduction, MOVED_MOST,
                                     writes_to_stdout(invocation) ? stderr : stdout)
                   ? CLI_LIMIT
                   : CLI_OK;
    return option_value(invocation, "strict") &&
                   reproduce_count(reproduction, VERDICT_MATCHES) < reproduction->count
               ? CLI_LIMIT
               : CLI_OK;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *ftw)
{
    return remove(path);
}

/* The results of the commands; of a reproduction on standard output, they are temporary. */
static int make_runs(const struct invocation *invocation, char *directory, char *runs)
{
    const char *path = option_value_or_default(invocation, "output");

    if (!writes_to_stdout(invocation))
        return make_directories(path, runs);
    strcpy(directory, "/tmp/verbena-reproduce-XXXXXX");
    if (mkdtemp(directory))
        return make_directories(directory, runs);
    cli_error("%s: %s", directory, strerror(errno));
    *directory = '\0';
    return CLI_FAILED;
}

static int run_and_evaluate(const struct invocation *invocation, const struct paper_db *db,
                            const struct variation *change)
{
    static const struct variation none;
    struct jobs jobs = { 0 };
    struct evaluation now = {
        .jobs = &jobs,
        .variation = change,
        .quick = option_value(invocation, "quick"),
        .tolerance = strtod(option_value_or_default(invocation, "tolerance"), NULL),
    };
    struct evaluation before = now;
    bool changed = change->adapter || change->set || change->longer;
    char temporary[32] = "", runs[PATH_MAX];
    struct jobs_spec spec = {
        .directory = runs,
        .at_once = option_number(invocation, "jobs", 0),
        .limit = option_number(invocation, "limit", 0),
        .progress = show_progress,
    };
    struct reproduction reproduction;
    int status, signal;

    before.variation = &none;
    reproduce_add_jobs(db, &now, &jobs);
    if (changed)
        reproduce_add_jobs(db, &before, &jobs);
    status = check_adapters(invocation, &jobs);
    if (!status)
        status = make_runs(invocation, temporary, runs);
    if (!status && (signal = jobs_run(&jobs, &spec)))
        status = CLI_SIGNALLED + signal;
    if (!status) {
        reproduce_evaluate(db, &now, changed ? &before : NULL, &reproduction);
        status = conclude(invocation, &reproduction);
        reproduce_free(&reproduction);
    }
    jobs_free(&jobs);
    if (*temporary)
        nftw(temporary, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    return status;
}

int cli_reproduce(const struct invocation *invocation)
{
    const char *adapter = option_value(invocation, "adapter");
    struct variation change = { .set = option_value(invocation, "set") };
    bool converges = option_value(invocation, "check-convergence");
    char path[PATH_MAX];
    struct paper_db db;
    int status;

    if (check_adapter_file(invocation))
        return CLI_USAGE;
    if (converges && (adapter || change.set))
        return cli_usage_error(invocation->command,
                               "--check-convergence is about the papers' adapters: it does not go "
                               "with --adapter or --set");
    change.longer = converges ? LONGER : 0;
    /* Commands run in another directory: make the path absolute. */
    change.adapter = adapter && !access(adapter, R_OK) && realpath(adapter, path) ? path : adapter;
    status = read_papers(invocation, &db);
    if (status)
        return status;
    status = run_and_evaluate(invocation, &db, &change);
    paper_db_free(&db);
    return status;
}
