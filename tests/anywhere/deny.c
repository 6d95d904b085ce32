/* SPDX-License-Identifier: BSD-2-Clause */
/* deny ERRNO CALL... -- PROGRAM...: runs a program to which the kernel refuses these system calls,
 * as a container's seccomp profile does. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALL(name)        \
    {                     \
#name, SYS_##name \
    }

static const struct {
    const char *name;
    unsigned int number;
} calls[] = {
    CALL(process_vm_readv), CALL(process_vm_writev), CALL(pidfd_open),   CALL(pidfd_getfd),
    CALL(userfaultfd),      CALL(membarrier),        CALL(memfd_create),
};
#define CALLS (sizeof(calls) / sizeof(calls[0]))

static const struct {
    const char *name;
    int value;
} errors[] = { { "EPERM", EPERM }, { "ENOSYS", ENOSYS } };

static struct sock_filter program[2 * CALLS + 2] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
};
static unsigned short length = 1;

static int add(const char *name, int error)
{
    for (size_t i = 0; i < CALLS; i++) {
        if (strcmp(calls[i].name, name))
            continue;
        if (length + 3u > sizeof(program) / sizeof(program[0]))
            return -1;
        program[length++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1);
        program[length++] =
            (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error);
        return 0;
    }
    return -1;
}

static int usage(const char *wrong)
{
    fprintf(stderr, "deny: %s\nusage: deny EPERM|ENOSYS CALL... -- PROGRAM...\n", wrong);
    return 2;
}

int main(int argc, char **argv)
{
    struct sock_fprog filter = { .filter = program };
    int error = 0, i = 2;

    for (size_t e = 0; argc > 1 && e < 2; e++)
        if (!strcmp(argv[1], errors[e].name))
            error = errors[e].value;
    if (!error)
        return usage("the first operand is EPERM or ENOSYS");
    for (; i < argc && strcmp(argv[i], "--"); i++)
        if (add(argv[i], error))
            return usage(argv[i]);
    if (i + 1 >= argc)
        return usage("no program");
    program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter.len = length;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
        perror("deny: seccomp");
        return 77;
    }
    execvp(argv[i + 1], argv + i + 1);
    perror(argv[i + 1]);
    return 127;
}
