/* SPDX-License-Identifier: BSD-2-Clause */
/* What Ethernet links do in place of credits. Priority flow control (IEEE 802.1Qbb): a receive
 * buffer that fills up pauses the VL at the beginning of its link, by a frame that takes the way
 * back. Without it, a switch output or an adapter drops what does not fit, and the transport goes
 * back. Switch outputs mark packets (ECN); receivers answer marks with CNPs, and senders obey these
 * (dcqcn.h). */
#ifndef SIM_MODEL_ETHERNET_H
#define SIM_MODEL_ETHERNET_H

#include <stdbool.h>
#include <stdint.h>

struct link;
struct sim_packet;
struct sim_qp;

/* Of a VL of a link. */
struct ethernet_vl {
    uint64_t queued; /* bytes that wait at the beginning of the link */
    uint64_t held;   /* bytes in the receive buffer at its end */
    bool pausing;    /* the end has sent a pause frame, and none that takes it back */
    bool paused;     /* the beginning has received it */
    uint64_t paused_at;
};

/* Of a link, all VLs. */
struct ethernet_counters {
    uint64_t packets, queue_sum, queue_max; /* that were queued, and the bytes that they found */
    uint64_t buffer_max; /* bytes of a VL in the receive buffer at its end */
    uint64_t marked;
    uint64_t dropped; /* for want of room at the output, or in the receive buffer at the end */
    uint64_t pauses;  /* pause frames that its end has sent */
    uint64_t paused_ns;
};

/* Of the fabric. */
struct ethernet {
    uint64_t random; /* state of the generator that decides about marks */
    uint64_t cnps;   /* that arrived */
    double alpha_sum; /* as each of them found it */
};

/* A packet arrives at a switch and wants 'output', or at an adapter (NULL). Returns false if it was
 * dropped. */
bool ethernet_admit(struct sim_packet *pkt, struct link *output);

/* Bytes have left the receive buffer at the end of the link. */
void ethernet_released(struct link *link, uint8_t vl, uint32_t bytes);

/* Looks at marks and CNPs among arriving packets. Returns true for a CNP, which concerns nobody
 * else. */
bool ethernet_notified(struct sim_packet *pkt);

/* The QP waits until its rate allows the next packet. */
void ethernet_pace(struct sim_qp *qp);

/* Event handlers. */
void ethernet_pause(struct link *link, uint32_t argument);
void ethernet_paced(struct sim_qp *qp);

#endif
