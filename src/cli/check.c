/* SPDX-License-Identifier: BSD-2-Clause */
/* verbena check: run programs again and again in virtual time, each time a little differently,
 * until one run shows a bug. */
#include "check_report.h"
#include "commands.h"
#include "faultplan.h"
#include "launch.h"
#include "start.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEPARATOR      ":::"
#define JOBS_MAX       64
#define SHOWN_LINES    12
#define SHRINK_SECONDS 10 /* for the times of the adapter */
#define SHOWN_BYTES    4096

/* A run that is under way, or has ended. */
struct job {
    pid_t pid;
    struct check_variation variation;
    struct check_verdict *verdict; /* in memory that the child shares */
};

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
    interrupted = signal;
}

/* ---- jobs ---- */

static bool start_job(const struct check_search *search, struct job *job, unsigned number)
{
    *job->verdict = (struct check_verdict){ 0 };
    job->pid = fork();
    if (job->pid)
        return job->pid > 0;
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(check_run(search, &job->variation, number, job->verdict) ? CLI_OK : CLI_FAILED);
}

/* Runs one variation, and waits for it. */
static bool still_fails(const struct check_search *search, struct job *job,
                        const struct check_variation *variation, const char *kind)
{
    job->variation = *variation;
    return start_job(search, job, 0) && waitpid(job->pid, NULL, 0) == job->pid &&
           job->verdict->failed && !strcmp(job->verdict->kind, kind);
}

/* ---- after a failure ---- */

/* Takes out the setting that begins at `at`. */
static void remove_setting(struct check_variation *variation, size_t at)
{
    char *from = variation->settings + at, *next = strchr(from, ';');

    if (next)
        memmove(from, next + 1, strlen(next));
    else
        variation->settings[at ? at - 1 : 0] = '\0';
}

static void shrink_settings(const struct check_search *search, struct job *job,
                            struct check_variation *failing, const char *kind)
{
    struct check_variation trial = *failing;
    uint64_t begin = now_ns();
    size_t at = 0;

    *trial.settings = '\0';
    if (still_fails(search, job, &trial, kind)) {
        *failing = trial;
        return;
    }
    while (failing->settings[at] && check_seconds_since(begin) < SHRINK_SECONDS && !interrupted) {
        trial = *failing;
        remove_setting(&trial, at);
        if (still_fails(search, job, &trial, kind))
            *failing = trial;
        else
            at += strcspn(failing->settings + at, ";");
        at += failing->settings[at] == ';';
    }
}

/* Takes out of the variation whatever the failure does not need. */
static void shrink(const struct check_search *search, struct job *job,
                   struct check_variation *failing, const char *kind)
{
    struct check_variation trial;

    if (*failing->settings)
        shrink_settings(search, job, failing, kind);
    trial = *failing;
    trial.first = 0;
    if (failing->first && still_fails(search, job, &trial, kind))
        *failing = trial;
    trial = *failing;
    *trial.faults = '\0';
    if (*failing->faults && still_fails(search, job, &trial, kind))
        *failing = trial;
    for (unsigned i = 0; i < failing->rows;) {
        trial = *failing;
        memmove(trial.row[i], trial.row[i + 1], (--trial.rows - i) * sizeof(trial.row[0]));
        if (still_fails(search, job, &trial, kind))
            *failing = trial;
        else
            i++;
    }
}

/* The last lines that a program wrote. */
static void show_output(const struct check_search *search, unsigned number, unsigned program)
{
    char path[PATH_MAX], text[SHOWN_BYTES + 1], *from;
    FILE *file;
    size_t length;

    check_output_path(search, number, program, path);
    file = fopen(path, "re");
    if (!file)
        return;
    if (fseek(file, -SHOWN_BYTES, SEEK_END))
        rewind(file);
    length = fread(text, 1, SHOWN_BYTES, file);
    fclose(file);
    text[length] = '\0';
    from = text + length;
    for (int lines = 0; from > text && lines <= SHOWN_LINES; from--)
        lines += from[-1] == '\n';
    from += *from && from != text;
    if (*from)
        printf("--- %s, the end of its output:\n%s%s", search->commands[program], from,
               text[length - 1] == '\n' ? "" : "\n");
}

