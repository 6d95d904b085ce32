/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UTIL_OUTPUT_LIMIT_H
#define UTIL_OUTPUT_LIMIT_H

/* Default size limit of a trace or packet capture, for option_read_number(). */
#define OUTPUT_LIMIT "1G"

#define OUTPUT_LIMIT_MIN (64ull << 10)
#define OUTPUT_LIMIT_MAX (1ull << 50)

/* Of the lines that processes leave for the command in VERBENA_FAILURES, those that do not stand for a
 * failure begin with this mark. */
#define OUTPUT_NOTE "note: "

#endif
