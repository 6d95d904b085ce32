/* Cables. A packet takes a cable for its length and a gap; what waits for the cable waits in lanes
 * (InfiniBand's virtual lanes), which share it by weight. The end of a cable has a buffer for each
 * lane, and a packet is sent only when there is room for it: nothing is lost for want of a buffer
 * (InfiniBand Architecture Specification, volume 1, chapter 7: link credits, VL arbitration). */
#ifndef SIM_MODELS_LINK_H
#define SIM_MODELS_LINK_H

#include "sim/models/server.h"
#include "sim/parameters.h"

#include <stdbool.h>

struct flight;
struct fabric_switch;
struct port;

struct lane {
    struct flight *first, *last; /* wait for the cable, in order */
    uint64_t taken;              /* bytes on the way and in the buffer at the end */
    uint64_t due;                /* whose next packet is due first goes first; in weighted bytes */
};

/* One direction of one. */
struct cable {
    struct server server;
    struct port *port;              /* that it leaves, or NULL: it leaves a switch */
    struct fabric_switch *leads_to; /* or NULL: to */
    struct port *end;
    struct lane lanes[LANES_MAX];
    uint32_t waiting; /* lanes with packets, a bit each */
    uint64_t due;     /* of the packet sent last */
    bool busy;
    /* the packet that leaves the switch, and the room it takes there until it has */
    struct cable *before;
    uint32_t before_bytes;
    uint8_t before_lane;
};

/* Sends the packet when its time comes. */
void cable_put(struct cable *cable, struct flight *flight);

/* A packet has left the switch that the cable comes from. */
void cable_free(struct cable *cable);

/* A packet leaves the buffer it was in. */
void cable_give_room(struct flight *flight);

#endif
