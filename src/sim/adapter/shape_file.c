/* SPDX-License-Identifier: BSD-2-Clause */
/* Shapes from a file: lines "switch NAME", "cable SWITCH SWITCH" and "host NODE[.PORT] SWITCH".
 * Routes go up, then down (Autonet; Schroeder and others 1991): a switch is the higher, the further
 * it is from those with hosts, which suits trees; if this does not connect all of them, the nearer
 * it is to the first switch of the file. */
#include "sim/adapter/shape.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-:/"
#define LINE_BYTES      1024
#define NODES_MAX       65535
#define FAR             UINT32_MAX
#define NO_SWITCH       UINT32_MAX

struct reading {
    struct shape *shape;
    const struct shape_request *request;
    uint32_t line;
    bool *has_hosts; /* by switch */
    uint32_t *order; /* by switch: higher ones are larger */
    uint32_t *marked;
};

static int fail_line(const struct reading *reading, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int fail_line(const struct reading *reading, const char *format, ...)
{
    char reason[LINE_BYTES];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    return shape_fail(reading->request, "%s:%u: %s", reading->request->text, reading->line, reason);
}

/* ---- lines ---- */

static uint32_t find_switch(const struct shape *shape, const char *name)
{
    for (uint32_t i = 0; i < shape->switch_count; i++) {
        if (!strcmp(shape->names[i], name))
            return i;
    }
    return NO_SWITCH;
}

static int read_switch(struct reading *reading, char **words)
{
    struct shape *shape = reading->shape;

    if (strlen(words[1]) >= SHAPE_NAME_BYTES)
        return fail_line(reading, "the name '%s' is longer than %d characters", words[1],
                         SHAPE_NAME_BYTES - 1);
    if (words[1][strspn(words[1], NAME_CHARACTERS)])
        return fail_line(reading, "a name has letters, digits and any of . _ - : /, not '%s'",
                         words[1]);
    if (find_switch(shape, words[1]) != NO_SWITCH)
        return fail_line(reading, "there is a switch %s already", words[1]);
    if (shape->switch_count == SHAPE_SWITCHES_MAX)
        return fail_line(reading, "more than %d switches", SHAPE_SWITCHES_MAX);
    shape_add_switch(shape, 1, "%s", words[1]);
    return 0;
}

static int read_cable(struct reading *reading, char **words)
{
    uint32_t ends[2];

    for (int i = 0; i < 2; i++) {
        ends[i] = find_switch(reading->shape, words[1 + i]);
        if (ends[i] == NO_SWITCH)
            return fail_line(reading, "there is no switch %s above this line", words[1 + i]);
    }
    if (ends[0] == ends[1])
        return fail_line(reading, "both ends of the cable are at %s", words[1]);
    shape_add_cable(reading->shape, &(struct shape_cable){ .a = ends[0], .b = ends[1] });
    return 0;
}

/* "3" is every port of node 3, "3.2" its second one. */
static int read_host(struct reading *reading, char **words)
{
    const struct shape_ports *ports = reading->request->ports;
    uint32_t at = find_switch(reading->shape, words[2]), *hosts = reading->shape->hosts;
    char *end;
    unsigned long node = strtoul(words[1], &end, 10), port = 0;

    if (words[1][strspn(words[1], "0123456789.")] || end == words[1] || node >= NODES_MAX)
        return fail_line(reading, "'%s' is no node: expected a number from 0, or NODE.PORT",
                         words[1]);
    if (*end == '.')
        port = strtoul(end + 1, &end, 10);
    if (*end || (!port && strchr(words[1], '.')))
        return fail_line(reading, "'%s': the ports of a node count from 1, as in 0.1", words[1]);
    if (at == NO_SWITCH)
        return fail_line(reading, "there is no switch %s above this line", words[2]);
    reading->has_hosts[at] = true;
    if (node >= ports->nodes || port > ports->per_node)
        return 0;
    for (uint32_t i = port ? port - 1 : 0; i < (port ? port : ports->per_node); i++) {
        if (hosts[node * ports->per_node + i] != NO_SWITCH)
            return fail_line(reading, "port %u of node %lu is on %s already", i + 1, node,
                             reading->shape->names[hosts[node * ports->per_node + i]]);
        hosts[node * ports->per_node + i] = at;
    }
    return 0;
}

static int read_words(struct reading *reading, char **words, int count)
{
    static const struct {
        const char *word;
        int words;
        int (*read)(struct reading *reading, char **words);
        const char *usage;
    } lines[] = {
        { "switch", 2, read_switch, "switch NAME" },
        { "cable", 3, read_cable, "cable SWITCH SWITCH" },
        { "host", 3, read_host, "host NODE[.PORT] SWITCH" },
    };

    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        if (strcmp(words[0], lines[i].word))
            continue;
        return count == lines[i].words ? lines[i].read(reading, words)
                                       : fail_line(reading, "expected: %s", lines[i].usage);
    }
    return fail_line(reading, "'%s' is none of switch, cable, host", words[0]);
}

static int read_lines(struct reading *reading, FILE *file)
{
    char line[LINE_BYTES];

    while (fgets(line, sizeof(line), file)) {
        char *words[4], *rest = line, *word;
        int count = 0;

        reading->line++;
        if (!strchr(line, '\n') && !feof(file))
            return fail_line(reading, "the line is longer than %d characters", LINE_BYTES - 2);
        line[strcspn(line, "#")] = '\0';
        while ((word = strsep(&rest, " \t\r\n"))) {
            if (*word && count < 4)
                words[count++] = word;
        }
        if (count && read_words(reading, words, count))
            return -1;
        if (reading->shape->out_of_memory)
            return 0;
    }
    if (ferror(file))
        return shape_fail(reading->request, "%s: %s", reading->request->text, strerror(errno));
    return reading->shape->switch_count
               ? 0
               : shape_fail(reading->request, "%s: no switch", reading->request->text);
}

