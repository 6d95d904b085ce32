/* SPDX-License-Identifier: BSD-2-Clause */
#include "mpi_bench.h"
#include "rails/rails.h"
#include "util/open_mpi.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CURVES_MAX 64
#define WORDS_MAX  48
#define TEXT_MAX   4096
#define VALUES_MAX 1024
#define STEP_MS    100
#define NOT_FOUND  127 /* exit status: the program does not exist */

struct curve {
    const char *policy;
    uint64_t qps;
    char name[48];
    bool measured[NUMBERS_MAX];
    struct summary values[NUMBERS_MAX]; /* of each size */
};

struct curves {
    unsigned int count;
    struct curve *list;
};

/* The command line of the MPI program; its words are in 'text'. */
struct command_line {
    char *words[WORDS_MAX + 1];
    int count;
    char text[TEXT_MAX];
    size_t used;
};

/* The output of the MPI program, line by line. */
struct output {
    int fd;
    char text[TEXT_MAX];
    size_t length;
    char last[256]; /* the last line without values */
};

static void add(struct command_line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add(struct command_line *line, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(line->text + line->used, sizeof(line->text) - line->used, format, arguments);
    va_end(arguments);
    if (line->count == WORDS_MAX || length >= (int)(sizeof(line->text) - line->used))
        return;
    line->words[line->count++] = line->text + line->used;
    line->words[line->count] = NULL;
    line->used += length + 1;
}

static void add_sizes(struct command_line *line, const struct number_list *sizes)
{
    char text[NUMBERS_MAX * 12] = "";
    size_t used = 0;

    for (unsigned int i = 0; i < sizes->count && used < sizeof(text); i++)
        used += snprintf(text + used, sizeof(text) - used, "%s%llu", i ? "," : "",
                         (unsigned long long)sizes->value[i]);
    add(line, "--sizes=%s", text);
}

static bool on_software(const struct bench *bench)
{
    const char *name = ibv_get_device_name(bench->adapter->context->device);

    return !strncmp(name, "verbena", strlen("verbena"));
}

static void make_command_line(const struct bench *bench, const struct mpi_bench_spec *spec,
                              const struct curve *curve, struct command_line *line)
{
    const struct settings *settings = bench->settings;

    add(line, "verbena");
    add(line, "mpi-bench");
    add(line, "--ranks=%llu", (unsigned long long)settings->ranks);
    add(line, "--policy=%s", curve->policy);
    add(line, "--qps=%llu", (unsigned long long)curve->qps);
    add(line, "--ports=%llu", (unsigned long long)settings->ports);
    if (on_software(bench)) {
        add(line, "--ranks-per-node=%llu", (unsigned long long)settings->ranks_per_node);
        add(line, "--devices=%llu", (unsigned long long)settings->devices);
        add(line, "--adapter=%s", settings->adapter);
        if (settings->set)
            add(line, "--set=%s", settings->set);
        if (settings->faults)
            add(line, "--faults=%s", settings->faults);
    }
    add(line, "--");
    add(line, "%s", spec->task);
    add_sizes(line, &settings->sizes);
    add(line, "--iterations=%llu", (unsigned long long)settings->iterations);
    add(line, "--warmup=%llu", (unsigned long long)settings->warmup);
    add(line, "--repetitions=%llu", (unsigned long long)settings->repetitions);
    add(line, "--window=%llu", (unsigned long long)settings->window);
}

/* The MPI program joins a fabric of its own and runs on any core: it must not inherit the fabric,
 * node and core of this process. */
static void reset_environment(void)
{
    static const char *const variables[] = { "VERBENA_FABRIC", "VERBENA_NODES",  "VERBENA_NODE",
                                             "VERBENA_PORTS",  "VERBENA_TRACE",  "VERBENA_PCAP",
                                             "VERBENA_STATS",  "VERBENA_EXPLAIN" };
    cpu_set_t all;

    for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
        unsetenv(variables[i]);
    memset(&all, 0xff, sizeof(all));
    sched_setaffinity(0, sizeof(all), &all);
}

/* Puts a list of NAME=VALUE, separated by ';', where Open MPI looks for its parameters. */
static void set_parameters(const char *list)
{
    char text[TEXT_MAX], name[TEXT_MAX], *rest = NULL;

    snprintf(text, sizeof(text), "%s", list);
    for (char *one = strtok_r(text, ";", &rest); one; one = strtok_r(NULL, ";", &rest)) {
        size_t length = strcspn(one, "=");

        snprintf(name, sizeof(name), "OMPI_MCA_%.*s", (int)length, one);
        setenv(name, one[length] ? one + length + 1 : "", 1);
    }
}

static pid_t start(const struct settings *settings, char **words, int *fd)
{
    int pipes[2];
    pid_t pid;

    if (pipe(pipes))
        return -1;
    pid = fork();
    if (pid < 0) {
        close(pipes[0]);
        close(pipes[1]);
        return -1;
    }
    if (!pid) {
        signal(SIGTERM, SIG_DFL); /* what hangs is ended with it */
        dup2(pipes[1], STDOUT_FILENO);
        dup2(pipes[1], STDERR_FILENO);
        close(pipes[0]);
        close(pipes[1]);
        reset_environment();
        setenv(OPEN_MPI_ALLOW_EXIT_WITHOUT_SYNC, "1", 0);
        if (settings->mca)
            set_parameters(settings->mca);
        execv("/proc/self/exe", words);
        _exit(NOT_FOUND);
    }
    close(pipes[1]);
    *fd = pipes[0];
    return pid;
}

/* Parses "SIZE VALUE...". Returns false if the line is something else. */
static bool parse_values(const struct number_list *sizes, struct curve *curve, const char *text)
{
    double values[VALUES_MAX];
    unsigned int count = 0;
    char *end;
    uint64_t size = strtoull(text, &end, 10);

    if (end == text || *end != ' ')
        return false;
    while (count < VALUES_MAX) {
        const char *from = end;

        values[count] = strtod(from, &end);
        if (end == from)
            break;
        count++;
    }
    for (unsigned int i = 0; i < sizes->count && count && !*end; i++) {
        if (sizes->value[i] != size || curve->measured[i])
            continue;
        histogram_of_values(values, count, &curve->values[i]);
        curve->measured[i] = true;
        return true;
    }
    return false;
}

static void take_lines(const struct number_list *sizes, struct output *output, struct curve *curve)
{
    char *newline;

    while ((newline = memchr(output->text, '\n', output->length))) {
        size_t used = newline + 1 - output->text;

        *newline = '\0';
        /* Open MPI puts its messages between lines of dashes. */
        if (output->text[strspn(output->text, "-")] && *output->text != '#' &&
            !parse_values(sizes, curve, output->text))
            snprintf(output->last, sizeof(output->last), "%.200s", output->text);
        output->length -= used;
        memmove(output->text, output->text + used, output->length);
    }
    if (output->length == sizeof(output->text))
        output->length = 0;
}

/* Reads until the program ends. Returns BENCH_FAILED if this experiment has failed or nothing comes
 * for too long. */
static int follow(struct bench *bench, struct output *output, struct curve *curve)
{
    struct pollfd look = { .fd = output->fd, .events = POLLIN };
    uint64_t since = patience_now();

    for (;;) {
        ssize_t length;

        if (poll(&look, 1, STEP_MS) <= 0) {
            if (!bench_alive(bench, since))
                return BENCH_FAILED;
            continue;
        }
        length =
            read(output->fd, output->text + output->length, sizeof(output->text) - output->length);
        if (length < 0 && errno == EINTR)
            continue;
        if (length <= 0)
            return BENCH_OK;
        output->length += length;
        take_lines(&bench->settings->sizes, output, curve);
        since = patience_now();
    }
}

static bool is_complete(const struct number_list *sizes, const struct curve *curve)
{
    for (unsigned int i = 0; i < sizes->count; i++) {
        if (!curve->measured[i])
            return false;
    }
    return true;
}

static int measure_curve(struct bench *bench, const struct mpi_bench_spec *spec,
                         struct curve *curve)
{
    struct command_line line = { .count = 0 };
    struct output output = { .length = 0 };
    int status, wait_status;
    pid_t pid;

    make_command_line(bench, spec, curve, &line);
    pid = start(bench->settings, line.words, &output.fd);
    if (pid < 0)
        return bench_fail(bench, "starting an MPI program: %s", strerror(errno));
    status = follow(bench, &output, curve);
    close(output.fd);
    if (status)
        kill(pid, SIGTERM);
    waitpid(pid, &wait_status, 0);
    if (status)
        return BENCH_FAILED;
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == NOT_FOUND)
        return bench_skip(bench, "%s", output.last);
    if (!WIFEXITED(wait_status) || WEXITSTATUS(wait_status) ||
        !is_complete(&bench->settings->sizes, curve))
        return bench_fail(bench, "%s: %s", curve->name, output.last);
    return BENCH_OK;
}

