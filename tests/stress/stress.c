/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random traffic between many processes, with every byte checked. In kill mode a process is killed
 * by SIGKILL at a random instant; the others must get defined errors and continue.
 */
#include "worker.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct options {
    uint64_t seed;
    int procs;
    uint32_t ops;
    int trials;
    bool kill;
    uint32_t kill_window_us;
    int limit_s;
    bool verbose;
};

struct trial {
    const struct options *options;
    struct plan plan;
    struct board *board;
    char fabric[64];
    pid_t pid[MAX_PROCS];
    int fd[MAX_PROCS][MAX_PROCS];
    int victims[2];
    int victim_count;
    bool victim_was_last; /* or may have been */
    char reason[REPORT_BYTES + 64];
};

static void open_sockets(struct trial *trial)
{
    for (int a = 0; a < trial->plan.procs; a++) {
        trial->fd[a][a] = -1;
        for (int b = a + 1; b < trial->plan.procs; b++) {
            int pair[2];
            if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
                perror("socketpair");
                exit(2);
            }
            trial->fd[a][b] = pair[0];
            trial->fd[b][a] = pair[1];
        }
    }
}

static void close_sockets(struct trial *trial, int except)
{
    for (int a = 0; a < trial->plan.procs; a++)
        for (int b = 0; b < trial->plan.procs; b++)
            if (a != except && trial->fd[a][b] >= 0)
                close(trial->fd[a][b]);
}

static void spawn(struct trial *trial)
{
    fflush(NULL);
    for (int p = 0; p < trial->plan.procs; p++) {
        trial->pid[p] = fork();
        if (trial->pid[p] < 0) {
            perror("fork");
            exit(2);
        }
        if (trial->pid[p] == 0) {
            close_sockets(trial, p);
            exit(worker_run(&trial->plan, trial->board, p, trial->fd[p]));
        }
    }
}

static bool is_victim(const struct trial *trial, int proc)
{
    for (int v = 0; v < trial->victim_count; v++)
        if (trial->victims[v] == proc)
            return true;
    return false;
}

static void kill_victims(struct trial *trial)
{
    uint64_t dice = rig_mix(trial->plan.seed ^ 0x6b696c6cull);
    int count = dice % 8 == 0 ? 2 : 1;

    for (int v = 0; v < count; v++) {
        dice = rig_mix(dice);
        usleep(dice % trial->options->kill_window_us);
        dice = rig_mix(dice);
        int proc = dice % trial->plan.procs;
        if (is_victim(trial, proc) || kill(trial->pid[proc], SIGKILL))
            continue;
        trial->victims[trial->victim_count++] = proc;
    }
}

static int proc_of(const struct trial *trial, pid_t pid)
{
    for (int p = 0; p < trial->plan.procs; p++)
        if (trial->pid[p] == pid)
            return p;
    return -1;
}

static void note_exit(struct trial *trial, int proc, int status)
{
    if (trial->reason[0])
        return;
    if (atomic_load(&trial->board->failed))
        snprintf(trial->reason, sizeof(trial->reason), "%s", trial->board->report);
    else if (WIFSIGNALED(status) && !(is_victim(trial, proc) && WTERMSIG(status) == SIGKILL))
        snprintf(trial->reason, sizeof(trial->reason), "process %d died by signal %d (%s)", proc,
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (WIFEXITED(status) && WEXITSTATUS(status))
        snprintf(trial->reason, sizeof(trial->reason), "process %d exited with %d", proc,
                 WEXITSTATUS(status));
}

static void end_hung(struct trial *trial, int left)
{
    snprintf(trial->reason, sizeof(trial->reason), "%d processes hang after %d s", left,
             trial->options->limit_s);
    for (int p = 0; p < trial->plan.procs; p++)
        if (trial->pid[p])
            kill(trial->pid[p], SIGUSR1);
    usleep(300000);
    for (int p = 0; p < trial->plan.procs; p++)
        if (trial->pid[p])
            kill(trial->pid[p], SIGKILL);
}

static void wait_all(struct trial *trial)
{
    uint64_t end = rig_now_us() + trial->options->limit_s * 1000000ull;
    int left = trial->plan.procs;
    bool ended = false, same_look = false;

    while (left) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid > 0) {
            int proc = proc_of(trial, pid);
            trial->pid[proc] = 0;
            /* Of several that one look finds, the kernel does not tell which was first. */
            trial->victim_was_last =
                is_victim(trial, proc) || (same_look && trial->victim_was_last);
            same_look = true;
            left--;
            if (!ended)
                note_exit(trial, proc, status);
            continue;
        }
        if (!ended && rig_now_us() > end) {
            end_hung(trial, left);
            ended = true;
        } else if (!ended && atomic_load(&trial->board->failed)) {
            /* The others would only wait for the process that gave up. */
            usleep(1000);
            snprintf(trial->reason, sizeof(trial->reason), "%s", trial->board->report);
            for (int p = 0; p < trial->plan.procs; p++)
                if (trial->pid[p])
                    kill(trial->pid[p], SIGKILL);
            ended = true;
        }
        same_look = false;
        usleep(500);
    }
}

