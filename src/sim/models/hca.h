/* The adapters: ports with cables, engines that send, an engine that receives, one bus and one context
 * memory each. */
#ifndef SIM_MODELS_HCA_H
#define SIM_MODELS_HCA_H

#include "sim/models/context.h"
#include "sim/models/link.h"
#include "sim/queue.h"

#define ENGINES_MAX 16
#define OFF_THE_LINK 1 /* argument of EVENT_PACKET_LEFT: the link was not used */

/* A packet under way. */
struct flight {
    struct flight *next;
    struct packet packet;
    struct queue *from;
    struct queue *to;
    struct port *destination;
    struct engine *engine; /* whose slot it takes, or NULL */
    struct request *message; /* that it belongs to, or NULL */
    struct flight *behind;   /* of the same queue, started later */
    bool ready;              /* may leave when those before it have */
    bool ends_message;       /* an unreliable one, which is over when this has left */
    uint32_t bytes; /* on the link */
    uint32_t payload;
    uint8_t holds; /* by the link and by the receiver */
    uint8_t lane;
    struct cable *via; /* it came last, and takes room at its end; or NULL */
    bool first, last, response;
    bool takes_receive;
    bool spoilt; /* its checksum is wrong */
    uint64_t marks[PACKET_MARKS]; /* from MARK_STARTED on */
};

/* Sends one message at a time. */
struct engine {
    struct port *port;
    struct queue *queue; /* whose message it is at, or NULL */
    bool responding; /* to a read */
    bool waits_for_slot;
    bool waits_for_drain;
    struct flight *next_flight; /* pulled, not yet on its way */
    uint32_t under_way; /* packets */
    uint64_t turn; /* bytes of its queue since that was given to it */
    uint64_t translated; /* payloads are asked for in order, not before this */
    uint64_t messages;
};

struct port {
    struct hca *hca;
    uint32_t number; /* from 1 */
    uint16_t lid;
    struct engine engines[ENGINES_MAX];
    struct queue *ready_first, *ready_last; /* queues with something to send */
    struct cable out; /* to the switch */
    struct cable *in; /* from the switch */
    struct server receiver;
    uint64_t packets_out, packets_in, bytes_out, bytes_in;
};

struct hca {
    uint32_t node, device;
    struct bus bus;
    struct context_memory context;
    struct server memory; /* its own, for programs */
    struct port *ports; /* the first of 'port_count', one after the other */
    uint32_t port_count;
    uint64_t buffer_used; /* bytes of packets on their way out */
};

/* Makes all adapters of the fabric. Returns 0 or an errno value. */
int hcas_init(void);
struct port *port_by_lid(uint16_t lid);

struct flight *flight_new(struct queue *from, const struct packet *packet);
/* One more of the kind, held by the receiver alone. */
struct flight *flight_copy(const struct flight *flight);
void flight_drop(struct flight *flight); /* one hold less */

static inline void flight_mark(struct flight *flight, enum mark mark)
{
    flight->marks[mark - MARK_STARTED] = world->now;
}

/* Reads or writes the adapter's own memory; returns when that is done. */
uint64_t hca_memory(struct hca *hca, uint64_t now, uint32_t bytes);

/* ---- send.c: from posted requests to packets ---- */
void send_rung(struct queue *queue);    /* the doorbell has arrived */
void send_fetched(struct queue *queue); /* a work request is on the adapter */
void send_kick(struct queue *queue);    /* it may have something to send */
void send_step(struct engine *engine);
void send_read(struct flight *flight);
void send_ready(struct flight *flight);
void send_left(struct flight *flight);

/* ---- link.c: cables ---- */
void link_send(struct port *port, struct flight *flight);
void link_left(struct flight *flight); /* the adapter's port is free for the next */

/* ---- switch.c: between the cables ---- */
/* Makes switches and cables for the ports of all adapters. Returns 0 or an errno value with the
 * reason logged. */
int switches_init(void);
void switch_reached(struct flight *flight);
/* Every cable between two switches. */
void switches_each_between(void (*call)(void *context, struct cable *cable, uint32_t leaf,
                                        uint32_t spine, bool up),
                           void *context);

/* ---- receive.c: from packets to memory ---- */
void receive_arrived(struct flight *flight, uint32_t stage);
void receive_taken(struct flight *flight);

#endif