/* Runs the failing variation once more, with a trace, and keeps what there is to see. */
static void keep_report(const struct check_search *search, struct job *job,
                        const struct check_variation *failing, const struct check_verdict *verdict,
                        const char *directory)
{
    static struct check_search traced;
    char trace[PATH_MAX];

    check_trace_path(directory, trace);
    traced = *search;
    traced.trace = trace;
    if (!still_fails(&traced, job, failing, verdict->kind))
        cli_error("the run with a trace did not fail");
    if (check_report(search, failing, verdict, 0, directory))
        cli_error("%s: %s", directory, strerror(errno));
    else
        printf("Report: %s/index.html, with a trace for Perfetto\n", directory);
}

static void report_failure(const struct check_search *search, struct job *job, unsigned number,
                           const char *directory)
{
    struct check_verdict verdict = *job->verdict;
    struct check_variation failing = job->variation;

    printf("seed %llu: %s: %s\n", (unsigned long long)failing.seed, verdict.kind, verdict.reason);
    for (unsigned i = 0; i < search->programs; i++)
        show_output(search, number, i);
    fflush(stdout);
    shrink(search, job, &failing, verdict.kind);
    printf("What it takes to fail:\n");
    check_write_variation(stdout, search, &failing);
    if (directory)
        keep_report(search, job, &failing, &verdict, directory);
    printf("Again: add --seed %llu --runs 1\n", (unsigned long long)failing.seed);
}

/* ---- the search ---- */

struct progress {
    uint64_t first, runs, started, ended;
    uint64_t begin_ns;
    double time; /* to search, 0: not limited */
    FILE *junit;
    const char *report; /* directory, or NULL */
    bool failed;
    bool broken; /* a run could not be started */
};

static bool is_over(const struct progress *progress)
{
    return interrupted || progress->failed || progress->broken ||
           progress->started == progress->runs ||
           (progress->time > 0 && check_seconds_since(progress->begin_ns) > progress->time);
}

static void note_junit(FILE *file, const struct job *job)
{
    if (!file)
        return;
    fprintf(file, "  <testcase classname=\"verbena.check\" name=\"seed %llu\" time=\"%.3f\"",
            (unsigned long long)job->variation.seed, job->verdict->seconds);
    if (job->verdict->failed) {
        fprintf(file, "><failure type=\"%s\" message=\"", job->verdict->kind);
        check_write_escaped(file, job->verdict->reason);
        fprintf(file, "\"/></testcase>\n");
    } else {
        fprintf(file, "/>\n");
    }
}

static void show_progress(const struct progress *progress)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r%llu runs, %.1f a second ", (unsigned long long)progress->ended,
                progress->ended / check_seconds_since(progress->begin_ns));
}

/* Reaps one job; returns its index, -1: none is left. */
static int reap(struct job *jobs, unsigned count, int *status)
{
    pid_t pid;

    do
        pid = wait(status);
    while (pid < 0 && errno == EINTR && !interrupted);
    for (unsigned i = 0; pid > 0 && i < count; i++) {
        if (jobs[i].pid == pid)
            return i;
    }
    return -1;
}

/* Starts as many runs as there are free jobs. Returns how many that is. */
static unsigned fill(const struct check_search *search, struct progress *progress, struct job *jobs,
                     unsigned count)
{
    unsigned started = 0;

    for (unsigned i = 0; i < count && !is_over(progress); i++) {
        if (jobs[i].pid)
            continue;
        check_vary(search, progress->first + progress->started++, &jobs[i].variation);
        progress->broken = !start_job(search, &jobs[i], i);
        started += !progress->broken;
    }
    return started;
}

