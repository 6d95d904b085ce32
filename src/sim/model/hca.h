/* The adapters: ports with cables, engines that send, an engine that receives, one bus and one context
 * memory each. */
#ifndef SIM_MODELS_HCA_H
#define SIM_MODELS_HCA_H

#include "sim/model/icm.h"
#include "sim/model/link.h"
#include "sim/model/sim_qp.h"

#define ENGINES_MAX 16
#define OFF_THE_LINK 1 /* argument of EVENT_PACKET_LEFT: the link was not used */

/* A packet under way. */
struct sim_packet {
    struct sim_packet *next;
    struct packet packet;
    struct sim_qp *from;
    struct sim_qp *to;
    struct sim_port *destination;
    struct send_engine *engine; /* whose slot it takes, or NULL */
    struct sim_wqe *wqe; /* that it belongs to, or NULL */
    struct sim_packet *behind;   /* of the same queue, started later */
    bool ready;              /* may leave when those before it have */
    bool ends_message;       /* an unreliable one, which is over when this has left */
    uint32_t bytes; /* on the link */
    uint32_t payload;
    uint8_t holds; /* by the link and by the receiver */
    uint8_t vl;
    struct link *via; /* it came last, and takes room at its end; or NULL */
    bool first, last, response;
    bool takes_receive;
    bool spoilt; /* its checksum is wrong */
    uint64_t marks[PACKET_MARKS]; /* from MARK_STARTED on */
};

/* Sends one message at a time. */
struct send_engine {
    struct sim_port *port;
    struct sim_qp *qp; /* whose message it is at, or NULL */
    bool responding; /* to a read */
    bool waits_for_slot;
    bool waits_for_drain;
    struct sim_packet *next_packet; /* pulled, not yet on its way */
    uint32_t under_way; /* packets */
    uint64_t turn; /* bytes of its queue since that was given to it */
    uint64_t translated; /* payloads are asked for in order, not before this */
    uint64_t messages;
};

struct sim_port {
    struct sim_hca *hca;
    uint32_t number; /* from 1 */
    uint16_t lid;
    struct send_engine engines[ENGINES_MAX];
    struct sim_qp *ready_first, *ready_last; /* queues with something to send */
    struct link out; /* to the switch */
    struct link *in; /* from the switch */
    struct server receiver;
    uint64_t packets_out, packets_in, bytes_out, bytes_in;
};

struct sim_hca {
    uint32_t node, device;
    struct bus bus;
    struct icm icm;
    struct server memory; /* its own, for programs */
    struct sim_port *ports; /* the first of 'port_count', one after the other */
    uint32_t port_count;
    uint64_t buffer_used; /* bytes of packets on their way out */
};

/* Makes all adapters of the fabric. Returns 0 or an errno value. */
int hca_init_all(void);
struct sim_port *hca_port_by_lid(uint16_t lid);

struct sim_packet *sim_packet_new(struct sim_qp *from, const struct packet *packet);
/* One more of the kind, held by the receiver alone. */
struct sim_packet *sim_packet_copy(const struct sim_packet *pkt);
void sim_packet_put(struct sim_packet *pkt); /* one hold less */

static inline void sim_packet_mark(struct sim_packet *pkt, enum mark mark)
{
    pkt->marks[mark - MARK_STARTED] = sched->now;
}

/* Reads or writes the adapter's own memory; returns when that is done. */
uint64_t hca_memory(struct sim_hca *hca, uint64_t now, uint32_t bytes);

/* ---- send.c: from posted requests to packets ---- */
void send_engine_doorbell(struct sim_qp *qp);    /* the doorbell has arrived */
void send_engine_wqe_fetched(struct sim_qp *qp); /* a work request is on the adapter */
void send_engine_kick(struct sim_qp *qp);    /* it may have something to send */
void send_engine_step(struct send_engine *engine);
void send_engine_payload_read(struct sim_packet *pkt);
void send_engine_packet_ready(struct sim_packet *pkt);
void send_engine_packet_left(struct sim_packet *pkt);

/* ---- link.c: cables ---- */
void link_send(struct sim_port *port, struct sim_packet *pkt);
void link_left(struct sim_packet *pkt); /* the adapter's port is free for the next */

/* ---- switch.c: between the cables ---- */
/* Makes switches and cables for the ports of all adapters. Returns 0 or an errno value with the
 * reason logged. */
int switch_init_all(void);
void switch_reached(struct sim_packet *pkt);
/* Every link between two switches. */
void switch_each_trunk(void (*call)(void *context, struct link *link, uint32_t leaf,
                                        uint32_t spine, bool up),
                           void *context);

/* ---- receive.c: from packets to memory ---- */
void receive_engine_arrived(struct sim_packet *pkt, uint32_t stage);
void receive_engine_taken(struct sim_packet *pkt);

#endif
