/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/spare_fd.h"

#include "util/util.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_OWN_FD 512 /* programs expect to get low numbers */

static int spares[2]; /* the ends of a pipe; 0: not open */
static ino_t pipe_inode;

/* Programs may close all descriptors, and get the same numbers again. */
static bool is_spare(int fd)
{
    struct stat st;

    return fd && !fstat(fd, &st) && S_ISFIFO(st.st_mode) && st.st_ino == pipe_inode;
}

void spare_fd_keep(void)
{
    int ends[2];
    struct stat st;

    if (is_spare(spares[0]) || pipe2(ends, O_CLOEXEC))
        return;
    if (!fstat(ends[0], &st))
        pipe_inode = st.st_ino;
    for (unsigned i = 0; i < ARRAY_SIZE(spares); i++) {
        spares[i] = fcntl(ends[i], F_DUPFD_CLOEXEC, FIRST_OWN_FD);
        if (spares[i] < 0)
            spares[i] = ends[i];
        else
            close(ends[i]);
    }
}

bool spare_fd_release(void)
{
    if ((errno != EMFILE && errno != ENFILE) || !is_spare(spares[0]) || !is_spare(spares[1]))
        return false;
    for (unsigned i = 0; i < ARRAY_SIZE(spares); i++) {
        close(spares[i]);
        spares[i] = 0;
    }
    return true;
}
