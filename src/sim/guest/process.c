/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes: a child inherits its parent's clock, a program keeps its clock across exec, and a
 * parent waits for its children in virtual time. */
#include "sim/guest/guest.h"

#include <errno.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

EXPORT pid_t fork(void)
{
    struct vthread *vthread;
    pid_t pid;

    if (!IS_GUEST_CALL())
        return REAL(fork)();
    guest_enter();
    vthread = vsched->reserve();
    pid = vthread ? REAL(fork)() : -1;
    if (!pid) {
        guest_on = false;
        guest_restart(vthread);
    } else if (vthread && pid < 0) {
        vsched->unreserve(vthread);
    } else if (vthread) {
        vsched->set_pid(vthread, pid);
    }
    guest_leave();
    return pid;
}

/* The child of a real vfork would share this thread's vthread and stack. */
EXPORT pid_t vfork(void)
{
    return guest_on ? fork() : REAL(fork)();
}

/* ---- exec ---- */

static void before_exec(void)
{
    guest_bypass++;
    spin_finish(); /* a signal of its timer would kill the new program */
    tsc_trap(false);
    vsched->before_exec();
}

static int exec_failed(int result)
{
    int saved = errno;

    vsched->exec_failed();
    tsc_trap(true);
    spin_prepare();
    guest_leave();
    errno = saved;
    return result;
}

EXPORT int execve(const char *path, char *const arguments[], char *const environment[])
{
    if (!IS_GUEST_CALL())
        return REAL(execve)(path, arguments, environment);
    before_exec();
    return exec_failed(REAL(execve)(path, arguments, environment));
}

EXPORT int execvpe(const char *path, char *const arguments[], char *const environment[])
{
    if (!IS_GUEST_CALL())
        return REAL(execvpe)(path, arguments, environment);
    before_exec();
    return exec_failed(REAL(execvpe)(path, arguments, environment));
}

EXPORT int execv(const char *path, char *const arguments[])
{
    if (!IS_GUEST_CALL())
        return REAL(execv)(path, arguments);
    before_exec();
    return exec_failed(REAL(execv)(path, arguments));
}

EXPORT int execvp(const char *path, char *const arguments[])
{
    if (!IS_GUEST_CALL())
        return REAL(execvp)(path, arguments);
    before_exec();
    return exec_failed(REAL(execvp)(path, arguments));
}

EXPORT int fexecve(int fd, char *const arguments[], char *const environment[])
{
    if (!IS_GUEST_CALL())
        return REAL(fexecve)(fd, arguments, environment);
    before_exec();
    return exec_failed(REAL(fexecve)(fd, arguments, environment));
}

/* Collects the arguments of execl() and its kin. Returns NULL with errno set if out of memory. */
static char **gather(const char *first, va_list rest, char ***environment)
{
    char **words, *word = (char *)first;
    size_t count = 0;
    va_list counting;

    va_copy(counting, rest);
    while (va_arg(counting, char *))
        count++;
    va_end(counting);
    words = calloc(count + 2, sizeof(*words));
    if (!words)
        return NULL;
    for (size_t i = 0; word; i++) {
        words[i] = word;
        word = va_arg(rest, char *);
    }
    if (environment)
        *environment = va_arg(rest, char **);
    return words;
}

#define DEFINE_EXECL(name, environment, call)                    \
    EXPORT int name(const char *path, const char *first, ...)    \
    {                                                            \
        char **list = environ, **words;                          \
        va_list rest;                                            \
        int result = -1;                                         \
                                                                 \
        va_start(rest, first);                                   \
        words = gather(first, rest, environment ? &list : NULL); \
        va_end(rest);                                            \
        if (words)                                               \
            result = call(path, words, list);                    \
        free(words);                                             \
        return result;                                           \
    }

DEFINE_EXECL(execl, false, execve)
DEFINE_EXECL(execle, true, execve)
DEFINE_EXECL(execlp, false, execvpe)

/* Programs started without fork() join like programs started from outside. */
#define DEFINE_SPAWN(name)                                                                 \
    EXPORT int name(pid_t *restrict pid, const char *restrict path,                        \
                    const posix_spawn_file_actions_t *actions,                             \
                    const posix_spawnattr_t *restrict attributes, char *const arguments[], \
                    char *const environment[])                                             \
    {                                                                                      \
        int result;                                                                        \
                                                                                           \
        if (!guest_on)                                                                     \
            return REAL(name)(pid, path, actions, attributes, arguments, environment);     \
        tsc_trap(false);                                                                   \
        result = REAL(name)(pid, path, actions, attributes, arguments, environment);       \
        tsc_trap(true);                                                                    \
        return result;                                                                     \
    }

DEFINE_SPAWN(posix_spawn)
DEFINE_SPAWN(posix_spawnp)

EXPORT FILE *popen(const char *command, const char *mode)
{
    FILE *stream;

    if (!guest_on)
        return REAL(popen)(command, mode);
    tsc_trap(false);
    stream = REAL(popen)(command, mode);
    tsc_trap(true);
    return stream;
}

/* ---- waiting for children ---- */

static const struct sched_reason children = { "waits for the end of a child", -1, true };

EXPORT pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
    pid_t found;
    int saved;

    if (!IS_GUEST_CALL())
        return REAL(wait4)(pid, status, options, usage);
    guest_enter();
    vsched->charge(IO_CALL_NS);
    while ((found = REAL(wait4)(pid, status, options | WNOHANG, usage)) == 0 &&
           !(options & WNOHANG))
        vsched->wait(SCHED_NEVER, NOTIFY_DATA, &children);
    saved = errno;
    if (!found)
        vsched->poll_idle(IO_CALL_NS, &children);
    guest_leave();
    errno = saved;
    return found;
}

EXPORT pid_t waitpid(pid_t pid, int *status, int options)
{
    return IS_GUEST_CALL() ? wait4(pid, status, options, NULL)
                           : REAL(waitpid)(pid, status, options);
}

EXPORT pid_t wait(int *status)
{
    return IS_GUEST_CALL() ? wait4(-1, status, 0, NULL) : REAL(wait)(status);
}

EXPORT int system(const char *command)
{
    char *words[] = { "sh", "-c", (char *)command, NULL };
    int status = -1;
    pid_t pid;

    if (!IS_GUEST_CALL() || !command)
        return REAL(system)(command);
    pid = fork();
    if (!pid) {
        execve("/bin/sh", words, environ);
        _exit(127);
    }
    if (pid > 0)
        waitpid(pid, &status, 0);
    return status;
}
