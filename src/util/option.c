/* SPDX-License-Identifier: BSD-2-Clause */
#include "option.h"
#include "nearest.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LENGTH 64

static const char suffixes[] = "KMGT";

bool option_read_number(const char *text, const char **end, uint64_t *out)
{
    const char *suffix;
    char *stop;

    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    *out = strtoull(text, &stop, 10);
    if (errno)
        return false;
    suffix = *stop ? strchr(suffixes, toupper((unsigned char)*stop)) : NULL;
    if (suffix) {
        int shift = 10 * (int)(suffix - suffixes + 1);

        if (*out >> (64 - shift))
            return false;
        *out <<= shift;
        stop++;
    }
    *end = stop;
    return true;
}

const char *option_number_text(uint64_t number, char *text, size_t size)
{
    int power = 0;

    while (number >= 1024 && number % 1024 == 0 && suffixes[power]) {
        number /= 1024;
        power++;
    }
    snprintf(text, size, "%llu%.*s", (unsigned long long)number, power > 0, &suffixes[power - (power > 0)]);
    return text;
}

const struct option_row *option_find(const struct option_row *rows, const char *name, size_t length)
{
    for (const struct option_row *row = rows; row->name; row++) {
        if (strlen(row->name) == length && !strncmp(row->name, name, length))
            return row;
    }
    return NULL;
}

const struct option_row *option_of_word(const struct option_row *rows, const char *word)
{
    if (word[0] != '-')
        return NULL;
    if (word[1] == '-')
        return option_find(rows, word + 2, strcspn(word + 2, "="));
    for (; rows->name; rows++) {
        if (rows->letter && rows->letter == word[1] && !word[2])
            return rows;
    }
    return NULL;
}

void option_unknown(const struct option_row *rows, unsigned int hidden, const char *word,
                    char *error, size_t size)
{
    size_t length = strcspn(word, "= \t\r\n"), dashes = strspn(word, "-");
    struct nearest nearest;
    char name[NEAREST_NAME];

    nearest_begin(&nearest, word + (dashes == 2 ? 0 : length), dashes == 2 ? length : 0);
    for (; rows->name; rows++) {
        snprintf(name, sizeof(name), "--%s", rows->name);
        if (!(rows->tags & hidden))
            nearest_try(&nearest, name);
    }
    snprintf(error, size, "unknown option '%.*s'%s", (int)length, word, nearest_text(&nearest));
}

int option_read_words(const struct option_row *rows, unsigned int hidden, int count, char **words,
                      void *base, char *error, size_t size)
{
    for (int i = 0; i < count; i++) {
        const struct option_row *row = option_of_word(rows, words[i]);
        const char *value = strchr(words[i], '=');

        if (!row || row->tags & hidden) {
            option_unknown(rows, hidden, words[i], error, size);
            return -1;
        }
        if (!value && ++i == count) {
            snprintf(error, size, "--%s needs a value", row->name);
            return -1;
        }
        if (option_store(row, value ? value + 1 : words[i], base, error, size))
            return -1;
    }
    return 0;
}

static bool list_add(struct number_list *list, const struct option_row *row, uint64_t number)
{
    if (number < row->minimum || number > row->maximum || list->count == NUMBERS_MAX)
        return false;
    list->value[list->count++] = number;
    return true;
}

/* "A..B" doubles from A, "A..B:S" adds S; both include B. */
static bool range_add(struct number_list *list, const struct option_row *row, uint64_t first,
                      uint64_t last, uint64_t step)
{
    uint64_t number = first;

    if (last < first)
        return false;
    while (number < last) {
        uint64_t next = step ? number + step : number ? number * 2 : 1;

        if (!list_add(list, row, number) || next <= number)
            return false;
        number = next;
    }
    return list_add(list, row, last);
}

static bool numbers_read(const struct option_row *row, const char *text, struct number_list *list)
{
    uint64_t first, last, step;

    list->count = 0;
    for (;; text++) {
        if (!option_read_number(text, &text, &first))
            return false;
        if (!strncmp(text, "..", 2)) {
            step = 0;
            if (!option_read_number(text + 2, &text, &last))
                return false;
            if (*text == ':' && (!option_read_number(text + 1, &text, &step) || !step))
                return false;
            if (!range_add(list, row, first, last, step))
                return false;
        } else if (!list_add(list, row, first)) {
            return false;
        }
        if (*text != ',')
            return !*text;
    }
}

static bool number_fits(const struct option_row *row, uint64_t number)
{
    const char *rest = row->choices;
    uint64_t choice;

    if (!rest)
        return number >= row->minimum && number <= row->maximum;
    while (option_read_number(rest, &rest, &choice)) {
        if (choice == number)
            return true;
        rest += *rest == ' ';
    }
    return false;
}

