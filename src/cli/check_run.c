/* SPDX-License-Identifier: BSD-2-Clause */
#include "check_run.h"
#include "check/deadlock.h"
#include "guardian.h"
#include "options.h"
#include "util/random.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_NS 50000000 /* at most, until the next look at the clock */

/* ---- what a seed varies ---- */

static bool happens(uint64_t *random, double probability)
{
    return random_fraction(random) < probability;
}

/* Between both, all orders of magnitude being equally likely. */
static double logarithmic(uint64_t *random, double from, double to)
{
    return from * pow(to / from, random_fraction(random));
}

/* A quarter of the adapter's times, each up to four times shorter or eight times longer. */
static void vary_times(const struct check_search *search, uint64_t *random,
                       struct check_variation *out)
{
    size_t used = 0;

    for (const struct parameter_row *row = parameter_rows; row->key; row++) {
        double value;
        bool chosen = happens(random, 0.25);
        double factor = logarithmic(random, 0.25, 8);

        if (row->unit != UNIT_TIME || !chosen ||
            parameter_number(&search->base, row->key, &value) || value <= 0)
            continue;
        if (used + 96 < sizeof(out->settings))
            used += snprintf(out->settings + used, sizeof(out->settings) - used, "%s%s=%.0fns",
                             used ? ";" : "", row->key, ceil(value * factor));
    }
}

static char *next_row(struct check_variation *out)
{
    return out->row[out->rows++];
}

static void vary_errors(const struct check_search *search, uint64_t *random,
                        struct check_variation *out)
{
    static const char *const errors[] = {
        "status any RETRY_EXC_ERR", "status any RNR_RETRY_EXC_ERR", "qp_error",
        "fail reg_mr ENOMEM",       "fail create_qp ENOMEM",        "fail create_cq ENOMEM",
        "fail post_send ENOMEM",    "fail post_recv ENOMEM",        "fail modify_qp EIO",
    };
    unsigned count = 1 + random_next(random) % 3;

    for (unsigned i = 0; i < count; i++) {
        const char *error = errors[random_next(random) % (sizeof(errors) / sizeof(*errors))];
        bool is_rare = !strncmp(error, "fail ", 5) && strncmp(error, "fail post", 9);
        double nth = logarithmic(random, 1, is_rare ? 8 : 1000);

        snprintf(next_row(out), sizeof(out->row[0]), "%s nth=%.0f node=%u", error, nth,
                 (unsigned)(random_next(random) % search->programs));
    }
}

/* Programs that do not use the connection manager do not notice. */
static void vary_connections(const struct check_search *search, uint64_t *random,
                             struct check_variation *out)
{
    static const char *const faults[] = { "addr_error",     "route_error",   "cm_reject",
                                          "cm_timeout",     "cm_disconnect", "accept_reject",
                                          "accept_timeout", "disconnect" };

    snprintf(next_row(out), sizeof(out->row[0]), "%s nth=%.0f node=%u",
             faults[random_next(random) % (sizeof(faults) / sizeof(*faults))],
             logarithmic(random, 1, 8), (unsigned)(random_next(random) % search->programs));
}

void check_vary(const struct check_search *search, uint64_t seed, struct check_variation *out)
{
    uint64_t random = seed * 0x2545f4914f6cdd1dull;
    bool pauses, errors, loss;

    memset(out, 0, sizeof(*out));
    out->seed = seed;
    for (unsigned i = 0; search->inject && i < search->inject->count; i++)
        snprintf(next_row(out), sizeof(out->row[0]), "%s", search->inject->rows[i].text);
    if (!seed)
        return; /* the adapter as it is */
    vary_times(search, &random, out);
    pauses = happens(&random, 0.5);
    errors = happens(&random, 0.5);
    loss = happens(&random, 0.25);
    if (search->any_order)
        out->first = random_next(&random) % search->programs;
    if (search->inject)
        return;
    if (pauses)
        snprintf(next_row(out), sizeof(out->row[0]), "pause %.0fus rate=%.3f node=%u",
                 logarithmic(&random, 1, 2000), logarithmic(&random, 0.005, 0.3),
                 (unsigned)(random_next(&random) % search->programs));
    if (!search->errors)
        return;
    if (errors)
        vary_errors(search, &random, out);
    if (loss)
        snprintf(out->faults, sizeof(out->faults), "drop=%.4f,seed=%llu",
                 logarithmic(&random, 1e-3, 3e-2), (unsigned long long)seed);
    if (errors && happens(&random, 0.25))
        vary_connections(search, &random, out);
}

