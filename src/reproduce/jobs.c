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

#define WORDS_MAX   96
#define LOOK_US     10000
#define GRACE       5 /* seconds to end by itself */
#define OUTPUT_MARK "{output}"

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

/* A name that a file can have; the last part is enough of a path. */
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

void jobs_want(struct jobs *jobs, const char *paper, const char *run, const char *adapter,
               const char *set, const char *line)
{
    if (jobs_find(jobs, adapter, set, line))
        return;
    jobs->list = allocate_one_more(jobs->list, jobs->count, sizeof(*jobs->list));
    jobs->list[jobs->count++] = (struct job){
        .name = name_of(paper, run, adapter, set),
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

/* The next word of a line, which is taken apart; blanks within single quotes belong to it. */
static char *next_word(char **rest)
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

/* The words of the command; they point into 'line', which is taken apart, and to the job. */
static void words_of(const struct job *job, char *line, char *output, char **words)
{
    char *rest = line, *word = next_word(&rest);
    bool placed = strstr(job->line, OUTPUT_MARK);
    int count = 0;

    words[count++] = "verbena";
    words[count++] = word;
    words[count++] = "--adapter";
    words[count++] = job->adapter;
    if (job->set) {
        words[count++] = "--set";
        words[count++] = job->set;
    }
    if (!placed) {
        words[count++] = "--output";
        words[count++] = output;
    }
    while ((word = next_word(&rest)) && count < WORDS_MAX)
        words[count++] = strcmp(word, OUTPUT_MARK) ? word : output;
    words[count] = NULL;
}

/* Everything of a modelled run stays on one core; two runs on the same one would share it. */
static void bind_to_core(unsigned int place)
{
    cpu_set_t allowed, one;

    if (sched_getaffinity(0, sizeof(allowed), &allowed))
        return;
    CPU_ZERO(&one);
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET(core, &allowed) || place--)
            continue;
        CPU_SET(core, &one);
        sched_setaffinity(0, sizeof(one), &one);
        return;
    }
}

static void become_job(const struct job *job, const char *directory)
{
    char *output = printed("%s.json", job->name), *log = printed("%s.log", job->name);
    char *line = allocate_text(job->line), *words[WORDS_MAX + 1];
    int file;

    signal(SIGTERM, SIG_DFL); /* jobs are ended with it */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    bind_to_core(job->place);
    words_of(job, line, output, words);
    file = chdir(directory) ? -1 : open(log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file >= 0 && dup2(file, STDOUT_FILENO) >= 0 && dup2(file, STDERR_FILENO) >= 0)
        execv("/proc/self/exe", words);
    _exit(127);
}

static void start(struct job *job, unsigned int place, const char *directory)
{
    job->begun = true;
    job->place = place;
    job->start = monotonic_ns() / 1e9;
    job->process = fork();
    if (!job->process)
        become_job(job, directory);
    if (job->process < 0) {
        job->failure = printed("fork: %s", strerror(errno));
        job->process = 0;
    }
}

/* The last line of what a job has said, or the one in which an experiment tells why it failed. */
static char *last_words(const char *path)
{
    FILE *in = fopen(path, "r");
    char *line = NULL, *last = NULL;
    bool told = false;
    size_t size = 0;

    while (in && getline(&line, &size, in) > 0) {
        bool telling = strstr(line, "FAILED");

        line[strcspn(line, "\n")] = '\0';
        /* Open MPI puts its words between lines of dashes. */
        if (!line[strspn(line, "-")] || (told && !telling))
            continue;
        told = telling;
        free(last);
        last = allocate_text(line + strspn(line, " "));
    }
    free(line);
    if (in)
        fclose(in);
    return last ? last : allocate_text("ended without a word");
}

static void take_results(struct job *job, int status, const struct jobs_spec *spec)
{
    char *log = printed("%s/%s.log", spec->directory, job->name);
    char *path = printed("%s/%s.json", spec->directory, job->name);
    char error[512];

    job->process = 0;
    if (job->told_to_end)
        job->failure = printed("not ready after %g s", spec->limit);
    else if (!WIFEXITED(status) || WEXITSTATUS(status))
        job->failure = last_words(log);
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
    } else if (now - job->start > limit && !job->told_to_end) {
        job->told_to_end = true;
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

/* A free place, or -1. */
static int free_place(const struct jobs *jobs, unsigned int places)
{
    for (unsigned int place = 0; place < places; place++) {
        bool taken = false;

        for (unsigned int i = 0; i < jobs->count; i++)
            taken |= jobs->list[i].process && jobs->list[i].place == place;
        if (!taken)
            return (int)place;
    }
    return -1;
}

static void start_more(struct jobs *jobs, unsigned int places, const char *directory)
{
    for (unsigned int i = 0; i < jobs->count && !interrupt_seen(); i++) {
        int place;

        if (jobs->list[i].begun)
            continue;
        place = free_place(jobs, places);
        if (place < 0)
            return;
        start(&jobs->list[i], (unsigned int)place, directory);
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

static unsigned int cores(void)
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

/* Takes what has ended, and ends what takes too long. */
static void look_around(struct jobs *jobs, const struct jobs_spec *spec, double begin)
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
    usleep(LOOK_US);
}

int jobs_run(struct jobs *jobs, const struct jobs_spec *spec)
{
    unsigned int places = spec->at_once ? spec->at_once : cores();
    double begin = monotonic_ns() / 1e9;

    interrupt_catch();
    while (finished(jobs) < jobs->count && !interrupt_seen()) {
        start_more(jobs, places, spec->directory);
        look_around(jobs, spec, begin);
    }
    if (!interrupt_seen())
        return 0;
    end_all(jobs);
    return interrupt_signal();
}
