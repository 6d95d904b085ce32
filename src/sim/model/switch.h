/* SPDX-License-Identifier: BSD-2-Clause */
/* The switches of a fabric, and the links that leave them. */
#ifndef SIM_MODEL_SWITCH_H
#define SIM_MODEL_SWITCH_H

#include "sim/adapter/link_failures.h"
#include "sim/adapter/shape.h"
#include "sim/model/link.h"

struct sim_packet;

/* Outputs of a switch that lead to a destination by equal ways. */
struct route_choices {
    uint16_t count;
    uint16_t outputs[];
};

/* Adaptive routing: the output that a flow used last. */
struct flowlet {
    uint64_t time;
    uint32_t flow;
    uint16_t output;
};

struct fabric_switch {
    char name[SHAPE_NAME_BYTES];
    uint32_t number;
    uint32_t divisor; /* as in struct shape */
    uint32_t output_count;
    struct link *outputs;           /* to other switches */
    uint8_t *classes;               /* of these, as in struct shape */
    struct route_choices **choices; /* each set of outputs once */
    uint32_t choice_count, choice_capacity;
    struct flowlet *flowlets; /* NULL: routing is not adaptive */
};

/* The routes to a switch. */
struct routes {
    uint16_t
        *choices; /* by switch and phase of the packet: index of its choices + 1; 0: no route */
    bool valid;
};

struct fabric {
    enum shape_rule rule;
    uint32_t layers, phases;
    uint32_t switch_count;
    struct fabric_switch *switches;
    struct link *to_ports;   /* by port, as model->ports */
    uint32_t *port_switch;   /* by port: the number of its switch */
    struct routes *routes;   /* by number of the destination's switch */
    uint32_t *costs, *queue; /* routes.c, while it makes routes: by switch and phase */
    bool *queued;
    struct link *failing[LINK_FAILURES_MAX];
    uint64_t lost; /* packets on links that failed, or without a route since */
    /* By class and phase behind the cable: bit mask of the phases before it. */
    uint32_t phases_before[SHAPE_CLASSES_MAX][SHAPE_PHASES_MAX];
};

/* Creates the switches, and the links to the ports of all adapters. Returns 0 or an errno value
 * with the reason logged. */
int switch_init_all(void);
void switch_packet_arrived(struct sim_packet *pkt);

/* A link of fabric.failing fails, in both directions. */
void switch_link_fails(uint32_t failure);

/* Calls 'call' for every link between two switches. */
void switch_each_trunk(void (*call)(void *context, const struct link *link, const char *from,
                                    const char *to),
                       void *context);

/* ---- routes.c ---- */

/* Returns 0 or an errno value. */
int routes_init(void);

/* The output of a switch for a packet to another switch, whose phase and VL are set to what they
 * are behind it; NULL if no route is left. */
struct link *routes_output(struct fabric_switch *here, struct sim_packet *pkt);

/* Routes are made anew when they are needed. */
void routes_forget(void);

#endif
