/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs each test case in its own process, on its own fabric. */
#ifndef TESTS_COMMON_CASE_H
#define TESTS_COMMON_CASE_H

#include <stdbool.h>

enum case_result { CASE_OK, CASE_FAILED, CASE_SKIPPED };

/* Runs a case and prints its result. Kills its processes; a segment left behind is a failure.
 * CASE_SECONDS in the environment: longer than that is a hang. */
enum case_result case_run(const char *name, void (*run)(const void *argument),
                          const void *argument);

/* End the case. */
void case_fail(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), noreturn));
void case_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

#define CHECK(condition, ...)                           \
    do {                                                \
        if (!(condition))                               \
            case_fail(__FILE__, __LINE__, __VA_ARGS__); \
    } while (0)
#define CHECK_INT(actual, expected)                                                             \
    do {                                                                                        \
        long long actual_ = (actual), expected_ = (expected);                                   \
        if (actual_ != expected_)                                                               \
            case_fail(__FILE__, __LINE__, "%s is %lld, not %lld", #actual, actual_, expected_); \
    } while (0)

#endif
