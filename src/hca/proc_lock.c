/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/proc_lock.h"

#include "hca/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_BYTE (1ll << 40) /* beyond the end of the file */

static void *holder;

static struct flock range_of(unsigned index, short type)
{
    return (struct flock){
        .l_type = type, .l_whence = SEEK_SET, .l_start = FIRST_BYTE + index, .l_len = 1
    };
}

static int lock_one(int fd, bool (*is_free)(unsigned index))
{
    for (unsigned i = 0; i < MAX_PROCS; i++) {
        struct flock range = range_of(i, F_WRLCK);
        if (!is_free(i))
            continue;
        if (fcntl(fd, F_OFD_SETLK, &range)) {
            if (errno == EAGAIN || errno == EACCES) /* another process is joining */
                continue;
            return -1;
        }
        if (is_free(i))
            return i;
        range.l_type = F_UNLCK;
        fcntl(fd, F_OFD_SETLK, &range);
    }
    errno = EUSERS;
    return -1;
}

/* The lock belongs to the open file, which lives as long as this mapping. Programs that close
 * unknown descriptors do not end it. */
static bool hold(int fd)
{
    holder = (void *)syscall(SYS_mmap, NULL, PAGE_BYTES, PROT_NONE, MAP_SHARED, fd, 0);
    if (holder == MAP_FAILED)
        holder = NULL;
    return holder && !syscall(SYS_madvise, holder, PAGE_BYTES, MADV_DONTFORK);
}

int proc_lock_claim(bool (*is_free)(unsigned index))
{
    int fd = segment_open_again();

    if (fd < 0)
        return -1;
    if (holder)
        syscall(SYS_munmap, holder, PAGE_BYTES);
    holder = NULL;
    int index = lock_one(fd, is_free);
    if (index >= 0 && !hold(fd))
        index = -1;
    int err = errno;
    close(fd);
    errno = err;
    return index;
}

void proc_lock_forget(void)
{
    holder = NULL;
}

enum proc_lock_state proc_lock_state(int fd, unsigned index)
{
    struct flock range = range_of(index, F_WRLCK);

    if (fd < 0 || fcntl(fd, F_OFD_GETLK, &range))
        return PROC_LOCK_UNKNOWN;
    return range.l_type == F_UNLCK ? PROC_LOCK_FREE : PROC_LOCK_HELD;
}
