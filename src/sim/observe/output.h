/* A file that all processes of a modelled fabric write to, whoever has the turn; what one of them
 * has gathered is in the file before the next one goes on. */
#ifndef SIM_OUTPUT_H
#define SIM_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#define OUTPUT_BUFFER 65536

struct output {
    int file;
    size_t used;
    char buffer[OUTPUT_BUFFER];
};

/* 'anew': what is in the file is given up. Returns 0 or an errno value with the reason logged. */
int output_open(struct output *output, const char *path, bool anew);
/* At most OUTPUT_BUFFER bytes. */
void output_put(struct output *output, const void *bytes, size_t size);
void output_flush(struct output *output);

#endif