static void search_seeds(const struct check_search *search, struct progress *progress,
                         struct job *jobs, unsigned count)
{
    unsigned busy = 0;
    int found, status;

    for (unsigned i = 0; i < count; i++)
        jobs[i].pid = 0;
    for (;;) {
        busy += fill(search, progress, jobs, count);
        found = busy ? reap(jobs, count, &status) : -1;
        if (found < 0)
            return;
        busy--;
        jobs[found].pid = 0;
        progress->broken |= !interrupted && (!WIFEXITED(status) || WEXITSTATUS(status));
        if (progress->broken)
            continue;
        progress->ended++;
        note_junit(progress->junit, &jobs[found]);
        show_progress(progress);
        if (jobs[found].verdict->failed && !interrupted) {
            progress->failed = true;
            while (busy && reap(jobs, count, &status) >= 0)
                busy--;
            if (isatty(STDERR_FILENO))
                fprintf(stderr, "\n");
            report_failure(search, &jobs[found], found, progress->report);
            return;
        }
    }
}

/* A search that has found a bug has spent some of its time on the report. */
static void print_end(const struct progress *progress)
{
    double seconds = check_seconds_since(progress->begin_ns);

    printf("%llu run%s from seed %llu in %.1f s", (unsigned long long)progress->ended,
           progress->ended == 1 ? "" : "s", (unsigned long long)progress->first, seconds);
    if (!progress->failed)
        printf(", %.1f a second", progress->ended / seconds);
    printf(": %s\n", progress->failed   ? "a bug"
                     : interrupted      ? "interrupted"
                     : progress->broken ? "a run could not be started"
                                        : "no bug found");
}

/* ---- the command ---- */

static void join(char **words, char *text, size_t size)
{
    size_t used = 0;

    for (; *words && used < size; words++)
        used += snprintf(text + used, size - used, "%s%s", used ? " " : "", *words);
}

static int split_programs(const struct invocation *invocation, struct check_search *search)
{
    char **word = invocation->operands, **end = word + invocation->operand_count;

    while (word < end) {
        if (search->programs == CHECK_PROGRAMS_MAX)
            return cli_usage_error(invocation->command, "more than %d programs",
                                   CHECK_PROGRAMS_MAX);
        search->words[search->programs++] = word;
        while (word < end && strcmp(*word, SEPARATOR))
            word++;
        if (word == search->words[search->programs - 1] || word + 1 == end)
            return cli_usage_error(invocation->command, "no program beside " SEPARATOR);
        *word++ = NULL;
    }
    if (!search->programs)
        return cli_usage_error(invocation->command, "no program given");
    for (unsigned i = 0; i < search->programs; i++) {
        int status = start_check(search->words[i][0]);

        join(search->words[i], search->commands[i], sizeof(search->commands[i]));
        if (status)
            return status;
    }
    return CLI_OK;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
    return remove(path);
}

/* Always of the same length: the end of the search writes it again, unless the file is a pipe. */
static void write_junit_head(FILE *file, const struct progress *progress)
{
    char counts[80] = "";

    if (!fseek(file, 0, SEEK_SET))
        snprintf(counts, sizeof(counts), "tests=\"%llu\" failures=\"%d\"",
                 (unsigned long long)progress->ended, progress->failed);
    fprintf(file,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"verbena check\" %-60s>\n",
            counts);
}

static FILE *open_junit(const struct invocation *invocation, int *status)
{
    const char *path = option_value(invocation, "junit");
    FILE *file = path ? fopen(path, "we") : NULL;

    if (path && !file) {
        cli_error("%s: %s", path, strerror(errno));
        *status = CLI_FAILED;
    }
    if (file)
        write_junit_head(file, &(struct progress){ 0 });
    return file;
}

static int close_junit(const struct progress *progress, const char *path, int status)
{
    FILE *file = progress->junit;

    if (!file)
        return status;
    fprintf(file, "</testsuite>\n");
    if (!fseek(file, 0, SEEK_SET))
        write_junit_head(file, progress);
    if (ferror(file) | fclose(file)) {
        cli_error("%s: cannot write", path);
        return CLI_FAILED;
    }
    return status;
}

