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

/* EPERM is what makes callers ask for less. */
static void an_ordinary_user_is_not_permitted_more(void **state)
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
        cmocka_unit_test(an_ordinary_user_is_not_permitted_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
