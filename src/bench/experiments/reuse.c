#include "reuse.h"

#include <stdlib.h>

static int add_share(struct variants *variants, const struct reuse_scheme *scheme,
                     unsigned int percent)
{
    struct bench *bench = variants->bench;
    const char *why = NULL;
    unsigned int length = scheme->length(bench, percent, &why);
    struct flow_spec *spec;
    unsigned int *order;
    char name[16];

    if (!length) {
        snprintf(name, sizeof(name), "%u%%", percent);
        bench_note(bench, name, "%s", why);
        return BENCH_OK;
    }
    spec = variants_add(variants, "%u%%", percent);
    if (!spec)
        return bench_fail(bench, "more than %u shares of reuse", VARIANTS_MAX);
    order = malloc(length * sizeof(*order));
    if (!order)
        return bench_fail(bench, "out of memory");
    scheme->order(percent, length, order);
    spec->slots = length;
    spec->buffer_of = order;
    return BENCH_OK;
}

int reuse_measure(struct bench *bench, const struct reuse_scheme *scheme)
{
    const struct number_list *shares = &bench->settings->reuse;
    struct variants variants = { .bench = bench, .fit = scheme->fit };
    int status = BENCH_OK;

    for (unsigned int i = 0; i < shares->count && !status; i++)
        status = add_share(&variants, scheme, shares->value[i]);
    if (!status && !variants.count)
        status = bench_fail(bench, "no share of reuse that the scheme knows");
    if (!status)
        status = variants_measure(&variants);
    for (unsigned int i = 0; i < variants.count; i++)
        free((void *)variants.specs[i].buffer_of);
    return status;
}
