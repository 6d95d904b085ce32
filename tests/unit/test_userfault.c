/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/userfault.h"

#include "util/kernel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <sys/syscall.h>
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

/* ---- a kernel that moves pages as it is told ---- */

#define PAGE  4096ul
#define TO    (1ul << 30)
#define FROM  (2ul << 30)
#define PAGES 3

/* Before it moves the next page, the kernel fails that often. */
static struct {
    int failure, times;
} before[PAGES];
static unsigned long moved;

int ioctl(int fd, unsigned long request, ...)
{
    va_list more;
    void *argument;

    va_start(more, request);
    argument = va_arg(more, void *);
    va_end(more);
    if (request != KERNEL_UFFDIO_MOVE)
        return syscall(SYS_ioctl, fd, request, argument);

    struct kernel_uffdio_move *m = argument;
    unsigned long page = moved / PAGE;
    assert_int_equal(m->dst, TO + moved);
    assert_int_equal(m->src, FROM + moved);
    assert_int_equal(m->len, PAGES * PAGE - moved);
    if (before[page].times) {
        before[page].times--;
        errno = before[page].failure;
        m->moved = -errno;
        return -1;
    }
    moved += PAGE;
    m->moved = PAGE;
    errno = EAGAIN;
    return page + 1 == PAGES ? 0 : -1;
}

static int move(int failure, int first, int second, int third, unsigned long *done)
{
    const int times[PAGES] = { first, second, third };

    for (int i = 0; i < PAGES; i++) {
        before[i].failure = failure;
        before[i].times = times[i];
    }
    moved = 0;
    return userfault_move(-1, TO, FROM, PAGES * PAGE, done);
}

static void busy_pages_are_tried_again(void **state)
{
    unsigned long done;

    assert_int_equal(move(EBUSY, 0, 0, 0, &done), 0);
    assert_int_equal(done, PAGES * PAGE);
    assert_int_equal(move(EAGAIN, 1000, 1000, 1000, &done), 0);
    assert_int_equal(done, PAGES * PAGE);
    assert_int_equal(move(EBUSY, 150, 150, 150, &done), 0); /* of each page anew */
    assert_int_equal(done, PAGES * PAGE);
    assert_int_equal(move(EBUSY, 0, 1000, 0, &done), EBUSY);
    assert_int_equal(done, PAGE);
    assert_int_equal(move(ENOENT, 0, 0, 1, &done), ENOENT);
    assert_int_equal(done, 2 * PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refusal_is_eperm),
        cmocka_unit_test(busy_pages_are_tried_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
