/* SPDX-License-Identifier: BSD-2-Clause */
#include "start.h"
#include "launch.h"
#include "options.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const int forwarded_signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };

static volatile pid_t program;
static volatile sig_atomic_t received;

/* Signals of the terminal go to the whole foreground group: the program has got them already. */
static void forward(int signal, siginfo_t *info, void *unused)
{
    received = signal;
    if (program > 0 && info->si_code != SI_KERNEL)
        kill(program, signal);
}

static void forward_signals(const sigset_t *set)
{
    struct sigaction action = { .sa_sigaction = forward, .sa_flags = SA_SIGINFO | SA_RESTART };

    action.sa_mask = *set;
    for (size_t i = 0; i < sizeof(forwarded_signals) / sizeof(*forwarded_signals); i++) {
        struct sigaction present;

        /* A signal that is ignored (nohup) stays ignored, here and in the program. */
        if (!sigaction(forwarded_signals[i], NULL, &present) && present.sa_handler != SIG_IGN)
            sigaction(forwarded_signals[i], &action, NULL);
    }
}

/* The first file of that name in PATH that access() grants in this mode. */
static bool find(const char *name, int mode, char *path)
{
    const char *search = getenv("PATH");

    if (strchr(name, '/')) {
        snprintf(path, PATH_MAX, "%s", name);
        return !access(path, F_OK);
    }
    for (search = search ? search : "/bin:/usr/bin"; search; search = strchr(search, ':')) {
        int length;

        search += *search == ':';
        length = strcspn(search, ":");
        if (snprintf(path, PATH_MAX, "%.*s/%s", length ? length : 1, length ? search : ".", name) <
                PATH_MAX &&
            !access(path, mode))
            return true;
    }
    return false;
}

bool start_find(const char *name, char *path)
{
    return find(name, X_OK, path);
}

static int exec_failure(const char *name, int cause)
{
    cli_error("%s: %s", name, strerror(cause));
    return cause == ENOENT ? CLI_NOT_FOUND : CLI_NOT_EXECUTABLE;
}

/* execvp() reports EACCES, not ENOENT, if PATH has a directory that this user cannot search. */
static int exec_cause(const char *name, int error)
{
    char path[PATH_MAX];

    return error == EACCES && !find(name, F_OK, path) ? ENOENT : error;
}

int start_check(const char *name)
{
    char path[PATH_MAX];
    struct stat status;

    if (!start_find(name, path))
        return exec_failure(name, ENOENT);
    if (stat(path, &status) || !S_ISREG(status.st_mode) || access(path, X_OK))
        return exec_failure(name, EACCES);
    return CLI_OK;
}

int start_and_wait(const char *path, char **words)
{
    pid_t parent = getpid();
    sigset_t set, before;
    int status;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(forwarded_signals) / sizeof(*forwarded_signals); i++)
        sigaddset(&set, forwarded_signals[i]);
    sigprocmask(SIG_BLOCK, &set, &before);
    program = fork();
    if (program < 0) {
        cli_error("fork: %s", strerror(errno));
        return CLI_FAILED;
    }
    if (!program) {
        /* SIGKILL to "verbena run" must end the program too. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(CLI_FAILED);
        sigprocmask(SIG_SETMASK, &before, NULL);
        execvp(path, words);
        _exit(exec_failure(words[0], exec_cause(path, errno)));
    }
    forward_signals(&set);
    sigprocmask(SIG_SETMASK, &before, NULL);
    while (waitpid(program, &status, 0) < 0) {
        if (errno != EINTR)
            return CLI_FAILED;
    }
    return launch_status(status);
}

int start_signal(void)
{
    return received;
}
