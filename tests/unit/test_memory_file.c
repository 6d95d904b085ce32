/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that is a file, where the kernel refuses memfd_create(). */
#include "util/memory_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static bool refuse_memfd(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
           !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* A file that only its owner may open, and that nobody finds by a name. */
static bool is_private(int fd)
{
    struct stat st;

    return fd >= 0 && !fstat(fd, &st) && (st.st_mode & 07777) == 0600 && !st.st_nlink;
}

static bool closes_on_exec(int fd)
{
    return fcntl(fd, F_GETFD) & FD_CLOEXEC;
}

enum outcome { GOOD, BAD, NOT_ALLOWED };

static enum outcome try_dev_shm(const char *root)
{
    int fd, kept;

    if (!refuse_memfd())
        return NOT_ALLOWED;
    fd = memory_file("test", MFD_CLOEXEC);
    kept = memory_file("test", 0);
    if (!is_private(fd) || !is_private(kept))
        return BAD;
    return closes_on_exec(fd) && !closes_on_exec(kept) ? GOOD : BAD;
}

/* There is no /dev/shm. */
static enum outcome try_tmp(const char *root)
{
    if (geteuid() && unshare(CLONE_NEWUSER))
        return NOT_ALLOWED;
    if (chroot(root) || mkdir("/tmp", 0700))
        return NOT_ALLOWED;
    return try_dev_shm(root);
}

/* Programs may have closed their standard input. */
static enum outcome try_without_input(const char *root)
{
    close(STDIN_FILENO);
    return memory_file("test", MFD_CLOEXEC) == STDIN_FILENO ? GOOD : BAD;
}

static void in_child(enum outcome (*attempt)(const char *))
{
    char root[] = "/tmp/verbena-test-XXXXXX", tmp[sizeof(root) + 4];
    int status;

    assert_non_null(mkdtemp(root));
    pid_t child = fork();
    if (!child)
        _exit(attempt(root));
    assert_int_equal(waitpid(child, &status, 0), child);
    snprintf(tmp, sizeof(tmp), "%s/tmp", root);
    rmdir(tmp);
    rmdir(root);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NOT_ALLOWED)
        skip();
    assert_int_equal(WEXITSTATUS(status), GOOD);
}

static void it_is_in_dev_shm(void **state)
{
    in_child(try_dev_shm);
}

static void or_in_tmp(void **state)
{
    in_child(try_tmp);
}

static void zero_is_a_descriptor(void **state)
{
    in_child(try_without_input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_in_dev_shm),
        cmocka_unit_test(or_in_tmp),
        cmocka_unit_test(zero_is_a_descriptor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
