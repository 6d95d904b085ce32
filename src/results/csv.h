/* SPDX-License-Identifier: BSD-2-Clause */
/* Comma-separated values. */
#ifndef RESULTS_CSV_H
#define RESULTS_CSV_H

#include <stdbool.h>
#include <stdio.h>

void csv_put_text(const char *text, FILE *out);
void csv_put_number(double number, FILE *out);

/* Reads a line. Stores the first 'capacity' fields, which the caller frees, and sets *count to the
 * number of fields in the line. Returns false at the end of the file. */
bool csv_read_line(FILE *in, char **fields, unsigned int capacity, unsigned int *count);

#endif
