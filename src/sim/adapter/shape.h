/* SPDX-License-Identifier: BSD-2-Clause */
/* The shape of a fabric: its switches, the cables between them, and the switch of each adapter
 * port. A shape also says which turns a packet may take, and in which layer of VLs: packets that
 * wait for credits cannot deadlock, because the channels (a cable and a layer) can be numbered so
 * that every legal route passes them in ascending order (Dally, Seitz 1987). */
#ifndef SIM_ADAPTER_SHAPE_H
#define SIM_ADAPTER_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHAPE_NAME_BYTES   32
#define SHAPE_PHASES_MAX   32
#define SHAPE_CLASSES_MAX  32
#define SHAPE_SWITCHES_MAX 65535

#define SHAPE_SYNTAX                                                         \
    "single[:RADIX], fat-tree:LEVELS/RADIX[/DOWN:UP], torus:XxYxZ[/HOSTS], " \
    "dragonfly:HOSTS/SWITCHES/GLOBAL[/GROUPS], or a file"

enum shape_rule {
    SHAPE_UP_DOWN,   /* no route goes up again */
    SHAPE_TORUS,     /* dimension by dimension; behind the dateline of a ring in another layer */
    SHAPE_DRAGONFLY, /* one local cable in each group; behind each global cable in another layer */
};

/* Each direction has a class, which the rule interprets. */
struct shape_cable {
    uint32_t a, b; /* switches */
    uint8_t from_a, from_b;
};

struct shape {
    enum shape_rule rule;
    uint32_t switch_count, cable_count, host_count;
    char (*names)[SHAPE_NAME_BYTES];
    uint32_t *divisors; /* by switch: destination / divisor chooses among equal ways, modulo their
                         * number (d-mod-k; Zahavi 2010) */
    struct shape_cable *cables;
    uint32_t *hosts; /* by adapter port, in the order of LIDs: its switch */
    bool out_of_memory;
};

/* Adapter ports of the fabric. */
struct shape_ports {
    uint32_t nodes;
    uint32_t per_node;
};

/* Makes the shape that 'text' describes, to be freed with shape_free(). Returns 0, or -1 with the
 * reason in 'error'. */
int shape_make(struct shape *shape, const char *text, const struct shape_ports *ports, char *error,
               size_t size);
void shape_free(struct shape *shape);

/* Rejects what is no shape, however many ports there are. Returns 0, or -1 with the reason. */
int shape_check(const char *text, char *error, size_t size);

/* Settings for parameters_read() with a shape behind them, to be freed; either may be NULL. Returns
 * NULL if out of memory. */
char *shape_settings(const char *settings, const char *shape);

/* ---- rules ---- */

/* Layers of VLs, phases of a packet, and classes of cables that a rule has. A packet begins in
 * phase 0. */
uint32_t shape_layers(enum shape_rule rule);
uint32_t shape_phases(enum shape_rule rule);

/* The phase of a packet behind a cable of this class, and its layer on that cable; -1 if it may not
 * take the cable. */
int shape_turn(enum shape_rule rule, uint32_t phase, uint8_t class, uint8_t *layer);

/* What a cable counts when routes are compared. */
uint32_t shape_weight(enum shape_rule rule, uint8_t class);

/* ---- for the files that make shapes ---- */

enum { SHAPE_UP, SHAPE_DOWN };      /* classes of SHAPE_UP_DOWN */
enum { SHAPE_LOCAL, SHAPE_GLOBAL }; /* classes of SHAPE_DRAGONFLY */
#define SHAPE_RING(dimension, negative, dateline) \
    ((dimension) << 2 | (negative) << 1 | (dateline)) /* classes of SHAPE_TORUS */
#define SHAPE_DIMENSIONS_MAX 5

struct shape_request {
    const char *text; /* behind the word and its colon */
    const struct shape_ports *ports;
    char *error;
    size_t size;
};

/* Each returns 0 or -1. */
int shape_fat_tree(struct shape *shape, const struct shape_request *request);
int shape_torus(struct shape *shape, const struct shape_request *request);
int shape_dragonfly(struct shape *shape, const struct shape_request *request);
int shape_file(struct shape *shape, const struct shape_request *request);

/* Writes the reason; returns -1. */
int shape_fail(const struct shape_request *request, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int shape_fail_full(const struct shape_request *request, uint64_t most);
int shape_fail_switches(const struct shape_request *request, uint64_t count);

/* Takes a number from 1 to 'most', and the separator behind it if there is one. Returns false if
 * there is no such number. */
bool shape_number(const char **at, char separator, uint64_t most, uint32_t *number);

/* Out of memory is reported by shape_make(). */
void shape_add_switch(struct shape *shape, uint32_t divisor, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void shape_add_cable(struct shape *shape, const struct shape_cable *cable);
/* Attaches the ports in blocks: so many to each of the first switches. */
int shape_attach_blocks(struct shape *shape, const struct shape_request *request, uint32_t block);

#endif
