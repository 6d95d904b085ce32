/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading and writing whole files. System calls bypass the C library's wrappers, so that the guest
 * library of a modelled adapter does not take them for calls of the program. */
#ifndef UTIL_FILE_H
#define UTIL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#define FILE_TEXT_MAX (1ul << 20)   /* files written by people: adapters, sweeps */
#define FILE_DATA_MAX (256ul << 20) /* files written by programs: results */

/* Reads a file or pipe of at most 'limit' bytes. Returns its text, NUL-terminated, to be freed; or
 * NULL with the reason, including the path, in 'error'. */
char *file_read(const char *path, size_t limit, size_t *length, char *error, size_t size);

/* Text collected for a file. */
struct file_text {
    FILE *stream;
    char *text;
    size_t size;
};

/* Returns the stream to write to, or NULL if out of memory. */
FILE *file_begin(struct file_text *file);
/* Writes the collected text with file_write() and frees it. */
int file_end(struct file_text *file, const char *path);
/* Frees the text without writing a file. */
void file_drop(struct file_text *file);
/* Returns the text, to be freed by the caller, or NULL with errno if out of memory. */
char *file_take(struct file_text *file);

/* Whether the path is "-". */
bool file_is_stdout(const char *path);
/* The path as messages have it. */
const char *file_shown(const char *path);

/* From now on, file_write() to "-" alone writes to standard output; whatever else this process or its
 * children print there goes to standard error. Returns 0, or -1 with errno. */
int file_claim_stdout(void);

/* Writes a temporary file beside 'path' and renames it, so 'path' is always complete. Writes
 * directly to anything but a regular file, such as a pipe, and "-" is standard output. Returns 0, or
 * -1 with errno. */
int file_write(const char *path, const void *bytes, size_t size);

/* Writes all bytes. Exceeding the file size limit gives EFBIG, not SIGXFSZ. Returns 0, or -1 with
 * errno. */
int file_append(int fd, const void *bytes, size_t size);

/* posix_fallocate(), but EFBIG instead of SIGXFSZ. Returns 0 or an errno value. */
int file_reserve(int fd, off_t offset, off_t size);

/* Whether both paths lead to one regular file. */
bool file_same(const char *a, const char *b);

#endif
