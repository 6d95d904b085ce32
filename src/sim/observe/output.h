/* SPDX-License-Identifier: BSD-2-Clause */
/* A file that all processes of a modelled fabric write to. The running process flushes its buffer
 * before it switches to another one. The file grows while the programs run: even if they are
 * killed, it holds whole records. */
#ifndef SIM_OUTPUT_H
#define SIM_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#define OUTPUT_BUFFER 65536

struct output {
    int file;
    const char *path;
    size_t used;
    char buffer[OUTPUT_BUFFER];
};

/* 'anew' truncates the file. 'path' must stay valid. Returns 0 or an errno value with the reason
 * reported. */
int output_open(struct output *output, const char *path, bool anew);
/* One record of at most OUTPUT_BUFFER bytes. */
void output_put(struct output *output, const void *bytes, size_t size);
void output_flush(struct output *output);

/* Reports a write error to the command, which then exits with a failure, or else to standard
 * error. */
void output_failed(const char *path, int error);

#endif
