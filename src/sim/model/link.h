/* SPDX-License-Identifier: BSD-2-Clause */
/* Links. A packet occupies a link for its length and a gap. Packets that wait for the link queue in
 * virtual lanes (VLs), which share it by weight. The far end of a link has a receive buffer for
 * each VL, and a packet is sent only when the buffer has credits for it, so no packet is lost for
 * want of a buffer (InfiniBand Architecture Specification, volume 1, chapter 7: link credits, VL
 * arbitration). */
#ifndef SIM_MODEL_LINK_H
#define SIM_MODEL_LINK_H

#include "sim/adapter/parameters.h"
#include "sim/model/ethernet.h"
#include "sim/model/server.h"
#include "util/util.h"

#include <stdbool.h>

struct sim_packet;
struct fabric_switch;
struct sim_port;

struct vl {
    struct sim_packet *first, *last; /* wait for the link, in order */
    uint64_t buffered;               /* bytes on the link and in the receive buffer at its end */
    uint64_t start_tag; /* start-time fair queueing: of the next packet, in weighted bytes */
    struct ethernet_vl ethernet;
};

/* One direction. A packet touches its first three cache lines. */
struct link {
    struct server server;
    uint32_t waiting; /* bit mask of VLs with packets */
    bool busy;
    bool failed;
    uint8_t upstream_vl;
    struct sim_port *from_port;      /* NULL: the link leaves a switch */
    struct fabric_switch *to_switch; /* NULL: the link ends at to_port */
    struct sim_port *to_port;
    uint64_t virtual_time; /* start tag of the packet sent last */
    uint64_t bytes, queued, queue_max; /* sent; that wait, of all VLs; at most */
    /* The packet being sent occupies the receive buffer of this link until it has left. */
    struct link *upstream;
    uint32_t upstream_bytes;
    struct vl vls[VLS_MAX];
    struct link *reverse; /* the other direction */
    struct ethernet_counters ethernet;
} cache_aligned;

/* Queues the packet; it is sent when the arbiter selects it. */
void link_queue(struct link *link, struct sim_packet *pkt);

/* Sends what it may, after a pause. */
void link_continue(struct link *link);

/* The packet being sent has left the switch. */
void link_free(struct link *link);

/* Drops the packets that wait; returns how many. */
uint64_t link_drop_queued(struct link *link);

/* The packet leaves the receive buffer it is in. */
void link_return_credits(struct sim_packet *pkt);

/* The receive buffer at the end of the link has not taken the packet. */
void link_refuse(struct sim_packet *pkt);

#endif
