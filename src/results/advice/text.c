/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers in engineering notation: three significant digits and a prefix, never an exponent. */
#include "advice.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TEXTS 8

static char *next_text(void)
{
    static _Thread_local char texts[TEXTS][ADVICE_TEXT];
    static _Thread_local unsigned int next;

    return texts[next++ % TEXTS];
}

/* As many decimals as leave three significant digits, without trailing zeros. */
static int put_number(char *text, double value)
{
    double size = fabs(value);
    int decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
    int length = snprintf(text, ADVICE_TEXT, "%.*f", decimals, value);

    while (strchr(text, '.') && (text[length - 1] == '0' || text[length - 1] == '.')) {
        bool point = text[length - 1] == '.';

        text[--length] = '\0';
        if (point)
            break;
    }
    return length;
}

/* The largest unit in which the value is at least 1, or the smallest. */
static char *scaled(double value, double base, const char *const *units, unsigned int count)
{
    char *text = next_text();
    unsigned int unit = 0;
    int length;

    while (unit + 1 < count && fabs(value) >= base * 0.9995) {
        value /= base;
        unit++;
    }
    length = put_number(text, value);
    snprintf(text + length, ADVICE_TEXT - length, "%s", units[unit]);
    return text;
}

const char *advice_size_text(double size)
{
    static const char *const units[] = { "", "K", "M", "G", "T" };

    return scaled(round(size), 1024, units, sizeof(units) / sizeof(*units));
}

const char *advice_time_text(double us)
{
    static const char *const units[] = { " ns", " us", " ms", " s" };

    return scaled(us * 1000, 1000, units, sizeof(units) / sizeof(*units));
}

const char *advice_quantity_text(double value, const char *unit)
{
    static const char *const rates[] = { " MB/s", " GB/s", " TB/s" };
    static const char *const prefixes[] = { "", "k", "M", "G" };
    size_t length;
    char *text;

    if (!strcmp(unit, "B"))
        return advice_size_text(value);
    if (!strcmp(unit, "us") || !strcmp(unit, "ns"))
        return advice_time_text(*unit == 'u' ? value : value / 1000);
    if (!strcmp(unit, "MB/s"))
        return scaled(value, 1000, rates, sizeof(rates) / sizeof(*rates));
    text = scaled(value, 1000, prefixes, sizeof(prefixes) / sizeof(*prefixes));
    length = strlen(text);
    snprintf(text + length, ADVICE_TEXT - length, "%s%s", *unit ? " " : "", unit);
    return text;
}
