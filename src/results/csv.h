/* Comma-separated values, as any program writes and reads them. */
#ifndef RESULTS_CSV_H
#define RESULTS_CSV_H

#include <stdbool.h>
#include <stdio.h>

void csv_put_text(const char *text, FILE *out);
void csv_put_number(double number, FILE *out);

/* Reads a line of fields, of which the first 'room' are kept, to be freed; *count is how many there
 * are. False at the end of the file. */
bool csv_read_line(FILE *in, char **fields, unsigned int room, unsigned int *count);

#endif
