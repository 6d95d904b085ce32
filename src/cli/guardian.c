/* SPDX-License-Identifier: BSD-2-Clause */
#include "guardian.h"
#include "options.h"
#include "orphans.h"
#include "segment.h"
#include "util/sysv_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME         "verbena-guard"
#define PIPE_FD      3 /* the command's end of this pipe closes when the command dies */
#define POLL_US      50000
#define POLLS        1200 /* a minute: a process that lives longer removes the segment itself */
#define UNUSED_POLLS 100  /* programs that are just starting may still create a segment */
#define ORPHAN_POLLS 60   /* ranks notice the death of their launcher, and end */
#define BY_SIGNAL    128  /* exit statuses above */

static pid_t guardian = -1;
static int pipe_fd = -1;
static const char *job; /* its fabric; NULL: orphans may live */

/* Drops everything inherited from the command: terminal, process group, pipes. */
static void detach(int pipe_end)
{
    int copy = fcntl(pipe_end, F_DUPFD, PIPE_FD + 1), null = open("/dev/null", O_RDWR);

    setsid();
    prctl(PR_SET_NAME, NAME); /* ps shows the command line of the command */
    for (int fd = 0; fd < PIPE_FD; fd++)
        dup2(null, fd);
    dup2(copy, PIPE_FD);
    closefrom(PIPE_FD + 1);
}

/* True: the command wrote a byte, there is nothing left to do. False: the command died. */
static bool is_dismissed(void)
{
    char byte;
    ssize_t length;

    do
        length = read(PIPE_FD, &byte, 1);
    while (length < 0 && errno == EINTR);
    return length == 1;
}

static void guard(int pipe_end)
{
    detach(pipe_end);
    if (is_dismissed())
        return;
    for (int polls = 0, unused = 0; polls < POLLS && unused < UNUSED_POLLS; polls++) {
        unused += segment_remove_unused() != SEGMENT_IN_USE;
        if (job && polls == ORPHAN_POLLS)
            orphans_kill(job);
        usleep(POLL_US);
    }
}

static void remove_if_stale(const char *path, void *unused)
{
    segment_remove(path);
}

void guardian_end_orphans(const char *fabric)
{
    job = fabric;
}

void guardian_begin(void)
{
    int pipe_ends[2];

    segment_each(remove_if_stale, NULL);
    sysv_memory_remove_stale();
    if (pipe2(pipe_ends, O_CLOEXEC))
        return;
    guardian = fork();
    if (!guardian) {
        close(pipe_ends[1]);
        guard(pipe_ends[0]);
        _exit(0);
    }
    close(pipe_ends[0]);
    pipe_fd = pipe_ends[1];
}

void guardian_end(int status)
{
    bool removed = segment_remove_unused() != SEGMENT_IN_USE;
    bool orphans = job && status > BY_SIGNAL;

    if (guardian > 0 && (status == CLI_OK || (removed && !orphans)) && write(pipe_fd, "", 1) == 1)
        waitpid(guardian, NULL, 0);
    if (pipe_fd >= 0)
        close(pipe_fd);
}
