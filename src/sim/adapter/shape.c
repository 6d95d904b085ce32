/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/adapter/shape.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRAGONFLY_LAYERS 3 /* global cables that a route passes at most, and one */
#define GLOBAL_WEIGHT    3 /* local, global, local is shorter than twice global */

/* ---- rules ---- */

uint32_t shape_layers(enum shape_rule rule)
{
    static const uint32_t layers[] = {
        [SHAPE_UP_DOWN] = 1, [SHAPE_TORUS] = 2, [SHAPE_DRAGONFLY] = DRAGONFLY_LAYERS
    };

    return layers[rule];
}

uint32_t shape_phases(enum shape_rule rule)
{
    static const uint32_t phases[] = { [SHAPE_UP_DOWN] = 2,
                                       [SHAPE_TORUS] = 1 + 4 * SHAPE_DIMENSIONS_MAX,
                                       [SHAPE_DRAGONFLY] = 2 * DRAGONFLY_LAYERS };

    return phases[rule];
}

/* The phase is the class of the cable before, and whether the dateline of this ring was passed. */
static int turn_in_torus(uint32_t phase, uint8_t class, uint8_t *layer)
{
    uint32_t ring = class >> 1, before = (phase - 1) >> 1;
    bool dateline = class & 1, passed = phase && before == ring && ((phase - 1) & 1);

    if (phase && before != ring && before >> 1 >= ring >> 1)
        return -1;
    if (passed && dateline)
        return -1;
    *layer = passed || dateline;
    return 1 + (ring << 1 | *layer);
}

/* The phase is the layer, and whether the cable before was a local one. */
static int turn_in_dragonfly(uint32_t phase, uint8_t class, uint8_t *layer)
{
    *layer = phase >> 1;
    if (class == SHAPE_LOCAL)
        return phase & 1 ? -1 : (int)phase + 1;
    return *layer + 1 < DRAGONFLY_LAYERS ? (*layer + 1) << 1 : -1;
}

int shape_turn(enum shape_rule rule, uint32_t phase, uint8_t class, uint8_t *layer)
{
    *layer = 0;
    switch (rule) {
    case SHAPE_UP_DOWN:
        return class < phase ? -1 : class;
    case SHAPE_TORUS:
        return turn_in_torus(phase, class, layer);
    case SHAPE_DRAGONFLY:
        return turn_in_dragonfly(phase, class, layer);
    }
    return -1;
}

uint32_t shape_weight(enum shape_rule rule, uint8_t class)
{
    return rule == SHAPE_DRAGONFLY && class == SHAPE_GLOBAL ? GLOBAL_WEIGHT : 1;
}

/* ---- building ---- */

int shape_fail(const struct shape_request *request, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(request->error, request->size, format, arguments);
    va_end(arguments);
    return -1;
}

static uint64_t port_count(const struct shape_request *request)
{
    return (uint64_t)request->ports->nodes * request->ports->per_node;
}

int shape_fail_full(const struct shape_request *request, uint64_t most)
{
    return shape_fail(request,
                      "this shape connects at most %llu adapter ports; this fabric has %llu "
                      "(%u nodes x %u ports)",
                      (unsigned long long)most, (unsigned long long)port_count(request),
                      request->ports->nodes, request->ports->per_node);
}

int shape_fail_switches(const struct shape_request *request, uint64_t count)
{
    return shape_fail(request, "%llu switches are more than %u", (unsigned long long)count,
                      SHAPE_SWITCHES_MAX);
}

bool shape_number(const char **at, char separator, uint64_t most, uint32_t *number)
{
    uint64_t value = 0;
    const char *digit = *at;

    for (; *digit >= '0' && *digit <= '9' && value <= most; digit++)
        value = value * 10 + (*digit - '0');
    if (digit == *at || !value || value > most || (*digit && *digit != separator))
        return false;
    *number = value;
    *at = digit + (*digit != '\0');
    return true;
}

/* Grows an array by doubling. */
static bool make_room(struct shape *shape, void *array, uint32_t count, size_t size)
{
    void **base = array, *larger;

    if (shape->out_of_memory)
        return false;
    if (count & (count - 1))
        return true;
    larger = realloc(*base, (count ? 2ull * count : 1) * size);
    if (larger)
        *base = larger;
    shape->out_of_memory = !larger;
    return larger;
}

