/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks of kernel permissions between processes, tried between siblings: programs on a fabric are
 * siblings too, not parent and child. */
#include "doctor.h"
#include "util/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECRET UINT64_C(0x76657262656e6121)

struct target {
    pid_t pid;
    int fd; /* an eventfd of the target, as the target numbers it */
};

/* At the same address in every process forked from this one. */
static uint64_t memory;

/* The target process changes its own copy of 'memory', reports that it is ready, and sleeps until
 * it is killed. */
static void be_target(bool permit, int ready, int fd)
{
    char byte = 0;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (permit && prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY))
        byte = errno;
    memory = SECRET;
    if (eventfd_write(fd, SECRET) || write(ready, &byte, 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

static int attempt_in_child(int (*attempt)(const struct target *target),
                            const struct target *target)
{
    pid_t child = fork();
    int status;

    if (!child)
        _exit(attempt(target));
    if (child < 0)
        return errno;
    if (waitpid(child, &status, 0) < 0)
        return errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EFAULT;
}

/* Lets one child try 'attempt' on another. Returns 0 or an errno value. */
static int between_siblings(int (*attempt)(const struct target *target), bool permit)
{
    int ready[2], result, fd = eventfd(0, 0);
    struct target target = { .fd = fd };
    char byte;

    if (fd < 0 || pipe(ready))
        return errno;
    target.pid = fork();
    if (!target.pid)
        be_target(permit, ready[1], fd);
    close(ready[1]);
    if (target.pid < 0) {
        result = errno;
    } else {
        result = read(ready[0], &byte, 1) == 1 ? attempt_in_child(attempt, &target) : EPIPE;
        kill(target.pid, SIGKILL);
        waitpid(target.pid, NULL, 0);
    }
    close(ready[0]);
    close(fd);
    return result;
}

static int copy_both_ways(const struct target *target)
{
    uint64_t value = 0;
    struct iovec here = { &value, sizeof(value) }, there = { &memory, sizeof(memory) };

    if (process_vm_readv(target->pid, &here, 1, &there, 1, 0) != sizeof(value))
        return errno;
    if (value != SECRET)
        return EBADMSG;
    if (process_vm_writev(target->pid, &here, 1, &there, 1, 0) != sizeof(value))
        return errno;
    return 0;
}

static int copy_through_file(const struct target *target)
{
    uint64_t value = 0;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/mem", (int)target->pid);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return errno;
    if (pread(fd, &value, sizeof(value), (uintptr_t)&memory) != sizeof(value))
        return errno;
    if (value != SECRET)
        return EBADMSG;
    return pwrite(fd, &value, sizeof(value), (uintptr_t)&memory) == sizeof(value) ? 0 : errno;
}

static int take_descriptor(const struct target *target)
{
    int pidfd = syscall(SYS_pidfd_open, target->pid, 0);
    eventfd_t value = 0;
    int fd;

    if (pidfd < 0)
        return errno;
    fd = syscall(SYS_pidfd_getfd, pidfd, target->fd, 0);
    if (fd < 0)
        return errno;
    return eventfd_read(fd, &value) || value != SECRET ? EBADMSG : 0;
}

static int yama_scope(void)
{
    FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "r");
    int scope = 0;

    if (!file)
        return 0;
    if (fscanf(file, "%d", &scope) != 1)
        scope = 0;
    fclose(file);
    return scope;
}

static const char *refusal_remedy(void)
{
    if (yama_scope() > 1)
        return "sysctl kernel.yama.ptrace_scope=1 (or 0), as root; "
               "until then the slower copy agent is used";
    return "a seccomp or container profile denies it: use 'docker run --cap-add SYS_PTRACE' or a "
           "newer "
           "profile; until then the slower copy agent is used";
}

void doctor_check_process_vm(struct finding *finding)
{
    int plain = between_siblings(copy_both_ways, false);
    int permitted = plain ? between_siblings(copy_both_ways, true) : 0;

    if (!plain) {
        doctor_found(finding, VERDICT_YES,
                     "process_vm_readv and process_vm_writev work between siblings");
    } else if (!permitted) {
        doctor_found(finding, VERDICT_YES,
                     "denied by default (%s), works after PR_SET_PTRACER, which the library calls",
                     strerror(plain));
    } else if (!between_siblings(copy_through_file, true)) {
        doctor_found(
            finding, VERDICT_NO,
            "process_vm_readv: %s; /proc/PID/mem works: memory that peers do not map is copied "
            "at about a third of the bandwidth",
            strerror(permitted));
        doctor_remedy(finding,
                      "a seccomp profile that permits process_vm_readv and process_vm_writev");
    } else {
        doctor_found(finding, VERDICT_NO, "process_vm_readv: %s", strerror(permitted));
        doctor_remedy(finding, "%s", refusal_remedy());
    }
}

void doctor_check_yama(struct finding *finding)
{
    static const char *const meanings[] = {
        "no restrictions",
        "descendants, and processes named with PR_SET_PTRACER",
        "administrators only",
        "nobody",
    };
    int scope = yama_scope();

    if (access("/proc/sys/kernel/yama/ptrace_scope", F_OK)) {
        doctor_found(finding, VERDICT_NOTE, "not in this kernel: no restrictions");
        return;
    }
    doctor_found(finding, scope > 1 ? VERDICT_NO : VERDICT_NOTE, "ptrace_scope is %d: %s", scope,
                 scope >= 0 && scope < 4 ? meanings[scope] : "unknown");
    if (scope > 1)
        doctor_remedy(
            finding,
            "sysctl kernel.yama.ptrace_scope=1, as root (3 can be changed only by a reboot)");
}

void doctor_check_ptracer(struct finding *finding)
{
    int result = prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY) ? errno : 0;

    prctl(PR_SET_PTRACER, 0);
    if (!result)
        doctor_found(finding, VERDICT_YES, "PR_SET_PTRACER works");
    else if (result == EINVAL)
        doctor_found(finding, VERDICT_NOTE,
                     "PR_SET_PTRACER is not available: this kernel has no Yama");
    else
        doctor_found(finding, VERDICT_NO, "PR_SET_PTRACER: %s", strerror(result));
}

