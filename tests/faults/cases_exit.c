/* SPDX-License-Identifier: BSD-2-Clause */
/* A process ends while its threads are inside the library. */
#include "side.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 40

static struct pair pair;

/* On the last core, so that it keeps running while the process ends on another. */
static void move_away(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

static void *poll_forever(void *unused)
{
    struct ibv_wc wc[8];

    move_away();
    for (;;)
        if (ibv_poll_cq(pair.a.send_cq, 8, wc) < 0 ||
            ibv_poll_cq(pair.b.local.recv_cq, 8, wc) < 0)
            return NULL;
}

static void *send_forever(void *unused)
{
    struct request request = { .opcode = IBV_WR_SEND, .len = 16 };

    move_away();
    for (;;) {
        far_post_recv(&pair.b, 0, 0, 64);
        pair_post(&pair, &request);
        request.len = request.len == 16 ? 2000 : 16;
    }
    return NULL;
}

static pid_t start_one_that_ends(int round)
{
    pid_t pid = fork();

    CHECK(pid >= 0, "fork: %s", strerror(errno));
    if (pid)
        return pid;
    pthread_t thread;
    pair_open(&pair, false, &side_usual, &rig_patient);
    CHECK_INT(pthread_create(&thread, NULL, poll_forever, NULL), 0);
    CHECK_INT(pthread_create(&thread, NULL, send_forever, NULL), 0);
    usleep(rig_mix(round) % 3000);
    exit(0);
}

static void await_end(pid_t pid, int round)
{
    int status;

    waitpid(pid, &status, 0);
    CHECK(!WIFSIGNALED(status), "round %d: ended by signal %d (%s)", round, WTERMSIG(status),
          strsignal(WTERMSIG(status)));
    CHECK_INT(WEXITSTATUS(status), 0);
}

/* The last process removes the segment, also if two leave at once. */
static void exit_while_threads_work(bool remote)
{
    char path[256];

    rig_segment_path(getenv("VERBENA_FABRIC"), path, sizeof(path));
    for (int i = 0; i < ROUNDS; i++) {
        pid_t pid = start_one_that_ends(i), other = remote ? start_one_that_ends(i) : 0;
        await_end(pid, i);
        if (other)
            await_end(other, i);
        CHECK(access(path, F_OK), "round %d left the segment behind", i);
    }
}

/* A process that stays frees the objects of those that leave. */
static void exits_leak_nothing(bool remote)
{
    char path[256];
    struct side side;
    struct stat st[2];

    rig_segment_path(getenv("VERBENA_FABRIC"), path, sizeof(path));
    side_open(&side, &side_usual);
    for (int half = 0; half < 2; half++) {
        for (int i = 0; i < ROUNDS / 2; i++)
            await_end(start_one_that_ends(i), i);
        CHECK_INT(stat(path, &st[half]), 0);
    }
    CHECK(st[1].st_blocks <= st[0].st_blocks + st[0].st_blocks / 4,
          "the segment grew from %lld to %lld blocks", (long long)st[0].st_blocks,
          (long long)st[1].st_blocks);
    side_close(&side);
}

const struct fault_case exit_cases[] = {
    { "exit-while-threads-work", exit_while_threads_work, BOTH_WAYS },
    { "exits-leak-nothing", exits_leak_nothing, LOCAL_ONLY },
    { 0 },
};
