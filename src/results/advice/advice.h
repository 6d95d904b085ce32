/* Advice on how to use a device, drawn from what was measured on it. A finding is one file of this
 * folder that ends in a struct adviser, and one row in table.c; docs/advice_make.md tells the reasoning
 * and where it comes from. */
#ifndef RESULTS_ADVICE_ADVICE_H
#define RESULTS_ADVICE_ADVICE_H

#include "curve.h"

/* A figure that the advice rests on. */
struct evidence {
    const struct results *file;
    const struct experiment_result *experiment;
    const struct series *series;
    double x;
    double value;
};

/* What was found, for programs: "break_even", 16384, "B". */
struct found {
    const char *name;
    const char *unit;
    double value;
};

/* A parameter of the Open MPI component, without its prefix. */
struct parameter {
    const char *name;
    double value;
};

struct advice {
    const struct adviser *adviser;
    char *sentence; /* NULL: nothing was found */
    char *silence;  /* why not */
    unsigned int found_count;
    struct found *found;
    unsigned int evidence_count;
    struct evidence *evidence;
    unsigned int parameter_count;
    struct parameter *parameters;
};

struct body {
    unsigned int count;
    struct results *const *files;
};

struct adviser {
    const char *name;
    const char *question;
    void (*advice_make)(const struct body *body, struct advice *out);
};

extern const struct adviser *const advisers[]; /* ends with NULL */

/* One for each adviser, in their order; to be given back with advice_free(). */
struct advice *advice_make(const struct body *body);
void advice_free(struct advice *advices);

#define ADVICE_PREFIX "mtl_verbena_"

/* For advisers. */

struct source {
    const struct results *file;
    const struct experiment_result *experiment;
    const struct series *series;
};

/* The series of that name, or else the first whose name begins so, in the first file that has one
 * with points. A quantity of NULL is any. */
bool advice_source_find(const struct body *body, const char *experiment, const char *series,
                 const char *quantity, struct source *out);

/* The first series along that axis. */
bool advice_source_along(const struct body *body, const char *experiment, const char *axis,
                  struct source *out);

/* It was measured in virtual time, which has no noise. */
bool advice_source_is_exact(const struct source *source);

/* These end what an adviser has to say, one way or the other. */
void advice_say(struct advice *advice, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void advice_silent(struct advice *advice, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void advice_found(struct advice *advice, const char *name, double value, const char *unit);
void advice_evidence(struct advice *advice, const struct source *source, double x);
void advice_parameter(struct advice *advice, const char *name, double value);

/* A size as people write it, in a buffer of its own for each of a few calls in a row. */
const char *advice_size_text(double size);

#endif