void shape_add_switch(struct shape *shape, uint32_t divisor, const char *format, ...)
{
    uint32_t at = shape->switch_count;
    va_list arguments;

    if (!make_room(shape, &shape->names, at, sizeof(*shape->names)) ||
        !make_room(shape, &shape->divisors, at, sizeof(*shape->divisors)))
        return;
    va_start(arguments, format);
    vsnprintf(shape->names[at], sizeof(shape->names[at]), format, arguments);
    va_end(arguments);
    shape->divisors[at] = divisor;
    shape->switch_count++;
}

void shape_add_cable(struct shape *shape, const struct shape_cable *cable)
{
    if (make_room(shape, &shape->cables, shape->cable_count, sizeof(*shape->cables)))
        shape->cables[shape->cable_count++] = *cable;
}

int shape_attach_blocks(struct shape *shape, const struct shape_request *request, uint32_t block)
{
    uint64_t ports = port_count(request), most = (uint64_t)shape->switch_count * block;

    if (ports > most)
        return shape_fail_full(request, most);
    shape->hosts = calloc(ports ? ports : 1, sizeof(*shape->hosts));
    if (!shape->hosts) {
        shape->out_of_memory = true;
        return 0;
    }
    for (uint64_t i = 0; i < ports; i++)
        shape->hosts[i] = i / block;
    shape->host_count = ports;
    return 0;
}

/* ---- the table of shapes ---- */

static int make_single(struct shape *shape, const struct shape_request *request)
{
    const char *at = request->text;
    uint32_t radix = UINT32_MAX;

    if (at && (!shape_number(&at, '\0', UINT32_MAX, &radix) || *at))
        return shape_fail(request, "single:RADIX takes the number of ports of the switch");
    shape_add_switch(shape, 1, "switch");
    return shape_attach_blocks(shape, request, radix);
}

static const struct {
    const char *word;
    int (*make)(struct shape *shape, const struct shape_request *request);
} makers[] = {
    { "single", make_single },
    { "fat-tree", shape_fat_tree },
    { "torus", shape_torus },
    { "dragonfly", shape_dragonfly },
};

static int make(struct shape *shape, const char *text, struct shape_request *request)
{
    for (size_t i = 0; i < sizeof(makers) / sizeof(*makers); i++) {
        size_t length = strlen(makers[i].word);

        if (strncmp(text, makers[i].word, length) || (text[length] && text[length] != ':'))
            continue;
        request->text = text[length] ? text + length + 1 : NULL;
        if (!request->text && makers[i].make != make_single)
            break;
        return makers[i].make(shape, request);
    }
    if (!strpbrk(text, "./"))
        return shape_fail(request, "'%s' is none of " SHAPE_SYNTAX, text);
    request->text = text;
    return shape_file(shape, request);
}

int shape_make(struct shape *shape, const char *text, const struct shape_ports *ports, char *error,
               size_t size)
{
    struct shape_request request = { .ports = ports, .error = error, .size = size };
    int status;

    *shape = (struct shape){ .rule = SHAPE_UP_DOWN };
    status = make(shape, text, &request);
    if (!status && shape->out_of_memory)
        status = shape_fail(&request, "out of memory for the switches of %s", text);
    if (status)
        shape_free(shape);
    return status;
}

void shape_free(struct shape *shape)
{
    free(shape->names);
    free(shape->divisors);
    free(shape->cables);
    free(shape->hosts);
    *shape = (struct shape){ .rule = SHAPE_UP_DOWN };
}

int shape_check(const char *text, char *error, size_t size)
{
    struct shape_ports none = { .nodes = 0, .per_node = 1 };
    struct shape shape;

    if (shape_make(&shape, text, &none, error, size))
        return -1;
    shape_free(&shape);
    return 0;
}

char *shape_settings(const char *settings, const char *shape)
{
    char *both;

    settings = settings ? settings : "";
    if (!shape)
        return strdup(settings);
    return asprintf(&both, "%s;fabric.shape=%s", settings, shape) < 0 ? NULL : both;
}
