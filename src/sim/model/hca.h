/* SPDX-License-Identifier: BSD-2-Clause */
/* The adapters: each has ports with send engines and a receive engine, one bus and one ICM. */
#ifndef SIM_MODEL_HCA_H
#define SIM_MODEL_HCA_H

#include "sim/model/icm.h"
#include "sim/model/link.h"
#include "sim/model/sim_qp.h"
#include "sim/model/switch.h"

#define LINK_NOT_USED 1 /* argument of EVENT_PACKET_LEFT: the packet never occupied the link */

/* Four cache lines, of which the first two are used at every stage. */
struct sim_packet {
    struct sim_packet *next;
    struct sim_qp *from;
    struct sim_qp *to;
    struct sim_port *destination;
    struct send_engine *engine; /* whose slot it occupies, or NULL */
    struct sim_wqe *wqe; /* NULL: a response or acknowledgement */
    struct link *via; /* the link whose receive buffer holds it, or NULL */
    struct sim_packet *next_sending; /* of the same QP, started later */

    uint64_t marks[PACKET_MARKS]; /* from MARK_STARTED on */
    uint32_t bytes;               /* on the link */
    uint32_t payload;
    uint8_t refcount; /* held by the link and by the receiver */
    uint8_t vl;
    uint8_t phase;  /* of its route: struct shape */
    uint8_t via_vl; /* of 'via' */
    bool ready : 1; /* its payload is on the adapter */
    bool completes_wqe : 1; /* last packet of a UC or UD message */
    bool first : 1, last : 1, response : 1;
    bool consumes_recv : 1;
    bool corrupted : 1; /* the receiver drops it: wrong checksum */
    bool congestion_experienced : 1; /* a switch has marked it */

    uint64_t read_until; /* the engine has asked for all of its payload, and memory has answered */
    struct packet packet;
};

/* Words that differ in their offset in a page are locked apart. */
#define ATOMIC_WORDS 512

/* Sends one message at a time. */
struct send_engine {
    struct sim_port *port;
    struct sim_qp *qp; /* being served, or NULL */
    struct sim_qp *drains; /* the next message starts when the packets of this QP have left, or NULL */
    struct sim_packet *next_packet; /* pulled, not yet started */
    uint32_t in_flight_packets;
    bool responding; /* sends a read response */
    uint64_t quantum_used;  /* bytes sent since the engine took up the QP */
    uint64_t translated_at; /* payload reads are issued in order, none before this time */
    uint64_t messages;
    struct server reader; /* reads payload, hca.engine_window bytes at a time */
} cache_aligned;

struct sim_port {
    struct sim_hca *hca;
    uint32_t number; /* from 1 */
    uint16_t lid;
    uint32_t waiting_engines; /* for a slot: bit mask */
    struct sim_qp *ready_first, *ready_last; /* QPs with something to send */
    uint64_t packets_out, packets_in, bytes_out, bytes_in;
    struct server receiver;
    struct link *in; /* from the switch */
    struct link out; /* to the switch */
    struct send_engine engines[ENGINES_MAX];
};

struct sim_hca {
    uint32_t node, device;
    struct sim_port *ports; /* array of 'port_count' */
    uint32_t port_count;
    uint64_t buffer_used;     /* bytes of packets that have not left yet */
    struct bus bus;
    struct icm icm;
    struct server memory; /* device memory (ibv_alloc_dm) */
    uint64_t *atomics; /* when the last one on a word is done; made for the first one */
} cache_aligned;

/* Creates all adapters of the fabric. Returns 0 or an errno value. */
int hca_init_all(void);
struct sim_port *hca_port_by_lid(uint16_t lid);

struct sim_packet *sim_packet_new(struct sim_qp *from, const struct packet *packet);
/* A duplicate that only the receiver holds. */
struct sim_packet *sim_packet_copy(const struct sim_packet *pkt);
/* Drops one reference. */
void sim_packet_put(struct sim_packet *pkt);

static inline void sim_packet_mark(struct sim_packet *pkt, enum mark mark)
{
    pkt->marks[mark - MARK_STARTED] = sched->now;
}

/* Reads or writes device memory; returns when the access is done. */
uint64_t hca_memory(struct sim_hca *hca, uint64_t now, uint32_t bytes);

/* Reads a word of memory and writes it back, after earlier atomics on it; returns when the result
 * may be sent. */
uint64_t hca_atomic(struct sim_qp *qp, uint64_t address, uint64_t now);

/* ---- send_engine.c: from posted WQEs to packets ---- */
/* A doorbell for 'count' further WQEs has arrived. */
void send_engine_doorbell(struct sim_qp *qp, uint32_t count);
void send_engine_context(struct sim_qp *qp);
void send_engine_wqe_fetched(struct sim_qp *qp, uint32_t count);
/* Queues the QP for an engine if it may have something to send. */
void send_engine_kick(struct sim_qp *qp);
void send_engine_step(struct send_engine *engine);
void send_engine_payload_read(struct sim_packet *pkt);
void send_engine_packet_ready(struct sim_packet *pkt);
void send_engine_packet_left(struct sim_packet *pkt);

/* ---- link.c ---- */
void link_send(struct sim_port *port, struct sim_packet *pkt);
/* The last bit of the packet has left the adapter's port, which is free for the next. */
void link_left(struct sim_packet *pkt);

/* ---- receive_engine.c: from packets to memory ---- */
void receive_engine_arrived(struct sim_packet *pkt, uint32_t stage);
void receive_engine_processed(struct sim_packet *pkt);

#endif
