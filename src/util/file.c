/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define INITIAL_CAPACITY 4096
#define TEMPORARY_MAX    100 /* for one file: killed processes leave theirs behind */

/* ---- reading ---- */

static const char *why_not_readable(const struct stat *status)
{
    if (S_ISREG(status->st_mode) || S_ISFIFO(status->st_mode))
        return NULL;
    return S_ISDIR(status->st_mode) ? strerror(EISDIR) : "is a device, not a file";
}

/* Reads up to limit + 1 bytes, so that the caller notices a larger file. Returns NULL with errno.
 */
static char *read_all(int fd, size_t limit, size_t *length)
{
    size_t capacity = INITIAL_CAPACITY;
    char *text = malloc(capacity);

    *length = 0;
    while (text && *length <= limit) {
        ssize_t count = read(fd, text + *length, capacity - *length - 1);

        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            free(text);
            return NULL;
        }
        if (!count)
            break;
        *length += count;
        if (*length + 1 == capacity) {
            char *more = realloc(text, capacity *= 2);

            if (!more)
                free(text);
            text = more;
        }
    }
    if (text)
        text[*length] = '\0';
    return text;
}

char *file_read(const char *path, size_t limit, size_t *length, char *error, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    const char *why = NULL;
    struct stat status;
    char *text = NULL;

    if (fd < 0 || fstat(fd, &status))
        why = strerror(errno);
    else
        why = why_not_readable(&status);
    if (!why) {
        text = read_all(fd, limit, length);
        why = text ? NULL : strerror(errno);
    }
    if (fd >= 0)
        close(fd);
    if (why) {
        snprintf(error, size, "%s: %s", path, why);
    } else if (*length > limit) {
        snprintf(error, size, "%s: larger than the limit of %zu MiB", path, limit >> 20);
        free(text);
        text = NULL;
    }
    return text;
}

/* ---- writing ---- */

FILE *file_begin(struct file_text *file)
{
    *file = (struct file_text){ 0 };
    file->stream = open_memstream(&file->text, &file->size);
    return file->stream;
}

char *file_take(struct file_text *file)
{
    bool whole = !ferror(file->stream);

    if (!fclose(file->stream) && whole)
        return file->text;
    free(file->text);
    errno = ENOMEM;
    return NULL;
}

int file_end(struct file_text *file, const char *path)
{
    char *text = file_take(file);
    int status = text ? file_write(path, text, file->size) : -1;

    free(text);
    return status;
}

void file_drop(struct file_text *file)
{
    fclose(file->stream);
    free(file->text);
}

static const uint64_t size_signal = 1ull << (SIGXFSZ - 1);

/* Between these two calls, exceeding the file size limit is an error, not a signal. */
static uint64_t size_signal_block(void)
{
    uint64_t before = 0;

    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &size_signal, &before, sizeof(before));
    return before;
}

static void size_signal_restore(uint64_t before, int error)
{
    static const struct timespec now;

    if (error == EFBIG)
        syscall(SYS_rt_sigtimedwait, &size_signal, NULL, &now, sizeof(size_signal));
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
}

int file_reserve(int fd, off_t offset, off_t size)
{
    uint64_t before = size_signal_block();
    int error = posix_fallocate(fd, offset, size);

    size_signal_restore(before, error);
    return error;
}

int file_append(int fd, const void *bytes, size_t size)
{
    uint64_t before = size_signal_block();
    const char *at = bytes;
    int error = 0;

    while (size && !error) {
        ssize_t written = syscall(SYS_write, fd, at, size);

        if (written > 0) {
            at += written;
            size -= written;
        } else if (written == 0 || errno != EINTR) {
            error = written ? errno : ENOSPC;
        }
    }
    size_signal_restore(before, error);
    errno = error;
    return error ? -1 : 0;
}

static int open_for_writing(const char *path, int flags)
{
    return syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC | O_NOCTTY | flags, 0666);
}

/* Creates a file with a unique name beside 'path'. */
static int open_beside(const char *path, char *temporary)
{
    for (int i = 0; i < TEMPORARY_MAX; i++) {
        int fd;

        if (snprintf(temporary, PATH_MAX, "%s.%d-%d.part", path, getpid(), i) >= PATH_MAX) {
            errno = ENAMETOOLONG;
            return -1;
        }
        fd = open_for_writing(temporary, O_CREAT | O_EXCL);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

static int append_and_close(int fd, const void *bytes, size_t size)
{
    int status = file_append(fd, bytes, size), error = errno;

    if (syscall(SYS_close, fd) && !status)
        return -1;
    errno = error;
    return status;
}

static int standard_output = STDOUT_FILENO;

int file_claim_stdout(void)
{
    int copy = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

    if (copy < 0 || fflush(stdout) || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return -1;
    standard_output = copy;
    return 0;
}

bool file_is_stdout(const char *path)
{
    return path && !strcmp(path, "-");
}

const char *file_shown(const char *path)
{
    return file_is_stdout(path) ? "standard output" : path;
}

int file_write(const char *path, const void *bytes, size_t size)
{
    char target[PATH_MAX], temporary[PATH_MAX];
    struct stat status;
    bool exists = !stat(path, &status);
    int fd, error;

    if (file_is_stdout(path))
        return fflush(stdout) ? -1 : file_append(standard_output, bytes, size);
    if (exists && !S_ISREG(status.st_mode)) {
        fd = open_for_writing(path, 0);
        return fd < 0 ? -1 : append_and_close(fd, bytes, size);
    }
    /* Replace the target of a symbolic link, not the link. */
    if (exists && realpath(path, target))
        path = target;
    fd = open_beside(path, temporary);
    if (fd < 0)
        return -1;
    if (exists)
        (void)!fchmod(fd, status.st_mode & 07777);
    if (!append_and_close(fd, bytes, size) &&
        !syscall(SYS_renameat, AT_FDCWD, temporary, AT_FDCWD, path))
        return 0;
    error = errno;
    syscall(SYS_unlinkat, AT_FDCWD, temporary, 0);
    errno = error;
    return -1;
}

bool file_same(const char *a, const char *b)
{
    struct stat one, other;

    return !stat(a, &one) && !stat(b, &other) && S_ISREG(one.st_mode) &&
           one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}