/* ---- running ---- */

void check_output_path(const struct check_search *search, unsigned number, unsigned program,
                       char *path)
{
    snprintf(path, PATH_MAX, "%.*s/%u-%u", PATH_MAX - 32, search->directory, number, program);
}

void check_findings_path(const struct check_search *search, unsigned number, char *path)
{
    snprintf(path, PATH_MAX, "%.*s/%u-findings", PATH_MAX - 32, search->directory, number);
}

static bool write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0)
        close(fd);
    return good;
}

/* A network of its own: runs at the same time may use the same port, and no connection of an
 * earlier run is in the way. Without the permission, they share the host's. */
static void isolate_network(void)
{
    uid_t uid = getuid();
    gid_t gid = getgid();
    struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
    char map[64];
    int fd;

    if (unshare(CLONE_NEWNET)) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
            return;
        write_file("/proc/self/setgroups", "deny");
        snprintf(map, sizeof(map), "%u %u 1", uid, uid);
        write_file("/proc/self/uid_map", map);
        snprintf(map, sizeof(map), "%u %u 1", gid, gid);
        write_file("/proc/self/gid_map", map);
    }
    fd = socket(AF_INET, SOCK_DGRAM, 0);
    ioctl(fd, SIOCSIFFLAGS, &request);
    close(fd);
}

static void set_number(const char *variable, unsigned long long number)
{
    char text[24];

    snprintf(text, sizeof(text), "%llu", number);
    setenv(variable, text, 1);
}

static void set_or_unset(const char *variable, const char *value)
{
    if (*value)
        setenv(variable, value, 1);
    else
        unsetenv(variable);
}

static void export_variation(const struct check_search *search,
                             const struct check_variation *variation, unsigned number)
{
    char plan[sizeof(variation->row) + 64], path[PATH_MAX], fabric[64], *settings;
    uint64_t seed = search->inject && search->inject->seed ? search->inject->seed : variation->seed;
    size_t used = snprintf(plan, sizeof(plan), "seed=%llu", (unsigned long long)seed);

    for (unsigned i = 0; i < variation->rows; i++)
        used += snprintf(plan + used, sizeof(plan) - used, ";%s", variation->row[i]);
    snprintf(fabric, sizeof(fabric), "check-%d-%u", (int)getppid(), number);
    check_findings_path(search, number, path);
    setenv("VERBENA_FABRIC", fabric, 1);
    setenv("VERBENA_FINDINGS", path, 1);
    setenv("VERBENA_SEED", "1", 1);
    setenv("VERBENA_SANITIZE", "1", 1);
    setenv("VERBENA_STRICT", "1", 1);
    set_number("VERBENA_NODES", search->programs);
    set_number("VERBENA_DEADLOCK", search->programs);
    if (asprintf(&settings, "%s;%s", search->settings ? search->settings : "",
                 variation->settings) >= 0) {
        setenv("VERBENA_SET", settings, 1);
        free(settings);
    }
    set_or_unset("VERBENA_FAULTS", variation->faults);
    set_or_unset("VERBENA_TRACE", search->trace ? search->trace : "");
    set_or_unset("VERBENA_INJECT", variation->rows ? plan : "");
    unsetenv("VERBENA_INJECT_FILE");
}

/* The number of programs that start before this one. */
static unsigned place_of(unsigned program, unsigned first)
{
    return program == first ? 0 : program < first ? program + 1 : program;
}

/* SIGCHLD, which is blocked while programs run. */
static sigset_t child_signal;

static void block_child_signal(void)
{
    sigemptyset(&child_signal);
    sigaddset(&child_signal, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child_signal, NULL);
}

