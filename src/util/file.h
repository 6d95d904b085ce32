/* Files that are read and written as a whole. The calls go to the kernel directly: in a program on
 * a modelled adapter, what is written here is no act of the program. */
#ifndef UTIL_FILE_H
#define UTIL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#define FILE_TEXT_MAX (1ul << 20)   /* what people write: adapters, sweeps */
#define FILE_DATA_MAX (256ul << 20) /* what programs write: results */

/* Reads a file, or a pipe to its end, that holds at most 'limit' bytes. Returns its text with a NUL
 * behind it, to be freed, or NULL with the reason, the path included, in 'error'. */
char *file_read(const char *path, size_t limit, size_t *length, char *error, size_t size);

/* Text on its way into a file. */
struct file_text {
    FILE *stream;
    char *text;
    size_t size;
};

/* Returns the stream to write to, or NULL if there is no memory. */
FILE *file_begin(struct file_text *file);
/* Writes what has been gathered with file_write() and frees it. */
int file_end(struct file_text *file, const char *path);
/* Frees it, and leaves the file as it was. */
void file_drop(struct file_text *file);

/* The file appears whole or not at all: it is written beside the path and renamed. What is not a
 * regular file, such as a pipe or /dev/stdout, is written directly. Returns 0, or -1 with errno. */
int file_write(const char *path, const void *bytes, size_t size);

/* Writes all of it. A limit on the size of files gives EFBIG, not SIGXFSZ. Returns 0, or -1 with
 * errno. */
int file_append(int fd, const void *bytes, size_t size);

/* posix_fallocate(), with EFBIG in place of SIGXFSZ. Returns 0 or an errno value. */
int file_reserve(int fd, off_t offset, off_t size);

/* Whether both names lead to one regular file. */
bool file_same(const char *a, const char *b);

#endif
