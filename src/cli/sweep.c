/* SPDX-License-Identifier: BSD-2-Clause */
/* verbena sweep: replays the combinations that a file lists, several at a time, and keeps what is
 * done, so that it can be continued. */
#include "commands.h"
#include "launch.h"
#include "line.h"
#include "sweep_file.h"
#include "replay/generate.h"
#include "results/results.h"
#include "util/memory_file.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM  "verbena-replay"
#define JOBS_MAX 64
#define QUANTITY "time"

struct slot {
    pid_t pid; /* 0: free */
    const struct sweep_job *job;
    int output, errors;
};

struct sweeping {
    struct sweep sweep;
    struct results *results;
    const char *path; /* of the results */
    char program[PATH_MAX];
    struct slot slots[JOBS_MAX];
    unsigned int limit, running;
    size_t done, failed, mine;
    bool cannot_write;
};

/* ---- results ---- */

/* The chart says what all its replays share; the names of its curves, what differs. */
static void put_shared(struct metadata *settings, const struct sweep_job *job)
{
    for (int key = 0; key < SWEEP_KEYS; key++) {
        if (job->shared & 1u << key)
            results_metadata_set(settings, sweep_key_names[key], "%s", job->values[key]);
    }
    if (job->over_sizes)
        results_metadata_set(settings, "ranks", "%" PRIu64, job->ranks);
    else if (job->one_size)
        results_metadata_set(settings, "size", "%" PRIu64, job->size);
}

static struct experiment_result *chart_of(struct results *results, const struct sweep_job *job)
{
    const struct experiment_result *found = results_find(results, job->chart);
    struct experiment_result *chart;

    if (found)
        return &results->experiments[found - results->experiments];
    chart = results_add(results, job->chart, "replay", "Replays of schedules", "");
    put_shared(&chart->settings, job);
    return chart;
}

static struct series *curve_of(struct results *results, const struct sweep_job *job)
{
    struct experiment_result *chart = chart_of(results, job);
    const struct series *found = result_find(chart, job->curve, QUANTITY);

    if (found)
        return &chart->series[found - chart->series];
    return result_series(chart, job->curve, QUANTITY, "us", job->over_sizes ? "size" : "ranks",
                         job->over_sizes ? "B" : "", BETTER_LOWER);
}

static double axis_value(const struct sweep_job *job)
{
    return job->over_sizes ? job->size : job->ranks;
}

static bool is_done(const struct results *results, const struct sweep_job *job)
{
    const struct experiment_result *chart = results_find(results, job->chart);
    const struct series *curve = chart ? result_find(chart, job->curve, QUANTITY) : NULL;

    return curve && results_point_at(curve, axis_value(job));
}

static int compare_points(const void *a, const void *b)
{
    const struct point *x = a, *y = b;

    return x->x < y->x ? -1 : x->x > y->x;
}

/* Points come in the order in which replays end. */
static void add_point(struct sweeping *sweeping, const struct sweep_job *job, double us)
{
    struct series *curve = curve_of(sweeping->results, job);
    struct summary summary;

    histogram_of_values(&us, 1, &summary);
    results_series_add(curve, axis_value(job), &summary);
    qsort(curve->points, curve->count, sizeof(*curve->points), compare_points);
    if (sweeping->path && results_write_file(sweeping->results, sweeping->path) &&
        !sweeping->cannot_write) {
        cli_error("%s: %s", sweeping->path, strerror(errno));
        sweeping->cannot_write = true;
    }
}

/* ---- replays ---- */

static _Noreturn void write_schedule(const struct sweep_job *job, int to)
{
    struct generate_job schedule = { .ranks = job->ranks, .repeat = 1, .size = job->size };
    FILE *out = fdopen(to, "w");
    char error[256];

    _exit(!out || generate_write(job->pattern, &schedule, out, error, sizeof(error)) ||
          fclose(out));
}

/* Becomes the replay, whose input is a process that writes the schedule. */
static _Noreturn void replay(const struct sweeping *sweeping, const struct slot *slot)
{
    struct line line = { .count = 0 };
    int ends[2];
    pid_t writer;

    prctl(PR_SET_PDEATHSIG, SIGKILL); /* nothing is left behind if the sweep is killed */
    if (pipe(ends) || (writer = fork()) < 0)
        _exit(CLI_FAILED);
    if (!writer) {
        close(ends[0]);
        write_schedule(slot->job, ends[1]);
    }
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    dup2(slot->output, STDOUT_FILENO);
    dup2(slot->errors, STDERR_FILENO);
    line_add(&line, sweeping->program);
    line_add(&line, "-");
    sweep_job_options(slot->job, &line);
    line_add(&line, "--json");
    line_add(&line, "1");
    execv(sweeping->program, line.words);
    _exit(CLI_NOT_EXECUTABLE);
}