static pid_t start(const struct check_search *search, unsigned number, unsigned program,
                   unsigned before)
{
    pid_t parent = getpid(), pid = fork();
    char path[PATH_MAX], place[32];
    int out;

    if (pid > 0)
        setpgid(pid, pid); /* here too: the parent may have to end the group at once */
    if (pid)
        return pid;
    setpgid(0, 0);
    sigprocmask(SIG_UNBLOCK, &child_signal, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(CLI_FAILED);
    check_output_path(search, number, program, path);
    out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    set_number("VERBENA_NODE", program);
    snprintf(place, sizeof(place), "%u/%u", before, search->programs);
    setenv("VERBENA_START", place, 1);
    execvp(search->words[program][0], search->words[program]);
    fprintf(stderr, "%s: %s\n", search->words[program][0], strerror(errno));
    _exit(CLI_NOT_FOUND);
}

/* Returns false if the programs did not end in time; then it ends them. */
static bool wait_for_all(const pid_t *pids, unsigned count, double limit, int *statuses)
{
    uint64_t begin = now_ns();
    bool ended[CHECK_PROGRAMS_MAX] = { false }, in_time = true;
    static const struct timespec wait = { .tv_nsec = WAIT_NS };
    unsigned left = count;

    while (left) {
        for (unsigned i = 0; i < count; i++) {
            if (!ended[i] && waitpid(pids[i], &statuses[i], WNOHANG) == pids[i]) {
                ended[i] = true;
                left--;
            }
        }
        if (left && in_time && check_seconds_since(begin) >= limit) {
            in_time = false;
            for (unsigned i = 0; i < count; i++)
                kill(-pids[i], SIGKILL);
        }
        if (left)
            sigtimedwait(&child_signal, NULL, &wait);
    }
    return in_time;
}

/* ---- the verdict ---- */

static void __attribute__((format(printf, 3, 4)))
fail(struct check_verdict *verdict, const char *kind, const char *format, ...)
{
    va_list args;

    if (verdict->failed)
        return;
    verdict->failed = true;
    snprintf(verdict->kind, sizeof(verdict->kind), "%s", kind);
    va_start(args, format);
    vsnprintf(verdict->reason, sizeof(verdict->reason), format, args);
    va_end(args);
}

/* What a correct program may meet, too. */
static bool is_news(const char *rule)
{
    return strcmp(rule, "injected") && strcmp(rule, "work-request") && strcmp(rule, "responder") &&
           strcmp(rule, "call");
}

/* A server may wait forever for a client that has met an injected error. */
static bool is_server_waiting(json_t *finding)
{
    const char *note = json_string_value(json_array_get(json_object_get(finding, "notes"), 0));

    return note && !strcmp(note, DEADLOCK_OUTSIDE_NOTE);
}

/* Returns whether an error was injected, after which a program may end with any status. */
static bool judge_findings(const char *path, bool errors, struct check_verdict *verdict)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t size = 0;

    while (file && getline(&line, &size, file) > 0) {
        json_t *finding = json_loads(line, 0, NULL);
        const char *rule = json_string_value(json_object_get(finding, "rule"));
        const char *text = json_string_value(json_object_get(finding, "text"));

        if (rule && text && !strcmp(rule, "injected"))
            errors |= strncmp(text, "pause ", 6);
        else if (rule && text && is_news(rule) && !(errors && is_server_waiting(finding)))
            fail(verdict, rule, "%s", text);
        json_decref(finding);
    }
    free(line);
    if (file)
        fclose(file);
    return errors;
}

static void judge_statuses(const struct check_search *search, const int *statuses, bool errors,
                           struct check_verdict *verdict)
{
    for (unsigned i = 0; i < search->programs; i++) {
        if (WIFSIGNALED(statuses[i]))
            fail(verdict, "crash", "%s was ended by signal %d (%s)", search->commands[i],
                 WTERMSIG(statuses[i]), strsignal(WTERMSIG(statuses[i])));
        else if (WEXITSTATUS(statuses[i]) && !errors)
            fail(verdict, "status", "%s ended with status %d, though no error was injected",
                 search->commands[i], WEXITSTATUS(statuses[i]));
    }
}

bool check_run(const struct check_search *search, const struct check_variation *variation,
               unsigned number, struct check_verdict *verdict)
{
    pid_t pids[CHECK_PROGRAMS_MAX];
    int statuses[CHECK_PROGRAMS_MAX];
    unsigned started = 0;
    char path[PATH_MAX];
    uint64_t begin = now_ns();
    bool all, in_time, errors;

    isolate_network();
    export_variation(search, variation, number);
    check_findings_path(search, number, path);
    unlink(path);
    guardian_begin();
    block_child_signal();
    while (started < search->programs &&
           (pids[started] = start(search, number, started, place_of(started, variation->first))) > 0)
        started++;
    all = started == search->programs;
    in_time = wait_for_all(pids, started, all ? search->limit : 0, statuses);
    guardian_end(CLI_FAILED);
    if (!all)
        return false;
    errors = judge_findings(path, *variation->faults, verdict);
    if (!in_time)
        fail(verdict, "hang", "the programs had not ended after %u s", search->limit);
    judge_statuses(search, statuses, errors, verdict);
    verdict->seconds = check_seconds_since(begin);
    return true;
}
