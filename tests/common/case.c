/* SPDX-License-Identifier: BSD-2-Clause */
#include "case.h"

#include "rig.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CASE_SECONDS  "30"
#define EXIT_SKIP     77
#define VERDICT_BYTES 512

static char *verdict; /* written by the first process that knows it */

void case_fail(const char *file, int line, const char *fmt, ...)
{
    const char *base = strrchr(file, '/');
    va_list args;

    if (!verdict[0]) {
        int n = snprintf(verdict, VERDICT_BYTES, "%s:%d: ", base ? base + 1 : file, line);
        va_start(args, fmt);
        vsnprintf(verdict + n, VERDICT_BYTES - n, fmt, args);
        va_end(args);
    }
    _exit(1);
}

void case_skip(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(verdict, VERDICT_BYTES, fmt, args);
    va_end(args);
    _exit(EXIT_SKIP);
}

/* The case runs in its own process group, so that all its processes can be killed. */
static int wait_for(pid_t pid)
{
    const char *given = getenv("CASE_SECONDS"), *seconds = given ? given : CASE_SECONDS;
    uint64_t end = rig_now_us() + strtoull(seconds, NULL, 10) * 1000000ull;
    int status;

    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (rig_now_us() > end) {
            snprintf(verdict, VERDICT_BYTES, "hangs after %s s", seconds);
            kill(-pid, SIGKILL);
            waitpid(pid, &status, 0);
            break;
        }
        usleep(500);
    }
    kill(-pid, SIGKILL);
    return status;
}

static enum case_result judge(int status, const char *fabric)
{
    char path[256];

    rig_segment_path(fabric, path, sizeof(path));
    bool left_behind = !unlink(path);
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIP)
        return CASE_SKIPPED;
    if (WIFSIGNALED(status) && !verdict[0])
        snprintf(verdict, VERDICT_BYTES, "died by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else if (WIFEXITED(status) && WEXITSTATUS(status) && !verdict[0])
        snprintf(verdict, VERDICT_BYTES, "ended with %d", WEXITSTATUS(status));
    else if (!verdict[0] && left_behind)
        snprintf(verdict, VERDICT_BYTES, "segment left behind");
    return verdict[0] ? CASE_FAILED : CASE_OK;
}

static void prepare_verdict(void)
{
    if (!verdict)
        verdict =
            mmap(NULL, VERDICT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (verdict == MAP_FAILED) {
        perror("mmap");
        exit(2);
    }
    memset(verdict, 0, VERDICT_BYTES);
}

enum case_result case_run(const char *name, void (*run)(const void *argument), const void *argument)
{
    char fabric[64];

    prepare_verdict();
    snprintf(fabric, sizeof(fabric), "case-%d", (int)getpid());
    setenv("VERBENA_FABRIC", fabric, 1);
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        perror("fork");
        exit(2);
    }
    if (pid == 0) {
        setpgid(0, 0);
        run(argument);
        exit(0);
    }
    setpgid(pid, pid);
    enum case_result result = judge(wait_for(pid), fabric);
    if (result == CASE_SKIPPED)
        printf("skip %s: %s\n", name, verdict);
    else if (result)
        printf("FAIL %s: %s\n", name, verdict);
    else
        printf("ok %s\n", name);
    fflush(stdout);
    return result;
}
