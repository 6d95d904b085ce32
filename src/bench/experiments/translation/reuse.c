/* SPDX-License-Identifier: BSD-2-Clause */
#include "reuse.h"
#include "bench/measure/variants.h"

#include <stdlib.h>
#include <unistd.h>

/* Limit of the memory for the buffers of one side in each direction. When it is used up, the new
 * buffers start over. */
#define MEMORY_MAX (64ull << 20)

struct reuse_scheme {
    /* The number of messages after which the sequence of buffers repeats, or 0 and the reason if
     * the scheme has none for this share. */
    unsigned int (*length)(const struct bench *bench, unsigned int percent, const char **why);

    /* Writes the buffer of each of these messages. */
    void (*order)(unsigned int percent, unsigned int length, unsigned int *buffers);

    /* See struct variants. */
    void (*fit)(struct flow_spec *spec);
};

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

int reuse_run(struct bench *bench)
{
    const struct reuse_scheme *scheme = bench->experiment->spec;
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

static unsigned int few_buffers_length(const struct bench *bench, unsigned int percent,
                                       const char **why)
{
    (void)bench;
    if (!percent)
        *why = "has no meaning in this scheme: the buffers would have no end";
    else if (100 % percent)
        *why = "is left out: 100 divided by it is no whole number of buffers";
    return *why ? 0 : 100 / percent;
}

static void few_buffers_order(unsigned int percent, unsigned int length, unsigned int *buffers)
{
    (void)percent;
    for (unsigned int i = 0; i < length; i++)
        buffers[i] = i;
}

const struct reuse_scheme reuse_few_buffers = {
    .length = few_buffers_length,
    .order = few_buffers_order,
};

static uint64_t buffers_of(size_t size)
{
    uint64_t page = sysconf(_SC_PAGESIZE), bytes = (size / page + 1) * page;

    return bytes < MEMORY_MAX ? MEMORY_MAX / bytes : 1;
}

static unsigned int new_buffers_length(const struct bench *bench, unsigned int percent,
                                       const char **why)
{
    uint64_t messages = bench->settings->iterations + bench->settings->warmup;

    (void)why;
    if (percent == 100)
        return 1;
    return messages < buffers_of(0) ? messages : buffers_of(0);
}

static void new_buffers_order(unsigned int percent, unsigned int length, unsigned int *buffers)
{
    unsigned int fresh = 0;

    for (unsigned int i = 0; i < length; i++)
        buffers[i] = (uint64_t)i * percent % 100 < percent ? 0 : ++fresh;
}

/* Shortens the sequence to what the memory holds, and to end just before a use of the common buffer
 * if there is one. */
static void new_buffers_fit(struct flow_spec *spec)
{
    const unsigned int *buffers = spec->buffer_of;
    uint64_t max = buffers_of(spec->size);
    unsigned int end = 0;

    while (end < spec->slots && buffers[end] <= max)
        end++;
    while (end < spec->slots && end > 1 && !buffers[0] && buffers[end])
        end--;
    spec->slots = end;
}

const struct reuse_scheme reuse_new_buffers = {
    .length = new_buffers_length,
    .order = new_buffers_order,
    .fit = new_buffers_fit,
};
