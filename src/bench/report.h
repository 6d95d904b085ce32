/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints measurements as a table while they are made, and stores them in the results. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "bench/bench.h"

struct report;

struct report *report_new(struct results *results, FILE *out, unsigned int planned);
void report_free(struct report *report);

/* ", about 40 s left", or an empty string as long as that is unknown or less than a second. */
const char *report_time_left(double seconds, unsigned int done, unsigned int planned, char *text,
                             size_t size);

void report_begin(struct report *report, const struct experiment *experiment, const char *group,
                  const struct settings *settings);
void report_panel(struct report *report, const struct panel_spec *spec);
void report_point(struct report *report, unsigned int curve, double x, const struct summary *y);
void report_note(struct report *report, const char *name, const char *text);
void report_end(struct report *report, enum control_status status, const char *why);

#endif
