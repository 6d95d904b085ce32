/* Every fault has one defined outcome; each case checks one, in a process of its own. */
#include "side.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CASE_SECONDS 30
#define EXIT_SKIP    77

static char *verdict;
#define VERDICT_BYTES 512

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

/* The case leads its own process group, so that nothing it started stays. */
static int wait_for(pid_t pid)
{
    uint64_t end = rig_now_us() + CASE_SECONDS * 1000000ull;
    int status;

    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (rig_now_us() > end) {
            snprintf(verdict, VERDICT_BYTES, "hangs after %d s", CASE_SECONDS);
            kill(-pid, SIGKILL);
            waitpid(pid, &status, 0);
            break;
        }
        usleep(500);
    }
    kill(-pid, SIGKILL);
    return status;
}

static int judge(int status, const char *fabric)
{
    char path[256];

    rig_segment_path(fabric, path, sizeof(path));
    bool left_behind = !unlink(path);
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIP)
        return EXIT_SKIP;
    if (WIFSIGNALED(status) && !verdict[0])
        snprintf(verdict, VERDICT_BYTES, "died by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else if (WIFEXITED(status) && WEXITSTATUS(status) && !verdict[0])
        snprintf(verdict, VERDICT_BYTES, "ended with %d", WEXITSTATUS(status));
    else if (!verdict[0] && left_behind)
        snprintf(verdict, VERDICT_BYTES, "segment left behind");
    return verdict[0] ? 1 : 0;
}

static int run_one(const struct fault_case *one, bool remote)
{
    char fabric[64];

    memset(verdict, 0, VERDICT_BYTES);
    snprintf(fabric, sizeof(fabric), "faults-%d", getpid());
    setenv("VERBENA_FABRIC", fabric, 1);
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        perror("fork");
        exit(2);
    }
    if (pid == 0) {
        setpgid(0, 0);
        one->run(remote);
        exit(0);
    }
    setpgid(pid, pid);
    int result = judge(wait_for(pid), fabric);
    const char *where = remote ? "two-processes" : "one-process";
    if (result == EXIT_SKIP)
        printf("skip %s/%s: %s\n", one->name, where, verdict);
    else if (result)
        printf("FAIL %s/%s: %s\n", one->name, where, verdict);
    else
        printf("ok %s/%s\n", one->name, where);
    fflush(stdout);
    return result;
}

struct tally {
    int passed;
    int failed;
    int skipped;
};

static void count(struct tally *tally, int result)
{
    if (result == EXIT_SKIP)
        tally->skipped++;
    else if (result)
        tally->failed++;
    else
        tally->passed++;
}

static void run_table(const struct fault_case *table, const char *only, struct tally *tally)
{
    for (; table->name; table++) {
        if (only && strncmp(table->name, only, strlen(only)))
            continue;
        if (table->where != REMOTE_ONLY)
            count(tally, run_one(table, false));
        if (table->where != LOCAL_ONLY)
            count(tally, run_one(table, true));
    }
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : NULL;
    struct tally tally = { 0 };

    verdict = mmap(NULL, VERDICT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (verdict == MAP_FAILED) {
        perror("mmap");
        return 2;
    }
    run_table(queue_cases, only, &tally);
    run_table(access_cases, only, &tally);
    run_table(system_cases, only, &tally);
    printf("%d passed, %d failed, %d skipped\n", tally.passed, tally.failed, tally.skipped);
    return tally.failed ? 1 : 0;
}