static int choice_index(const char *choices, const char *word, size_t length)
{
    int index = 0;

    if (!length)
        return -1;
    for (const char *choice = choices; choice; index++) {
        if (!strncmp(choice, word, length) && (choice[length] == ' ' || !choice[length]))
            return index;
        choice = strchr(choice, ' ');
        choice += choice != NULL;
    }
    return -1;
}

static bool choices_read(const struct option_row *row, const char *text, uint64_t *mask)
{
    *mask = 0;
    for (;;) {
        size_t length = strcspn(text, ",");
        int index = memchr(text, ' ', length) ? -1 : choice_index(row->choices, text, length);

        if (index < 0)
            return false;
        *mask |= 1ull << index;
        if (!text[length])
            return true;
        text += length + 1;
    }
}

static bool name_fits(const char *value)
{
    size_t length = strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789_.-");

    return length && length <= NAME_MAX_LENGTH && !value[length];
}

static bool real_read(const char *text, double *out)
{
    char *end;

    *out = strtod(text, &end);
    return end != text && !*end && *out >= 0 && isfinite(*out);
}

/* The word of the list that is no choice. */
static const char *wrong_choice(const struct option_row *row, const char *value, size_t *length)
{
    for (;; value += *length + 1) {
        *length = row->kind == OPTION_CHOICES ? strcspn(value, ",") : strlen(value);
        if (!value[*length] || choice_index(row->choices, value, *length) < 0)
            return value;
    }
}

static void refuse_choice(const struct option_row *row, const char *value, char *error, size_t size)
{
    struct nearest nearest;
    size_t length;
    const char *wrong = wrong_choice(row, value, &length);

    nearest_begin(&nearest, wrong, length);
    nearest_try_words(&nearest, row->choices);
    snprintf(error, size, "--%s takes %s '%s', not '%s'%s", row->name,
             row->kind == OPTION_CHOICES ? "a comma-separated list of" : "one of", row->choices,
             value, nearest_text(&nearest));
}

static int refuse(const struct option_row *row, const char *value, char *error, size_t size)
{
    char low[24], high[24];
    const char *plural = "";

    option_number_text(row->minimum, low, sizeof(low));
    option_number_text(row->maximum, high, sizeof(high));
    switch (row->choices && row->kind == OPTION_NUMBER ? OPTION_CHOICE : row->kind) {
    case OPTION_NUMBERS:
        plural = "numbers (8,64K or 2..4M or 0..100:25), each ";
        /* fall through */
    case OPTION_NUMBER:
        snprintf(error, size, "--%s takes %sfrom %s to %s, not '%s'", row->name,
                 *plural ? plural : "a number ", low, high, value);
        break;
    case OPTION_REAL:
        snprintf(error, size, "--%s takes a number %s%s, not '%s'", row->name,
                 row->maximum ? "from 0 to " : "of at least 0", row->maximum ? high : "",
                 value);
        break;
    case OPTION_CHOICE:
    case OPTION_CHOICES:
        refuse_choice(row, value, error, size);
        break;
    case OPTION_NAME:
        snprintf(error, size, "--%s takes 1 to %d letters, digits, '_', '.' or '-', not '%s'",
                 row->name, NAME_MAX_LENGTH, value);
        break;
    default:
        snprintf(error, size, "--%s takes %s", row->name,
                 row->kind == OPTION_PATH ? "a path" : "text");
        break;
    }
    return -1;
}

int option_store(const struct option_row *row, const char *value, void *base, char *error,
                 size_t size)
{
    union {
        uint64_t number;
        double real;
        struct number_list list;
    } read;
    void *target = (char *)base + row->offset;
    size_t length = sizeof(uint64_t);
    const void *source = &read.number;
    const char *end = "";
    bool yes = true, fits = false;

    switch (row->kind) {
    case OPTION_FLAG:
        fits = true;
        source = &yes;
        length = sizeof(yes);
        break;
    case OPTION_NUMBER:
        fits = option_read_number(value, &end, &read.number) && !*end && number_fits(row, read.number);
        break;
    case OPTION_NUMBERS:
        fits = numbers_read(row, value, &read.list);
        length = sizeof(read.list);
        break;
    case OPTION_REAL:
        fits = real_read(value, &read.real) &&
               (!row->maximum || read.real <= (double)row->maximum);
        break;
    case OPTION_CHOICE:
        read.number = choice_index(row->choices, value, strlen(value));
        fits = !strchr(value, ' ') && (int)read.number >= 0;
        break;
    case OPTION_CHOICES:
        fits = choices_read(row, value, &read.number);
        break;
    case OPTION_NAME:
    case OPTION_TEXT:
    case OPTION_PATH:
        fits = row->kind == OPTION_NAME ? name_fits(value) : *value;
        source = &value;
        length = sizeof(value);
        break;
    }
    if (!fits)
        return refuse(row, value, error, size);
    if (base)
        memcpy(target, source, length);
    return 0;
}