/* ---- up and down ---- */

static bool is_up(const struct reading *reading, uint32_t from, uint32_t to)
{
    const uint32_t *order = reading->order;

    return order[to] > order[from] || (order[to] == order[from] && to > from);
}

static void classify(const struct reading *reading)
{
    struct shape *shape = reading->shape;

    for (uint32_t i = 0; i < shape->cable_count; i++) {
        struct shape_cable *cable = &shape->cables[i];
        bool up = is_up(reading, cable->a, cable->b);

        cable->from_a = up ? SHAPE_UP : SHAPE_DOWN;
        cable->from_b = up ? SHAPE_DOWN : SHAPE_UP;
    }
}

/* The distance of each switch from those where it is 0. */
static void measure(const struct shape *shape, uint32_t *distance)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < 2 * shape->cable_count; i++) {
            const struct shape_cable *cable = &shape->cables[i / 2];
            uint32_t from = i % 2 ? cable->b : cable->a, to = i % 2 ? cable->a : cable->b;

            if (distance[from] != FAR && distance[from] + 1 < distance[to]) {
                distance[to] = distance[from] + 1;
                changed = true;
            }
        }
    }
}

/* Marks, from the marked switches on, those that cables of this class lead to. */
static void follow(const struct shape *shape, uint8_t class, uint32_t *marked)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < 2 * shape->cable_count; i++) {
            const struct shape_cable *cable = &shape->cables[i / 2];
            uint32_t from = i % 2 ? cable->b : cable->a, to = i % 2 ? cable->a : cable->b;

            if ((i % 2 ? cable->from_b : cable->from_a) == class && marked[from] && !marked[to]) {
                marked[to] = 1;
                changed = true;
            }
        }
    }
}

/* Whether there is a way up, then down, from every switch with hosts to every other. Stores one
 * that is not reached. */
static bool connects(struct reading *reading, uint32_t *from, uint32_t *to)
{
    struct shape *shape = reading->shape;
    uint32_t *marked = reading->marked;

    for (uint32_t i = 0; i < shape->switch_count; i++) {
        if (!reading->has_hosts[i])
            continue;
        memset(marked, 0, shape->switch_count * sizeof(*marked));
        marked[i] = 1;
        follow(shape, SHAPE_UP, marked);
        follow(shape, SHAPE_DOWN, marked);
        for (uint32_t k = 0; k < shape->switch_count; k++) {
            if (reading->has_hosts[k] && !marked[k]) {
                *from = i;
                *to = k;
                return false;
            }
        }
    }
    return true;
}

static int choose_order(struct reading *reading)
{
    struct shape *shape = reading->shape;
    uint32_t *order = reading->order, from, to;

    for (uint32_t i = 0; i < shape->switch_count; i++)
        order[i] = reading->has_hosts[i] ? 0 : FAR;
    measure(shape, order);
    classify(reading);
    if (connects(reading, &from, &to))
        return 0;
    for (uint32_t i = 0; i < shape->switch_count; i++)
        order[i] = i ? FAR : 0;
    measure(shape, order);
    for (uint32_t i = 0; i < shape->switch_count; i++)
        order[i] = ~order[i];
    classify(reading);
    if (connects(reading, &from, &to))
        return 0;
    return shape_fail(reading->request, "%s: no cable leads from %s to %s", reading->request->text,
                      shape->names[from], shape->names[to]);
}

/* ---- the file ---- */

static int check_hosts(const struct reading *reading)
{
    const struct shape *shape = reading->shape;
    uint32_t per_node = reading->request->ports->per_node;

    for (uint32_t i = 0; i < shape->host_count; i++) {
        if (shape->hosts[i] == NO_SWITCH)
            return shape_fail(reading->request,
                              "%s: port %u of node %u is on no switch: there is no line \"host %u "
                              "SWITCH\"",
                              reading->request->text, i % per_node + 1, i / per_node, i / per_node);
    }
    return 0;
}

static int read_file(struct reading *reading, FILE *file)
{
    const struct shape_ports *ports = reading->request->ports;
    struct shape *shape = reading->shape;

    shape->host_count = ports->nodes * ports->per_node;
    shape->hosts = malloc((shape->host_count + 1ull) * sizeof(*shape->hosts));
    reading->has_hosts = calloc(SHAPE_SWITCHES_MAX, sizeof(*reading->has_hosts));
    if (!shape->hosts || !reading->has_hosts) {
        shape->out_of_memory = true;
        return 0;
    }
    memset(shape->hosts, 0xff, shape->host_count * sizeof(*shape->hosts));
    if (read_lines(reading, file))
        return -1;
    reading->order = malloc(shape->switch_count * sizeof(*reading->order));
    reading->marked = malloc(shape->switch_count * sizeof(*reading->marked));
    if (!reading->order || !reading->marked || shape->out_of_memory) {
        shape->out_of_memory = true;
        return 0;
    }
    return check_hosts(reading) || choose_order(reading) ? -1 : 0;
}

int shape_file(struct shape *shape, const struct shape_request *request)
{
    struct reading reading = { .shape = shape, .request = request };
    FILE *file = fopen(request->text, "r");
    int status;

    if (!file)
        return shape_fail(request, "%s: %s", request->text, strerror(errno));
    status = read_file(&reading, file);
    fclose(file);
    free(reading.has_hosts);
    free(reading.order);
    free(reading.marked);
    return status;
}
