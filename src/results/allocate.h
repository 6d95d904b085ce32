/* Memory for results. There is nothing sensible left to do without it, so none of these fail: out
 * of memory ends the program. */
#ifndef RESULTS_ALLOCATE_H
#define RESULTS_ALLOCATE_H

#include <stdarg.h>
#include <stddef.h>

void *allocate_zeroed(size_t size);
char *allocate_text(const char *text); /* a copy; NULL of NULL */

char *allocate_printed(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));

/* Makes room for one more element in an array that only grows through this. */
void *allocate_one_more(void *array, unsigned int count, size_t element);

#endif
