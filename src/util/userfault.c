/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/userfault.h"

#include "util/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BUSY_TRIES 200 /* a peer's copy pins pages for microseconds, a registration permanently */

static int open_by_device(void)
{
    int device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);

    if (device < 0) {
        errno = EPERM;
        return -1;
    }
    int fd = ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK);
    int err = errno;
    close(device);
    errno = err;
    return fd;
}

int userfault_open(bool user_only)
{
    struct uffdio_api api = { .api = UFFD_API, .features = KERNEL_UFFD_FEATURE_MOVE };
    int fd =
        syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | (user_only ? UFFD_USER_MODE_ONLY : 0));

    if (fd < 0 && errno == EPERM && !user_only)
        fd = open_by_device();
    if (fd >= 0 && ioctl(fd, UFFDIO_API, &api)) {
        close(fd);
        errno = ENOSYS;
        return -1;
    }
    return fd;
}

int userfault_watch(int uffd, unsigned long addr, unsigned long length)
{
    struct uffdio_register r = { .range = { addr, length }, .mode = UFFDIO_REGISTER_MODE_MISSING };

    return ioctl(uffd, UFFDIO_REGISTER, &r) ? errno : 0;
}

int userfault_move(int uffd, unsigned long to, unsigned long from, unsigned long length,
                   unsigned long *done)
{
    unsigned tries = 0;

    for (*done = 0; *done < length;) {
        struct kernel_uffdio_move m = { to + *done, from + *done, length - *done, 0, 0 };
        if (!ioctl(uffd, KERNEL_UFFDIO_MOVE, &m))
            m.moved = length - *done;
        else if (m.moved <= 0 && errno != EAGAIN && (errno != EBUSY || ++tries > BUSY_TRIES))
            return errno;
        else if (m.moved <= 0)
            sched_yield();
        if (m.moved > 0) {
            *done += m.moved;
            tries = 0;
        }
    }
    return 0;
}
