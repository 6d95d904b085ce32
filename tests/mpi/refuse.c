/* SPDX-License-Identifier: BSD-2-Clause */
/* Preloaded into MPI programs: makes copies from process to process fail. MPI_REFUSED is "read":
 * every other read fails with EFAULT; or "write": every write fails with EPERM. */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

typedef ssize_t (*copy_call)(pid_t, const struct iovec *, unsigned long, const struct iovec *,
                             unsigned long, unsigned long);

static int is_refused(const char *what)
{
    const char *refused = getenv("MPI_REFUSED");

    return refused && !strcmp(refused, what);
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *here, unsigned long here_count,
                         const struct iovec *there, unsigned long there_count, unsigned long flags)
{
    copy_call copy = (copy_call)dlsym(RTLD_NEXT, "process_vm_readv");
    static unsigned int calls;

    if (is_refused("read") && ++calls % 2 == 0) {
        errno = EFAULT;
        return -1;
    }
    return copy(pid, here, here_count, there, there_count, flags);
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *here, unsigned long here_count,
                          const struct iovec *there, unsigned long there_count, unsigned long flags)
{
    copy_call copy = (copy_call)dlsym(RTLD_NEXT, "process_vm_writev");

    if (is_refused("write")) {
        errno = EPERM;
        return -1;
    }
    return copy(pid, here, here_count, there, there_count, flags);
}
