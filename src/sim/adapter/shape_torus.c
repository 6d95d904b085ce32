/* SPDX-License-Identifier: BSD-2-Clause */
/* Tori of one to five dimensions. The cable that closes a ring is its dateline. A ring of two
 * switches is one cable. */
#include "sim/adapter/shape.h"

#include <stdio.h>
#include <string.h>

struct torus {
    uint32_t dimensions, sizes[SHAPE_DIMENSIONS_MAX], hosts;
};

static int read_torus(struct torus *torus, const struct shape_request *request)
{
    const char *at = request->text, *slash = strchr(at, '/');
    char sizes[64];
    uint64_t count = 1;

    torus->hosts = 1;
    snprintf(sizes, sizeof(sizes), "%.*s", slash ? (int)(slash - at) : (int)strlen(at), at);
    at = sizes;
    do { /* a number follows each 'x' */
        uint32_t *next = &torus->sizes[torus->dimensions];

        if (torus->dimensions == SHAPE_DIMENSIONS_MAX ||
            !shape_number(&at, 'x', SHAPE_SWITCHES_MAX, next))
            return shape_fail(request, "torus:%s: expected one to %d sizes, such as 8x8x4",
                              request->text, SHAPE_DIMENSIONS_MAX);
        count *= *next;
        torus->dimensions++;
        if (count > SHAPE_SWITCHES_MAX)
            return shape_fail_switches(request, count);
    } while (*at || at[-1] == 'x');
    at = slash ? slash + 1 : "";
    if (slash && (!shape_number(&at, '\0', SHAPE_SWITCHES_MAX, &torus->hosts) || *at))
        return shape_fail(request, "torus:%s: expected the adapter ports of a switch behind '/'",
                          request->text);
    return 0;
}

static void make_switch(struct shape *shape, const struct torus *torus, uint32_t number)
{
    char name[SHAPE_NAME_BYTES] = "s";
    size_t length = 1;

    for (uint32_t d = 0; d < torus->dimensions; d++) {
        length += snprintf(name + length, sizeof(name) - length, "%s%u", d ? "." : "",
                           number % torus->sizes[d]);
        number /= torus->sizes[d];
    }
    shape_add_switch(shape, 1, "%s", name);
}

/* From each switch to the next one of its ring in this dimension. */
static void close_rings(struct shape *shape, const struct torus *torus, uint32_t d, uint32_t step)
{
    uint32_t size = torus->sizes[d];

    for (uint32_t i = 0; i < shape->switch_count; i++) {
        uint32_t at = i / step % size;
        bool dateline = at == size - 1;

        if (dateline && size < 3)
            continue;
        shape_add_cable(shape, &(struct shape_cable){ .a = i,
                                                      .b = dateline ? i - at * step : i + step,
                                                      .from_a = SHAPE_RING(d, 0, dateline),
                                                      .from_b = SHAPE_RING(d, 1, dateline) });
    }
}

int shape_torus(struct shape *shape, const struct shape_request *request)
{
    struct torus torus = { .dimensions = 0 };
    uint32_t count = 1, step = 1;

    if (read_torus(&torus, request))
        return -1;
    shape->rule = SHAPE_TORUS;
    for (uint32_t d = 0; d < torus.dimensions; d++)
        count *= torus.sizes[d];
    for (uint32_t i = 0; i < count; i++)
        make_switch(shape, &torus, i);
    for (uint32_t d = 0; d < torus.dimensions && !shape->out_of_memory; d++) {
        close_rings(shape, &torus, d, step);
        step *= torus.sizes[d];
    }
    return shape_attach_blocks(shape, request, torus.hosts);
}
