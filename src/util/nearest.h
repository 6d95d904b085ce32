/* SPDX-License-Identifier: BSD-2-Clause */
/* "did you mean": the known names that look like a mistyped one. */
#ifndef UTIL_NEAREST_H
#define UTIL_NEAREST_H

#include <stddef.h>

#define NEAREST_MAX  3
#define NEAREST_NAME 64

struct nearest {
    char typed[NEAREST_NAME];
    unsigned int count;
    struct {
        char name[NEAREST_NAME];
        size_t distance;
    } best[NEAREST_MAX]; /* the closest first */
    char text[NEAREST_MAX * (NEAREST_NAME + 4) + 32];
};

/* 'length' bytes of 'typed' are what the user typed. */
void nearest_begin(struct nearest *nearest, const char *typed, size_t length);

/* Keeps the name if it contains what was typed, or differs from it in few letters. */
void nearest_try(struct nearest *nearest, const char *name);

/* Tries each word of a list separated by blanks. */
void nearest_try_words(struct nearest *nearest, const char *words);

/* "; did you mean a, b or c?", or an empty string. Valid as long as 'nearest' is. */
const char *nearest_text(struct nearest *nearest);

#endif
