/* Cables. A packet takes a link for its length and a gap; what waits for the link waits in vls
 * (InfiniBand's virtual vls), which share it by weight. The end of a link has a buffer for each
 * vl, and a packet is sent only when there is room for it: nothing is lost for want of a buffer
 * (InfiniBand Architecture Specification, volume 1, chapter 7: link credits, VL arbitration). */
#ifndef SIM_MODELS_LINK_H
#define SIM_MODELS_LINK_H

#include "sim/model/server.h"
#include "sim/adapter/parameters.h"

#include <stdbool.h>

struct sim_packet;
struct fabric_switch;
struct sim_port;

struct vl {
    struct sim_packet *first, *last; /* wait for the link, in order */
    uint64_t taken;              /* bytes on the way and in the buffer at the end */
    uint64_t due;                /* whose next packet is due first goes first; in weighted bytes */
};

/* One direction of one. */
struct link {
    struct server server;
    struct sim_port *port;              /* that it leaves, or NULL: it leaves a switch */
    struct fabric_switch *leads_to; /* or NULL: to */
    struct sim_port *end;
    struct vl vls[VLS_MAX];
    uint32_t waiting; /* vls with packets, a bit each */
    uint64_t due;     /* of the packet sent last */
    bool busy;
    /* the packet that leaves the switch, and the room it takes there until it has */
    struct link *before;
    uint32_t before_bytes;
    uint8_t before_lane;
};

/* Sends the packet when its time comes. */
void link_queue(struct link *link, struct sim_packet *pkt);

/* A packet has left the switch that the link comes from. */
void link_free(struct link *link);

/* A packet leaves the buffer it was in. */
void link_return_credits(struct sim_packet *pkt);

#endif
