/* SPDX-License-Identifier: BSD-2-Clause */
/* Advice on how to use a device, derived from measurements. Each adviser is a file of this folder
 * that ends in a struct adviser, and a row in table.c; docs/advise.md explains the reasoning. */
#ifndef RESULTS_ADVICE_ADVICE_H
#define RESULTS_ADVICE_ADVICE_H

#include "curve.h"
#include "mtl/parameter_rows.h"

#include <stdio.h>

/* A measured value that supports the advice. */
struct evidence {
    const struct results *file;
    const struct experiment_result *experiment;
    const struct series *series;
    double x;
    double value;
};

/* A finding for programs: "break_even", 16384, "B". */
struct found {
    const char *name;
    const char *unit;
    double value;
};

/* A parameter of the Open MPI component. */
struct parameter {
    const char *name; /* without its prefix */
    uint64_t value;
    bool is_default; /* nothing needs to be set */
};

struct advice {
    const struct adviser *adviser;
    char *text;   /* NULL: no advice */
    char *reason; /* why there is no advice */
    unsigned int found_count;
    struct found *found;
    unsigned int evidence_count;
    struct evidence *evidence;
    unsigned int parameter_count;
    struct parameter *parameters;
};

struct advice_input {
    unsigned int count;
    struct results *const *files;
};

struct adviser {
    const char *name;
    const char *question;
    void (*advise)(const struct advice_input *input, struct advice *out);
};

extern const struct adviser *const advisers[]; /* ends with NULL */

/* Returns one element for each adviser, in their order. The caller calls advice_free(). */
struct advice *advice_make(const struct advice_input *input);
void advice_free(struct advice *advices);

#define ADVICE_PREFIX "mtl_verbena_"

/* For advisers. */

struct source {
    const struct results *file;
    const struct experiment_result *experiment;
    const struct series *series;
};

/* Finds the series of that name, or else the first whose name begins with it, in the first file
 * that has one with points. A quantity of NULL matches any. */
bool advice_source_find(const struct advice_input *input, const char *experiment,
                        const char *series, const char *quantity, struct source *out);

/* Finds the first series over that axis. */
bool advice_source_along(const struct advice_input *input, const char *experiment, const char *axis,
                         struct source *out);

/* Whether it was measured in virtual time, which has no noise. */
bool advice_source_is_exact(const struct source *source);

/* An adviser calls one of these: the advice, or the reason why there is none. */
void advice_say(struct advice *advice, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void advice_none(struct advice *advice, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void advice_found(struct advice *advice, const char *name, double value, const char *unit);
void advice_evidence(struct advice *advice, const struct source *source, double x);

/* Rounds the value to what the measurements support, and limits it to what the component accepts. */
void advice_parameter(struct advice *advice, enum mtl_number number, double value);

/* Prints "mtl_verbena_NAME = VALUE", as files of Open MPI have it. */
void advice_parameter_put(const struct parameter *parameter, FILE *out);

/* Format a number with three significant digits and a prefix: 64K, 3.2 us, 1.25 GB/s. The result is
 * valid for the next seven calls. */
#define ADVICE_TEXT 64
const char *advice_size_text(double size);
const char *advice_time_text(double us);
const char *advice_quantity_text(double value, const char *unit);

#endif
