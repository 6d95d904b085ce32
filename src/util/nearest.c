/* SPDX-License-Identifier: BSD-2-Clause */
#include "nearest.h"

#include <stdio.h>
#include <string.h>

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Insertions, deletions, changes and exchanges of neighbouring letters that turn 'a' into 'b':
 * the optimal string alignment distance. Both are shorter than NEAREST_NAME. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][NEAREST_NAME], width = strlen(b);
    size_t *before = rows[0], *above = rows[1], *row = rows[2];

    for (size_t k = 0; k <= width; k++)
        above[k] = k;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t *free_row = before;

        row[0] = i;
        for (size_t k = 1; k <= width; k++) {
            row[k] = least(least(above[k], row[k - 1]) + 1, above[k - 1] + (a[i - 1] != b[k - 1]));
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                row[k] = least(row[k], before[k - 2] + 1);
        }
        before = above;
        above = row;
        row = free_row;
    }
    return above[width];
}

void nearest_begin(struct nearest *nearest, const char *typed, size_t length)
{
    *nearest = (struct nearest){ 0 };
    if (length > 1 && length < sizeof(nearest->typed))
        memcpy(nearest->typed, typed, length);
}

static void keep(struct nearest *nearest, const char *name, size_t far)
{
    unsigned int at = nearest->count;

    for (unsigned int i = 0; i < nearest->count; i++) {
        if (!strcmp(nearest->best[i].name, name))
            return;
    }
    while (at && far < nearest->best[at - 1].distance)
        at--;
    if (at == NEAREST_MAX)
        return;
    nearest->count += nearest->count < NEAREST_MAX;
    memmove(&nearest->best[at + 1], &nearest->best[at],
            (nearest->count - at - 1) * sizeof(nearest->best[0]));
    strcpy(nearest->best[at].name, name);
    nearest->best[at].distance = far;
}

void nearest_try(struct nearest *nearest, const char *name)
{
    const char *typed = nearest->typed;
    size_t length = strlen(typed), tolerated = 1 + length / 5, far;

    if (!length || strlen(name) >= NEAREST_NAME)
        return;
    far = distance(typed, name);
    if (far > tolerated && (strstr(name, typed) || (strlen(name) > 2 && strstr(typed, name))))
        far = tolerated;
    if (far <= tolerated)
        keep(nearest, name, far);
}

void nearest_try_words(struct nearest *nearest, const char *words)
{
    char name[NEAREST_NAME];

    while (*words) {
        size_t length = strcspn(words, " ");

        if (length && length < sizeof(name)) {
            snprintf(name, sizeof(name), "%.*s", (int)length, words);
            nearest_try(nearest, name);
        }
        words += length;
        words += strspn(words, " ");
    }
}

const char *nearest_text(struct nearest *nearest)
{
    size_t used = 0;

    nearest->text[0] = '\0';
    for (unsigned int i = 0; i < nearest->count; i++)
        used += snprintf(nearest->text + used, sizeof(nearest->text) - used, "%s%s",
                         !i                        ? "; did you mean "
                         : i + 1 < nearest->count ? ", "
                                                   : " or ",
                         nearest->best[i].name);
    if (used)
        snprintf(nearest->text + used, sizeof(nearest->text) - used, "?");
    return nearest->text;
}