static int choose_curves(struct bench *bench, struct curves *curves)
{
    const struct settings *settings = bench->settings;

    curves->list = calloc(CURVES_MAX, sizeof(*curves->list));
    if (!curves->list)
        return bench_fail(bench, "out of memory");
    for (int policy = 0; rails_policies[policy]; policy++) {
        if (!(settings->policies & 1ull << policy))
            continue;
        for (unsigned int i = 0; i < settings->qps.count && curves->count < CURVES_MAX; i++) {
            struct curve *curve = &curves->list[curves->count++];

            curve->policy = rails_policies[policy]->name;
            curve->qps = settings->qps.value[i];
            snprintf(curve->name, sizeof(curve->name), "%s %llu QP%s", curve->policy,
                     (unsigned long long)curve->qps, curve->qps == 1 ? "" : "s");
        }
    }
    return BENCH_OK;
}

static void report(struct bench *bench, const struct mpi_bench_spec *spec,
                   const struct curves *curves)
{
    const struct number_list *sizes = &bench->settings->sizes;
    const char *names[CURVES_MAX];

    for (unsigned int k = 0; k < curves->count; k++)
        names[k] = curves->list[k].name;
    bench_panel(bench, &(struct panel_spec){ .quantity = spec->quantity,
                                             .unit = spec->unit,
                                             .axis = "size",
                                             .axis_unit = "B",
                                             .better = spec->better,
                                             .count = curves->count,
                                             .names = names });
    for (unsigned int i = 0; i < sizes->count; i++) {
        for (unsigned int k = 0; k < curves->count; k++)
            bench_point(bench, k, sizes->value[i], &curves->list[k].values[i]);
    }
}

int mpi_bench_run(struct bench *bench)
{
    const struct mpi_bench_spec *spec = bench->experiment->spec;
    struct curves curves = { .count = 0 };
    int status = BENCH_OK;

    if (bench->settings->connect)
        return bench_skip(bench, "it is not for --connect: start verbena-mpi-bench with an mpirun "
                                 "that knows both hosts");
    if (bench->settings->wire)
        return bench_skip(bench, "MPI processes of one host do not use the wire: start "
                                 "verbena-mpi-bench with 'verbena mpirun --wire'");
    if (choose_curves(bench, &curves))
        return BENCH_FAILED;
    for (unsigned int i = 0; i < curves.count && !status; i++)
        status = measure_curve(bench, spec, &curves.list[i]);
    if (!status)
        report(bench, spec, &curves);
    free(curves.list);
    return status;
}
