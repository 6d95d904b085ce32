/* SPDX-License-Identifier: BSD-2-Clause */
/* Where in the program a call was made. Taking a stack trace records return addresses only; names,
 * files and lines are looked up when it is printed, with elfutils' libdw if that is installed. */
#ifndef CHECK_STACKTRACE_H
#define CHECK_STACKTRACE_H

#include <stddef.h>
#include <stdint.h>

#define STACKTRACE_FRAMES 16

struct stacktrace {
    uint32_t count;
    void *frames[STACKTRACE_FRAMES];
};

/* One line of a printed stack trace. A frame has several if functions were inlined into it. */
struct stacktrace_line {
    char function[128];
    char file[256]; /* empty: unknown */
    int line;
    char object[128]; /* the file that the code was loaded from, without its directory */
};

/* The callers, innermost first, beginning with functions of this library. */
void stacktrace_take(struct stacktrace *trace);

/* The same in the handler of a fault at `pc`, beginning there. */
void stacktrace_take_fault(struct stacktrace *trace, const void *pc);

/* Leaves out the frames of the C library that called main() or the thread. */
void stacktrace_trim(struct stacktrace *trace);

/* Looks up one frame, innermost function first. Returns how many lines were filled: none for code
 * of this library. */
int stacktrace_describe(void *frame, struct stacktrace_line *lines, int capacity);

#endif
