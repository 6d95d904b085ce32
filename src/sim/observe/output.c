/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/observe/output.h"

#include "sim/observe/observe.h"
#include "sim/sched/sched.h"
#include "util/file.h"
#include "util/log.h"
#include "util/option.h"
#include "util/output_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Direct system calls: the guest library intercepts those of the C library. */

int output_open(struct output *output, const char *path, struct observe_size *total, bool anew)
{
    int error;

    output->used = 0;
    output->path = path;
    output->size = total;
    output->file = syscall(SYS_openat, AT_FDCWD, path,
                           O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (anew ? O_TRUNC : 0), 0666);
    if (output->file >= 0)
        return 0;
    error = errno;
    output_failed(path, error);
    return error;
}

/* Returns false if there is no command that reads it. */
static bool tell_command(const char *text)
{
    int file = -1;
    bool told;

    if (*observe->failures)
        file = syscall(SYS_openat, AT_FDCWD, observe->failures, O_WRONLY | O_APPEND | O_CLOEXEC);
    told = file >= 0 && !file_append(file, text, strlen(text));
    if (file >= 0)
        syscall(SYS_close, file);
    return told;
}

void output_failed(const char *path, int error)
{
    char text[PATH_MAX + 128];

    snprintf(text, sizeof(text), "%s: %s\n", path, strerror(error));
    if (!tell_command(text))
        log_error("%s: %s", path, strerror(error));
}

static void report_limit(const struct output *output)
{
    char text[PATH_MAX + 256], limit[24];

    option_number_text(output->size->limit, limit, sizeof(limit));
    snprintf(text, sizeof(text),
             OUTPUT_NOTE "%s: reached its limit of %s: it is complete up to %.6f ms of virtual time\n",
             output->path, limit, sched->now / 1e6);
    if (!tell_command(text))
        log_warn("%.*s", (int)strcspn(text, "\n"), text);
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

bool output_fits(struct output *output, size_t size)
{
    struct observe_size *total = output->size;

    if (!total->full && total->bytes + size + OUTPUT_END > total->limit) {
        total->full = true;
        report_limit(output);
    }
    return !total->full;
}

void output_put(struct output *output, const void *bytes, size_t size)
{
    if (output_fits(output, size))
        output_end(output, bytes, size);
}

void output_end(struct output *output, const void *bytes, size_t size)
{
    output->size->bytes += size;
    if (output->used + size > sizeof(output->buffer))
        output_flush(output);
    memcpy(output->buffer + output->used, bytes, size);
    output->used += size;
}