void doctor_check_copy_mode(struct finding *finding)
{
    const char *asked = getenv("VERBENA_COPY");

    if (asked && !strcmp(asked, "agent"))
        doctor_found(finding, VERDICT_NOTE,
                     "copy agent, slower, because VERBENA_COPY=agent is set");
    else if (!between_siblings(copy_both_ways, true))
        doctor_found(finding, VERDICT_NOTE,
                     "direct: the initiator calls process_vm_readv and process_vm_writev");
    else if (!between_siblings(copy_through_file, true))
        doctor_found(
            finding, VERDICT_NOTE,
            "direct: the initiator reads and writes /proc/PID/mem, because process_vm_readv "
            "is denied");
    else
        doctor_found(
            finding, VERDICT_NOTE,
            "copy agent: a thread of the owner copies, slower, because process_vm_readv is denied");
}

void doctor_check_pidfd(struct finding *finding)
{
    int result = between_siblings(take_descriptor, true);

    if (!result) {
        doctor_found(finding, VERDICT_YES, "pidfd_open and pidfd_getfd work between siblings");
        return;
    }
    doctor_found(finding, VERDICT_NO,
                 "pidfd_open and pidfd_getfd: %s; programs that block are woken through named "
                 "pipes beside the segment, as fast",
                 strerror(result));
    doctor_remedy(finding,
                  "none needed; Linux 5.6 and a profile that permits it avoid those files");
}

void doctor_check_membarrier(struct finding *finding)
{
    int commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

    if (commands > 0 && commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED) {
        doctor_found(finding, VERDICT_YES, "membarrier supports GLOBAL_EXPEDITED");
        return;
    }
    doctor_found(finding, VERDICT_NO, "membarrier: %s; every operation needs a fence, about 10 ns",
                 commands < 0 ? strerror(errno) : "no GLOBAL_EXPEDITED");
    doctor_remedy(finding,
                  "needs Linux 4.16 or later, and a seccomp profile that permits membarrier");
}

static unsigned long namespace_inode(const char *path)
{
    struct stat st;

    return stat(path, &st) ? 0 : st.st_ino;
}

void doctor_check_namespaces(struct finding *finding)
{
    bool pid = namespace_inode("/proc/self/ns/pid") == KERNEL_FIRST_PID_NAMESPACE;
    bool user = namespace_inode("/proc/self/ns/user") == KERNEL_FIRST_USER_NAMESPACE;

    doctor_found(finding, VERDICT_NOTE,
                 "PID namespace: %s, user namespace: %s; processes of other namespaces that share "
                 "the segment are reached through their copy agents, slower",
                 pid ? "the first" : "a container's", user ? "the first" : "a container's");
}
