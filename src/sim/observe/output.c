/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/observe/output.h"

#include "sim/observe/observe.h"
#include "util/file.h"
#include "util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Direct system calls: the guest library intercepts those of the C library. */

int output_open(struct output *output, const char *path, bool anew)
{
    int error;

    output->used = 0;
    output->path = path;
    output->file = syscall(SYS_openat, AT_FDCWD, path,
                           O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (anew ? O_TRUNC : 0), 0666);
    if (output->file >= 0)
        return 0;
    error = errno;
    output_failed(path, error);
    return error;
}

void output_failed(const char *path, int error)
{
    char text[PATH_MAX + 128];
    int length = snprintf(text, sizeof(text), "%s: %s\n", path, strerror(error)), file = -1;
    bool told;

    if (*observe->failures)
        file = syscall(SYS_openat, AT_FDCWD, observe->failures, O_WRONLY | O_APPEND | O_CLOEXEC);
    told = file >= 0 && !file_append(file, text, length);
    if (file >= 0)
        syscall(SYS_close, file);
    if (!told)
        log_error("%s: %s", path, strerror(error));
}

/* Nothing is written after the first failure: a file with a gap would mislead. */
void output_flush(struct output *output)
{
    off_t before;
    int error;

    if (output->used && !observe->failed) {
        before = syscall(SYS_lseek, output->file, 0, SEEK_END);
        if (file_append(output->file, output->buffer, output->used)) {
            error = errno;
            observe->failed = true;
            (void)!syscall(SYS_ftruncate, output->file, before); /* drop a partial record */
            output_failed(output->path, error);
        }
    }
    output->used = 0;
}

void output_put(struct output *output, const void *bytes, size_t size)
{
    if (output->used + size > sizeof(output->buffer))
        output_flush(output);
    memcpy(output->buffer + output->used, bytes, size);
    output->used += size;
}