static void visit(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        struct rig rig;
        exit(rig_open(&rig) || rig_close(&rig));
    }
    waitpid(pid, NULL, 0);
}

/* If the killed process was the last, it could not clean up: the next process does. */
static void check_segment(struct trial *trial)
{
    char path[256];

    rig_segment_path(trial->fabric, path, sizeof(path));
    if (trial->reason[0]) {
        unlink(path);
        return;
    }
    if (access(path, F_OK))
        return;
    visit();
    bool cleaned = access(path, F_OK) != 0;
    if (!trial->victim_was_last || !cleaned)
        snprintf(trial->reason, sizeof(trial->reason), "segment left behind%s",
                 cleaned ? "" : ", also by the next user");
    unlink(path);
}

static void add_victims(struct trial *trial)
{
    for (int v = 0; v < trial->victim_count; v++) {
        size_t used = strlen(trial->reason);
        snprintf(trial->reason + used, sizeof(trial->reason) - used, ", %d was killed",
                 trial->victims[v]);
    }
}

static bool run_trial(const struct options *options, uint64_t seed, int number)
{
    struct trial trial = { .options = options };
    uint64_t start = rig_now_us();

    plan_make(&trial.plan, seed, options->procs, options->ops);
    trial.plan.with_kills = options->kill;
    if (options->verbose)
        plan_print(&trial.plan);
    trial.board =
        mmap(NULL, sizeof(*trial.board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (trial.board == MAP_FAILED) {
        perror("mmap");
        exit(2);
    }
    snprintf(trial.fabric, sizeof(trial.fabric), "stress-%d-%d", getpid(), number);
    setenv("VERBENA_FABRIC", trial.fabric, 1);
    open_sockets(&trial);
    spawn(&trial);
    close_sockets(&trial, -1);
    if (options->kill)
        kill_victims(&trial);
    wait_all(&trial);
    check_segment(&trial);
    munmap(trial.board, sizeof(*trial.board));
    if (trial.reason[0]) {
        add_victims(&trial);
        printf("FAIL %s-%d: %s (seed %llu)\n", options->kill ? "kill" : "mixed", number,
               trial.reason, (unsigned long long)seed);
    } else {
        printf("ok %s-%d (seed %llu, %d processes, %d links, %d killed, %.2f s)\n",
               options->kill ? "kill" : "mixed", number, (unsigned long long)seed, trial.plan.procs,
               trial.plan.links, trial.victim_count, (rig_now_us() - start) / 1e6);
    }
    fflush(stdout);
    return !trial.reason[0];
}

static void usage(FILE *out)
{
    fprintf(out, "usage: stress [--seed S] [--procs N] [--ops N] [--trials N] [--kill]\n"
                 "              [--kill-window US] [--limit S] [--verbose]\n"
                 "Trial k of a run uses seed S + k; `--seed S --trials 1` replays it.\n");
}

static int parse(int argc, char **argv, struct options *options)
{
    static const struct option names[] = {
        { "seed", required_argument, NULL, 's' },  { "procs", required_argument, NULL, 'p' },
        { "ops", required_argument, NULL, 'o' },   { "trials", required_argument, NULL, 't' },
        { "kill", no_argument, NULL, 'k' },        { "kill-window", required_argument, NULL, 'w' },
        { "limit", required_argument, NULL, 'l' }, { "verbose", no_argument, NULL, 'v' },
        { "help", no_argument, NULL, 'h' },        { NULL, 0, NULL, 0 },
    };
    int c;

    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (c) {
        case 's':
            options->seed = strtoull(optarg, NULL, 0);
            break;
        case 'p':
            options->procs = atoi(optarg);
            break;
        case 'o':
            options->ops = strtoul(optarg, NULL, 0);
            break;
        case 't':
            options->trials = atoi(optarg);
            break;
        case 'k':
            options->kill = true;
            break;
        case 'w':
            options->kill_window_us = strtoul(optarg, NULL, 0);
            break;
        case 'l':
            options->limit_s = atoi(optarg);
            break;
        case 'v':
            options->verbose = true;
            break;
        default:
            usage(c == 'h' ? stdout : stderr);
            return c == 'h' ? 0 : 2;
        }
    }
    if (options->procs < 0 || options->procs > MAX_PROCS || options->procs == 1 ||
        !options->kill_window_us || !options->ops) {
        usage(stderr);
        return 2;
    }
    return -1;
}

int main(int argc, char **argv)
{
    struct options options = {
        .seed = time(NULL) * 1000003ull + getpid(),
        .ops = 1000,
        .trials = 1,
        .kill_window_us = 60000,
        .limit_s = 60,
    };
    int failed = 0;
    int done = parse(argc, argv, &options);

    if (done >= 0)
        return done;
    printf("# seed %llu, %d trials of about %u operations a link%s\n",
           (unsigned long long)options.seed, options.trials, options.ops,
           options.kill ? ", with kills" : "");
    for (int i = 0; i < options.trials; i++)
        failed += !run_trial(&options, options.seed + i, i);
    printf("%d passed, %d failed\n", options.trials - failed, failed);
    return failed ? 1 : 0;
}
