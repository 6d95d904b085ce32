/* SPDX-License-Identifier: BSD-2-Clause */
/* A file that all processes of a modelled fabric write to, whoever has the turn; what one of them
 * has gathered is in the file before the next one goes on. The file grows while the programs run:
 * whatever ends them, it holds whole records of what happened until then. */
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

/* 'anew': what is in the file is given up. The path stays the caller's. Returns 0 or an errno value
 * with the reason reported. */
int output_open(struct output *output, const char *path, bool anew);
/* One record of at most OUTPUT_BUFFER bytes. */
void output_put(struct output *output, const void *bytes, size_t size);
void output_flush(struct output *output);

/* Tells the command that asked for the file, which then ends with a failure, or else standard
 * error. */
void output_failed(const char *path, int error);

#endif