static int start(struct sweeping *sweeping, const struct sweep_job *job)
{
    struct slot *slot = sweeping->slots;

    while (slot->pid)
        slot++;
    slot->job = job;
    slot->output = memory_file("verbena-sweep", MFD_CLOEXEC);
    slot->errors = memory_file("verbena-sweep", MFD_CLOEXEC);
    fflush(NULL);
    slot->pid = slot->output < 0 || slot->errors < 0 ? -1 : fork();
    if (slot->pid < 0) {
        cli_error("cannot start a replay: %s", strerror(errno));
        slot->pid = 0;
        return -1;
    }
    if (!slot->pid)
        replay(sweeping, slot);
    sweeping->running++;
    return 0;
}

static void tell_failure(const struct slot *slot)
{
    char text[2048];
    ssize_t length = pread(slot->errors, text, sizeof(text) - 1, 0);

    text[length > 0 ? length : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    cli_error("%s, %s, %" PRIu64 " ranks, %" PRIu64 " bytes: %s", slot->job->chart,
              slot->job->curve, slot->job->ranks, slot->job->size,
              *text ? text : "the replay failed");
}

static void finish(struct sweeping *sweeping, struct slot *slot, int status)
{
    json_t *document = NULL, *total;

    if (!lseek(slot->output, 0, SEEK_SET))
        document = json_loadfd(slot->output, 0, NULL);
    total = json_object_get(document, "total_ns");
    if (status || !total) {
        tell_failure(slot);
        sweeping->failed++;
    } else {
        add_point(sweeping, slot->job, json_integer_value(total) / 1e3);
        sweeping->done++;
    }
    json_decref(document);
    close(slot->output);
    close(slot->errors);
    slot->pid = 0;
    sweeping->running--;
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r%zu of %zu replays ", sweeping->done + sweeping->failed, sweeping->mine);
}

static void wait_for_one(struct sweeping *sweeping)
{
    int status;
    pid_t pid = wait(&status);

    for (unsigned int i = 0; i < sweeping->limit; i++) {
        if (pid > 0 && sweeping->slots[i].pid == pid)
            finish(sweeping, &sweeping->slots[i], status);
    }
}

/* Replays what belongs to part k of n (from 1) and is not done. */
static void run(struct sweeping *sweeping, uint64_t part, uint64_t parts)
{
    struct sweep *sweep = &sweeping->sweep;
    bool *wanted = calloc(sweep->count, sizeof(*wanted));
    bool broken = !wanted;

    for (size_t i = 0; wanted && i < sweep->count; i++) {
        wanted[i] = i % parts == part - 1 && !is_done(sweeping->results, &sweep->jobs[i]);
        sweeping->mine += wanted[i];
        if (wanted[i])
            curve_of(sweeping->results, &sweep->jobs[i]); /* in the order of the file */
    }
    for (size_t i = 0; i < sweep->count && !broken && !sweeping->cannot_write; i++) {
        if (!wanted[i])
            continue;
        if (sweeping->running == sweeping->limit)
            wait_for_one(sweeping);
        broken = start(sweeping, &sweep->jobs[i]);
    }
    while (sweeping->running)
        wait_for_one(sweeping);
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r%40s\r", "");
    sweeping->failed += broken;
    free(wanted);
}

/* ---- the command ---- */

static void print_text(const struct sweeping *sweeping)
{
    const char *gap = "";

    for (unsigned int i = 0; i < sweeping->results->count; i++) {
        const struct experiment_result *chart = &sweeping->results->experiments[i];

        for (unsigned int k = 0; k < chart->count; k++) {
            const struct series *curve = &chart->series[k];

            printf("%s%s, %s\n%10s %14s\n", gap, chart->name, curve->name, curve->axis, "us");
            gap = "\n";
            for (unsigned int n = 0; n < curve->count; n++)
                printf("%10.0f %14.3f\n", curve->points[n].x, curve->points[n].y.median);
        }
    }
}

static bool same_settings(const struct metadata *a, const struct metadata *b)
{
    bool same = a->count == b->count;

    for (unsigned int i = 0; i < a->count && same; i++) {
        const char *value = results_metadata_get(b, a->rows[i].name);

        same = value && !strcmp(value, a->rows[i].value);
    }
    return same;
}

/* Points of a chart whose line has been changed meanwhile are not those that the file asks for. */
static int check_charts(const struct sweeping *sweeping, const struct results *planned)
{
    for (unsigned int i = 0; i < planned->count; i++) {
        const struct experiment_result *chart = &planned->experiments[i];
        const struct experiment_result *kept = results_find(sweeping->results, chart->name);

        if (kept && !same_settings(&chart->settings, &kept->settings)) {
            cli_error("%s: its chart %s was made from another line: give another --output",
                      sweeping->path, chart->name);
            return CLI_USAGE;
        }
    }
    return CLI_OK;
}

static int continue_results(struct sweeping *sweeping, struct results *planned)
{
    char error[512];
    int status;

    if (results_read(sweeping->path, &sweeping->results, error, sizeof(error))) {
        cli_error("%s", error);
        status = CLI_FAILED;
    } else {
        status = check_charts(sweeping, planned);
    }
    results_free(planned);
    return status;
}

static int open_results(struct sweeping *sweeping, const struct invocation *invocation)
{
    char date[64], *command = options_invocation_text(invocation, NULL);
    struct results *planned;

    results_now(date, sizeof(date));
    planned = results_new(VERBENA_VERSION, date, command ? command : "verbena sweep");
    planned->deterministic = true;
    results_metadata_set(&planned->machine, "clock", "virtual time");
    free(command);
    for (size_t i = 0; i < sweeping->sweep.count; i++)
        chart_of(planned, &sweeping->sweep.jobs[i]);
    sweeping->path = option_value(invocation, "output");
    if (sweeping->path && !access(sweeping->path, F_OK))
        return continue_results(sweeping, planned);
    sweeping->results = planned;
    return CLI_OK;
}

static int read_part(const struct invocation *invocation, uint64_t *part, uint64_t *parts)
{
    const char *text = option_value_or_default(invocation, "part"), *end;

    if (!option_read_number(text, &end, part) || *end != '/' ||
        !option_read_number(end + 1, &end, parts) || *end || !*part || *part > *parts)
        return cli_usage_error(invocation->command, "--part takes K/N, such as 1/4, not '%s'",
                               text);
    return CLI_OK;
}

static int list_jobs(const struct sweep *sweep)
{
    for (size_t i = 0; i < sweep->count; i++)
        printf("%s, %s: %s, %" PRIu64 " ranks, %" PRIu64 " bytes, %s\n", sweep->jobs[i].chart,
               sweep->jobs[i].curve, sweep->jobs[i].pattern->name, sweep->jobs[i].ranks,
               sweep->jobs[i].size, sweep->jobs[i].values[SWEEP_ADAPTER]);
    return CLI_OK;
}

int cli_sweep(const struct invocation *invocation)
{
    static struct sweeping sweeping;
    char error[1024];
    uint64_t part, parts;
    int status;

    if (invocation->operand_count != 1)
        return cli_usage_error(invocation->command, "give one file, not %d",
                               invocation->operand_count);
    if (option_value(invocation, "json") && option_value(invocation, "csv"))
        return cli_usage_error(invocation->command, "give --json or --csv, not both");
    if (read_part(invocation, &part, &parts))
        return CLI_USAGE;
    if (sweep_file_read(&sweeping.sweep, invocation->operands[0], error, sizeof(error)))
        return cli_usage_error(invocation->command, "%s", error);
    if (option_value(invocation, "list"))
        return list_jobs(&sweeping.sweep);
    if (!launch_program(PROGRAM, sweeping.program))
        return CLI_FAILED;
    status = open_results(&sweeping, invocation);
    if (status)
        return status;
    sweeping.limit = option_number(invocation, "jobs", 0);
    if (!sweeping.limit)
        sweeping.limit = sysconf(_SC_NPROCESSORS_ONLN);
    if (sweeping.limit > JOBS_MAX)
        sweeping.limit = JOBS_MAX;
    run(&sweeping, part, parts);
    if (option_value(invocation, "json"))
        results_write_json(sweeping.results, stdout);
    else if (option_value(invocation, "csv"))
        results_write_csv(sweeping.results, stdout);
    else
        print_text(&sweeping);
    status = sweeping.failed || sweeping.cannot_write ? CLI_FAILED : CLI_OK;
    results_free(sweeping.results);
    sweep_file_free(&sweeping.sweep);
    return status;
}
