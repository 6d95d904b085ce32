/* SPDX-License-Identifier: BSD-2-Clause */
/* The syntax of adapter files, lines of "key = value # origin", and the directory that holds them.
 * parameters.h has the keys. */
#ifndef SIM_ADAPTER_FILE_H
#define SIM_ADAPTER_FILE_H

#include <stdbool.h>
#include <stddef.h>

#define ADAPTER_SUFFIX ".adapter"

struct adapter_line {
    unsigned int number;
    const char *key;
    const char *value;
    const char *origin; /* the comment behind '#', or "" */
};

/* Splits one line in place. Returns 1, 0 if the line is blank, or -1 if it is not of the form
 * "key = value". */
int adapter_line_split(char *text, struct adapter_line *line);

/* Calls 'visit' for every line that is not blank. Returns 0; the first non-zero result of 'visit';
 * or -1 with "file: reason" or "file:line: reason" in 'error'. */
int adapter_file_walk(const char *path,
                      int (*visit)(const struct adapter_line *line, void *context), void *context,
                      char *error, size_t size);

/* Whether the name ends in ".adapter", with something before it. */
bool adapter_suffixed(const char *name);

/* Whether the name is a path to a file, not the name of an adapter. */
bool adapter_name_is_path(const char *name);

/* The directory of the adapter files: VERBENA_ADAPTERS, or the one that came with this program or
 * library. Returns 0, or -1 with the reason in 'error'. */
int adapter_directory(char *path, size_t path_size, char *error, size_t size);

/* Calls 'visit' with the name of every adapter of that directory, in the order of the file names.
 * Returns 0, or -1 with the reason in 'error'. */
int adapter_list(void (*visit)(const char *name, void *context), void *context, char *error,
                 size_t size);

#endif
