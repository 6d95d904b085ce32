/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/userfault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

/* After EPERM, callers ask for a userfaultfd of user mode only; after EACCES they would give up. */
static void a_refusal_is_eperm(void **state)
{
    pid_t child = fork();
    int status;

    if (!child) {
        if (geteuid() == 0 && setresuid(65534, 65534, 65534))
            _exit(1);
        _exit(userfault_open(false) >= 0 || errno == EPERM || errno == ENOSYS ? 0 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refusal_is_eperm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
