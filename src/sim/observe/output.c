#include "sim/observe/output.h"

#include "util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* System calls are made directly: what is written here is no act of the program, whose calls may be
 * seen by the model. */

int output_open(struct output *output, const char *path, bool anew)
{
    int error;

    output->used = 0;
    output->file = syscall(SYS_openat, AT_FDCWD, path,
                           O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (anew ? O_TRUNC : 0), 0666);
    if (output->file >= 0)
        return 0;
    error = errno;
    log_error("%s: %s", path, strerror(error));
    return error;
}

/* After the first failure nothing more is written: a file with a gap would mislead. */
void output_flush(struct output *output)
{
    const char *at = output->buffer;
    size_t left = output->used;

    output->used = 0;
    while (left && output->file >= 0) {
        ssize_t written = syscall(SYS_write, output->file, at, left);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            log_error("writing what was recorded: %s", strerror(errno));
            syscall(SYS_close, output->file);
            output->file = -1;
            return;
        }
        at += written;
        left -= written;
    }
}

void output_put(struct output *output, const void *bytes, size_t size)
{
    if (output->used + size > sizeof(output->buffer))
        output_flush(output);
    memcpy(output->buffer + output->used, bytes, size);
    output->used += size;
}
