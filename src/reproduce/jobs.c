/* SPDX-License-Identifier: BSD-2-Clause */
#include "jobs.h"
#include "bench/clock.h"
#include "bench/interrupt.h"
#include "results/allocate.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME_LONGEST 150 /* of a file, whose name also has a suffix */
#define POLL_US      10000
#define GRACE        5 /* seconds between SIGTERM and SIGKILL */
#define OUTPUT_MARK  "{output}"

static bool same(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

static char *printed(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *printed(const char *format, ...)
{
    va_list arguments;
    char *text;

    va_start(arguments, format);
    text = allocate_printed(format, arguments);
    va_end(arguments);
    return text;
}

/* Makes a file name; of an adapter's path only the last component is used. */
static char *name_of(const char *paper, const char *run, const char *adapter, const char *set)
{
    const char *slash = strrchr(adapter, '/');
    char *name = printed("%s-%s-%s%s%s", paper, run, slash ? slash + 1 : adapter, set ? "-" : "",
                         set ? set : "");

    for (char *at = name; *at; at++) {
        if (!isalnum((unsigned char)*at) && !strchr("-._=", *at))
            *at = '_';
    }
    return name;
}

const struct job *jobs_find(const struct jobs *jobs, const char *adapter, const char *set,
                            const char *line)
{
    for (unsigned int i = 0; i < jobs->count; i++) {
        const struct job *job = &jobs->list[i];

        if (same(job->adapter, adapter) && same(job->set, set) && same(job->line, line))
            return job;
    }
    return NULL;
}

static bool has_name(const struct jobs *jobs, const char *name)
{
    for (unsigned int i = 0; i < jobs->count; i++) {
        if (!strcmp(jobs->list[i].name, name))
            return true;
    }
    return false;
}

void jobs_add(struct jobs *jobs, const char *paper, const char *run, const char *adapter,
              const char *set, const char *line)
{
    char *name;

    if (jobs_find(jobs, adapter, set, line))
        return;
    jobs->list = allocate_one_more(jobs->list, jobs->count, sizeof(*jobs->list));
    name = name_of(paper, run, adapter, set);
    if (strlen(name) > NAME_LONGEST || has_name(jobs, name)) {
        char *cut = printed("%.*s-%u", NAME_LONGEST, name, jobs->count);

        free(name);
        name = cut;
    }
    jobs->list[jobs->count++] = (struct job){
        .name = name,
        .adapter = allocate_text(adapter),
        .set = allocate_text(set),
        .line = allocate_text(line),
    };
}

void jobs_free(struct jobs *jobs)
{
    for (unsigned int i = 0; i < jobs->count; i++) {
        struct job *job = &jobs->list[i];

        free(job->name);
        free(job->adapter);
        free(job->set);
        free(job->line);
        free(job->failure);
        if (job->results)
            results_free(job->results);
    }
    free(jobs->list);
    *jobs = (struct jobs){ 0 };
}

char *job_command(const struct job *job)
{
    int command = (int)strcspn(job->line, " ");

    return printed("verbena %.*s --adapter %s%s%s%s%s", command, job->line, job->adapter,
                   job->set ? " --set '" : "", job->set ? job->set : "", job->set ? "'" : "",
                   job->line + command);
}

/* Splits the next argument off the line. Blanks within single quotes belong to it. */
static char *next_arg(char **rest)
{
    char *word = *rest + strspn(*rest, " ");
    char end = *word == '\'' ? '\'' : ' ';

    if (!*word)
        return NULL;
    word += end == '\'';
    *rest = word + strcspn(word, (char[]){ end, 0 });
    if (**rest)
        *(*rest)++ = 0;
    return word;
}

/* Splits 'line' into the arguments of the command. They point into 'line' and to the job. */
static char **build_args(const struct job *job, char *line, char *output)
{
    /* A word takes two characters of the line, the last maybe one; up to 7 and NULL are added. */
    char **args = allocate_zeroed((strlen(line) / 2 + 9) * sizeof(*args));
    char *rest = line, *word = next_arg(&rest);
    bool has_output = strstr(job->line, OUTPUT_MARK);
    int count = 0;

    args[count++] = "verbena";
    args[count++] = word;
    args[count++] = "--adapter";
    args[count++] = job->adapter;
    if (job->set) {
        args[count++] = "--set";
        args[count++] = job->set;
    }
    if (!has_output) {
        args[count++] = "--output";
        args[count++] = output;
    }
    while ((word = next_arg(&rest)))
        args[count++] = strcmp(word, OUTPUT_MARK) ? word : output;
    return args;
}

/* All processes of a modelled run stay on one core, so each job gets a core of its own. */
static void bind_to_core(unsigned int slot)
{
    cpu_set_t allowed, one;

    if (sched_getaffinity(0, sizeof(allowed), &allowed))
        return;
    CPU_ZERO(&one);
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET(core, &allowed) || slot--)
            continue;
        CPU_SET(core, &one);
        sched_setaffinity(0, sizeof(one), &one);
        return;
    }
}

static void become_job(const struct job *job, const char *directory)
{
    char *output = printed("%s.json", job->name), *log = printed("%s.log", job->name);
    char **args = build_args(job, allocate_text(job->line), output);
    int file;

    signal(SIGTERM, SIG_DFL); /* jobs are ended with it */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    bind_to_core(job->slot);
    file = chdir(directory) ? -1 : open(log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file >= 0 && dup2(file, STDOUT_FILENO) >= 0 && dup2(file, STDERR_FILENO) >= 0)
        execv("/proc/self/exe", args);
    _exit(127);
}

