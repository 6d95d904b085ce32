/* SPDX-License-Identifier: BSD-2-Clause */
/* What the checks tell the user: text on stderr and, if VERBENA_FINDINGS names a file, one line of
 * JSON in it. */
#ifndef CHECK_FINDING_H
#define CHECK_FINDING_H

#include "check/stacktrace.h"

struct finding;

/* Begins a finding of this rule; the text is its first line. NULL: out of memory; the calls below
 * then do nothing. */
struct finding *finding_begin(const char *rule, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Another line. */
void finding_note(struct finding *finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Where something happened: "posted", "registered". */
void finding_stack(struct finding *finding, const char *what, const struct stacktrace *trace);
/* Prints the finding, as one piece, and frees it. */
void finding_end(struct finding *finding);

#endif
