/* SPDX-License-Identifier: BSD-2-Clause */
/* A file that all processes of a modelled fabric write to. The running process flushes its buffer
 * before it switches to another one. The file grows while the programs run: even if they are
 * killed, it holds whole records. */
#ifndef SIM_OUTPUT_H
#define SIM_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#define OUTPUT_BUFFER 65536

struct observe_size;

struct output {
    int file;
    const char *path;
    struct observe_size *size; /* of all processes together */
    size_t used;
    char buffer[OUTPUT_BUFFER];
};

/* 'anew' truncates the file. 'path' and 'total' must stay valid. Returns 0 or an errno value with the
 * reason reported. */
int output_open(struct output *output, const char *path, struct observe_size *total, bool anew);

/* Whether the file may grow by that much. If not, it has reached its limit: this is reported, and
 * nothing more is put into the file. */
bool output_fits(struct output *output, size_t size);

/* One record of at most OUTPUT_BUFFER bytes, if it fits. */
void output_put(struct output *output, const void *bytes, size_t size);
/* The last record, for which every limit leaves room. */
#define OUTPUT_END 16
void output_end(struct output *output, const void *bytes, size_t size);
void output_flush(struct output *output);

/* Reports a write error to the command, which then exits with a failure, or else to standard
 * error. */
void output_failed(const char *path, int error);

#endif