static void start(struct job *job, unsigned int slot, const char *directory)
{
    job->started = true;
    job->slot = slot;
    job->start = monotonic_ns() / 1e9;
    job->process = fork();
    if (!job->process)
        become_job(job, directory);
    if (job->process < 0) {
        job->failure = printed("fork: %s", strerror(errno));
        job->process = 0;
    }
}

/* Returns the last line of the job's log, or the line that says why an experiment failed. */
static char *last_message(const char *path)
{
    FILE *in = fopen(path, "r");
    char *line = NULL, *last = NULL;
    bool found_reason = false;
    size_t size = 0;

    while (in && getline(&line, &size, in) > 0) {
        bool is_reason = strstr(line, "FAILED");

        line[strcspn(line, "\n")] = '\0';
        /* Open MPI frames its messages with lines of dashes. */
        if (!line[strspn(line, "-")] || (found_reason && !is_reason))
            continue;
        found_reason = is_reason;
        free(last);
        last = allocate_text(line + strspn(line, " "));
    }
    free(line);
    if (in)
        fclose(in);
    return last ? last : allocate_text("exited without a message");
}

static void take_results(struct job *job, int status, const struct jobs_spec *spec)
{
    char *log = printed("%s/%s.log", spec->directory, job->name);
    char *path = printed("%s/%s.json", spec->directory, job->name);
    char error[512];

    job->process = 0;
    if (job->terminated)
        job->failure = printed("not finished after %g s", spec->limit);
    else if (!WIFEXITED(status) || WEXITSTATUS(status))
        job->failure = last_message(log);
    else if (results_read(path, &job->results, error, sizeof(error)))
        job->failure = printed("%s", error);
    else
        unlink(log);
    free(path);
    free(log);
}

static void end_late(struct job *job, double now, double limit)
{
    if (now - job->start > limit + GRACE) {
        kill(job->process, SIGKILL);
    } else if (now - job->start > limit && !job->terminated) {
        job->terminated = true;
        kill(job->process, SIGTERM);
    }
}

static struct job *job_of(struct jobs *jobs, pid_t process)
{
    for (unsigned int i = 0; i < jobs->count; i++) {
        if (jobs->list[i].process == process)
            return &jobs->list[i];
    }
    return NULL;
}

/* Returns a free slot, or -1. */
static int free_slot(const struct jobs *jobs, unsigned int slots)
{
    for (unsigned int slot = 0; slot < slots; slot++) {
        bool taken = false;

        for (unsigned int i = 0; i < jobs->count; i++)
            taken |= jobs->list[i].process && jobs->list[i].slot == slot;
        if (!taken)
            return (int)slot;
    }
    return -1;
}

static void start_more(struct jobs *jobs, unsigned int slots, const char *directory)
{
    for (unsigned int i = 0; i < jobs->count && !interrupt_seen(); i++) {
        int slot;

        if (jobs->list[i].started)
            continue;
        slot = free_slot(jobs, slots);
        if (slot < 0)
            return;
        start(&jobs->list[i], (unsigned int)slot, directory);
    }
}

static void end_all(struct jobs *jobs)
{
    for (unsigned int i = 0; i < jobs->count; i++) {
        if (jobs->list[i].process) {
            kill(jobs->list[i].process, SIGTERM);
            waitpid(jobs->list[i].process, NULL, 0);
            jobs->list[i].process = 0;
        }
    }
}

unsigned int jobs_cores(void)
{
    cpu_set_t allowed;

    return sched_getaffinity(0, sizeof(allowed), &allowed) ? 1 : (unsigned int)CPU_COUNT(&allowed);
}

static unsigned int finished(const struct jobs *jobs)
{
    unsigned int count = 0;

    for (unsigned int i = 0; i < jobs->count; i++)
        count += jobs->list[i].results || jobs->list[i].failure;
    return count;
}

/* Reads the results of a job that has exited, or terminates jobs that exceed the limit. */
static void reap_jobs(struct jobs *jobs, const struct jobs_spec *spec, double begin)
{
    double now = monotonic_ns() / 1e9;
    int status;
    pid_t process = waitpid(-1, &status, WNOHANG);
    struct job *job = process > 0 ? job_of(jobs, process) : NULL;

    if (job) {
        take_results(job, status, spec);
        spec->progress(finished(jobs), jobs->count, now - begin, job);
        return;
    }
    for (unsigned int i = 0; i < jobs->count; i++) {
        if (jobs->list[i].process && spec->limit > 0)
            end_late(&jobs->list[i], now, spec->limit);
    }
    usleep(POLL_US);
}

int jobs_run(struct jobs *jobs, const struct jobs_spec *spec)
{
    unsigned int slots = spec->at_once ? spec->at_once : jobs_cores();
    double begin = monotonic_ns() / 1e9;

    interrupt_catch();
    while (finished(jobs) < jobs->count && !interrupt_seen()) {
        start_more(jobs, slots, spec->directory);
        reap_jobs(jobs, spec, begin);
    }
    if (!interrupt_seen())
        return 0;
    end_all(jobs);
    return interrupt_signal();
}
