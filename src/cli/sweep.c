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

static struct series *curve_of(struct results *results, const struct sweep_job *job)
{
    const struct experiment_result *found = results_find(results, job->chart);
    struct experiment_result *chart =
        found ? &results->experiments[found - results->experiments]
              : results_add(results, job->chart, "replay", "Replays of schedules", "");

    for (unsigned int i = 0; i < chart->count; i++) {
        if (!strcmp(chart->series[i].name, job->curve))
            return &chart->series[i];
    }
    return result_series(chart, job->curve, QUANTITY, "us", job->over_sizes ? "size" : "ranks",
                         job->over_sizes ? "B" : "", BETTER_LOWER);
}

static double axis_value(const struct sweep_job *job)
{
    return job->over_sizes ? job->size : job->ranks;
}

static bool is_done(struct results *results, const struct sweep_job *job)
{
    return results_point_at(curve_of(results, job), axis_value(job));
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

static void add_option(struct line *line, const char *name, const char *value)
{
    if (value) {
        line_add(line, name);
        line_add(line, value);
    }
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
    add_option(&line, sweeping->program, "-");
    add_option(&line, "--adapter", slot->job->adapter);
    add_option(&line, "--fabric-shape", slot->job->shape);
    add_option(&line, "--set", slot->job->set);
    add_option(&line, "--ranks-per-node", slot->job->ranks_per_node);
    add_option(&line, "--json", "1");
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
    for (unsigned int i = 0; i < sweeping->results->count; i++) {
        const struct experiment_result *chart = &sweeping->results->experiments[i];

        for (unsigned int k = 0; k < chart->count; k++) {
            const struct series *curve = &chart->series[k];

            printf("%s%s, %s\n%10s %14s\n", i + k ? "\n" : "", chart->name, curve->name,
                   curve->axis, "us");
            for (unsigned int n = 0; n < curve->count; n++)
                printf("%10.0f %14.3f\n", curve->points[n].x, curve->points[n].y.median);
        }
    }
}

static int open_results(struct sweeping *sweeping, const struct invocation *invocation)
{
    char error[512], date[64], *command;

    sweeping->path = option_value(invocation, "output");
    if (sweeping->path && !access(sweeping->path, F_OK)) {
        if (!results_read(sweeping->path, &sweeping->results, error, sizeof(error)))
            return CLI_OK;
        cli_error("%s", error);
        return CLI_FAILED;
    }
    results_now(date, sizeof(date));
    command = options_invocation_text(invocation, NULL);
    sweeping->results = results_new(VERBENA_VERSION, date, command ? command : "verbena sweep");
    sweeping->results->deterministic = true;
    results_metadata_set(&sweeping->results->machine, "clock", "virtual time");
    free(command);
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
               sweep->jobs[i].size, sweep->jobs[i].adapter);
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
    if (read_part(invocation, &part, &parts))
        return CLI_USAGE;
    if (sweep_file_read(&sweeping.sweep, invocation->operands[0], error, sizeof(error)))
        return cli_usage_error(invocation->command, "%s", error);
    if (option_value(invocation, "list"))
        return list_jobs(&sweeping.sweep);
    if (!launch_program(PROGRAM, sweeping.program) || open_results(&sweeping, invocation))
        return CLI_FAILED;
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
