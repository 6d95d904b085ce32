/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for results. None of these fail: out of memory aborts the program. */
#ifndef RESULTS_ALLOCATE_H
#define RESULTS_ALLOCATE_H

#include <stdarg.h>
#include <stddef.h>

void *allocate_zeroed(size_t size);
char *allocate_text(const char *text); /* a copy; NULL if text is NULL */

char *allocate_printed(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));

/* Grows an array of 'count' elements by one. The array must only grow through this function. */
void *allocate_one_more(void *array, unsigned int count, size_t element);

#endif