static int choose_adapter(const struct invocation *invocation, struct check_search *search)
{
    char path[PATH_MAX], whole[PATH_MAX], error[512], ports[24];

    search->settings = option_value(invocation, "set");
    if (parameters_find(option_value_or_default(invocation, "adapter"), path, sizeof(path), error,
                        sizeof(error)) ||
        parameters_read(path, search->settings, &search->base, error, sizeof(error))) {
        cli_error("%s", error);
        return CLI_USAGE;
    }
    setenv("VERBENA_ADAPTER", realpath(path, whole) ? whole : path, 1);
    snprintf(ports, sizeof(ports), "%llu", (unsigned long long)search->base.link.ports);
    setenv("VERBENA_PORTS", ports, 1);
    return CLI_OK;
}

static int prepare(const struct invocation *invocation, struct check_search *search)
{
    static struct plan plan;
    struct launch launch;
    int status = split_programs(invocation, search);

    if (!status)
        status = faultplan_read(invocation, &plan);
    if (!status)
        status = choose_adapter(invocation, search);
    if (status)
        return status;
    search->errors = !option_value(invocation, "no-errors");
    search->any_order = option_value(invocation, "any-order");
    search->inject = plan.count ? &plan : NULL;
    search->limit = option_number(invocation, "limit", 60);
    if (!launch_find(&launch) || launch_environment(&launch, LAUNCH_GUEST))
        return CLI_FAILED;
    launch_fix_addresses();
    snprintf(search->directory, sizeof(search->directory), "%s/verbena-check-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(search->directory)) {
        cli_error("%s: %s", search->directory, strerror(errno));
        return CLI_FAILED;
    }
    return CLI_OK;
}

static unsigned job_count(const struct invocation *invocation)
{
    unsigned count = option_number(invocation, "jobs", 0);

    if (!count)
        count = 2 * sysconf(_SC_NPROCESSORS_ONLN); /* a deadlock shows in real time, without work */
    return count < 1 ? 1 : count < JOBS_MAX ? count : JOBS_MAX;
}

int cli_check(const struct invocation *invocation)
{
    static struct check_search search;
    static struct job jobs[JOBS_MAX];
    const char *time_text = option_value(invocation, "time");
    struct progress progress = { .first = option_number(invocation, "seed", 0),
                                 .runs = option_number(invocation, "runs", 0),
                                 .time = time_text ? strtod(time_text, NULL) : 0,
                                 .report = option_value(invocation, "report") };
    struct check_verdict *verdicts;
    unsigned count = job_count(invocation);
    int status = prepare(invocation, &search);

    if (status)
        return status;
    if (!progress.runs)
        progress.runs = time_text ? UINT64_MAX : 100;
    progress.junit = open_junit(invocation, &status);
    if (progress.report && mkdir(progress.report, 0777) && errno != EEXIST) {
        cli_error("%s: %s", progress.report, strerror(errno));
        status = CLI_FAILED;
    }
    verdicts = mmap(NULL, JOBS_MAX * sizeof(*verdicts), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (verdicts == MAP_FAILED)
        status = CLI_FAILED;
    if (!status) {
        for (unsigned i = 0; i < JOBS_MAX; i++)
            jobs[i].verdict = &verdicts[i];
        signal(SIGINT, interrupt);
        signal(SIGTERM, interrupt);
        progress.begin_ns = now_ns();
        search_seeds(&search, &progress, jobs, count);
        print_end(&progress);
        status = close_junit(&progress, option_value(invocation, "junit"),
                             interrupted                          ? CLI_SIGNALLED + interrupted
                             : progress.failed || progress.broken ? CLI_FAILED
                                                                  : CLI_OK);
    }
    nftw(search.directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    return status;
}
