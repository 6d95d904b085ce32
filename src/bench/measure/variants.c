/* SPDX-License-Identifier: BSD-2-Clause */
#include "variants.h"

#include <stdarg.h>

struct flow_spec *variants_add(struct variants *variants, const char *format, ...)
{
    struct bench *bench = variants->bench;
    struct flow_spec *spec = &variants->specs[variants->count];
    char *name = variants->names.texts[variants->count];
    va_list arguments;

    if (variants->count == VARIANTS_MAX)
        return NULL;
    va_start(arguments, format);
    vsnprintf(name, SWEEP_NAME_MAX, format, arguments);
    va_end(arguments);
    variants->names.list[variants->count++] = name;
    flow_defaults(bench, 1 - bench->rank, spec);
    spec->operation = sweep_operation(bench);
    spec->wait = __builtin_ctzll(bench->settings->waits);
    return spec;
}

static bool point(const struct sweep *sweep, unsigned int curve, uint64_t size,
                  struct flow_spec *spec)
{
    const struct variants *variants = sweep->context;

    *spec = variants->specs[curve];
    spec->size = size;
    if (size > endpoint_largest_message(variants->bench, spec->transport))
        return false;
    if (variants->fit)
        variants->fit(spec);
    return true;
}

static struct sweep sweep_of(const struct variants *variants, const struct number_list *sizes)
{
    return (struct sweep){ .axis = "size",
                           .axis_unit = "B",
                           .values = sizes,
                           .curves = variants->count,
                           .names = variants->names.list,
                           .point = point,
                           .context = variants };
}

int variants_latency(const struct variants *variants, const struct number_list *sizes)
{
    struct sweep sweep = sweep_of(variants, sizes);

    return sweep_latency(variants->bench, &sweep);
}

static int measure_bandwidth(const struct variants *variants, const struct number_list *sizes)
{
    struct sweep sweep = sweep_of(variants, sizes);

    return sweep_bandwidth(variants->bench, &sweep);
}

int variants_measure(const struct variants *variants)
{
    const struct number_list *sizes = &variants->bench->settings->sizes;

    return variants_latency(variants, sizes) ? BENCH_FAILED : measure_bandwidth(variants, sizes);
}
