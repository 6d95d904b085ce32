/* SPDX-License-Identifier: BSD-2-Clause */
#include "allocate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *check_allocated(void *memory, size_t size)
{
    if (!memory) {
        fprintf(stderr, "verbena: out of memory (%zu bytes)\n", size);
        abort();
    }
    return memory;
}

void *allocate_zeroed(size_t size)
{
    return check_allocated(calloc(1, size), size);
}

char *allocate_text(const char *text)
{
    return text ? check_allocated(strdup(text), strlen(text) + 1) : NULL;
}

char *allocate_printed(const char *format, va_list arguments)
{
    char *text = NULL;

    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    return check_allocated(text, strlen(format));
}

void *allocate_one_more(void *array, unsigned int count, size_t element)
{
    /* The capacity is always the smallest power of two that is not below the count. */
    if (count & (count - 1))
        return array;
    return check_allocated(reallocarray(array, count ? 2 * (size_t)count : 1, element), element);
}
