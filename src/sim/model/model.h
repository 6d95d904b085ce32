/* SPDX-License-Identifier: BSD-2-Clause */
/* The modelled fabric: adapters, links, switches and QPs. It is part of the segment, which every
 * process maps at the same address. Only the running vthread (sched/sched.h) touches it, so it
 * needs no lock. */
#ifndef SIM_MODEL_MODEL_H
#define SIM_MODEL_MODEL_H

#include "hca/layout.h"
#include "sim/adapter/faults.h"
#include "sim/adapter/parameters.h"
#include "sim/model/ethernet.h"
#include "sim/model/switch.h"
#include "sim/memory/pool.h"
#include "sim/sched/vthread.h"
#include "transport/transport.h"

enum event_kind {
    EVENT_DOORBELL,         /* sim_qp: 'argument' WQEs were posted */
    EVENT_CONTEXT,          /* sim_qp: its context is there, for its doorbells */
    EVENT_WQE_FETCHED,      /* sim_qp: 'argument' WQEs are on the adapter */
    EVENT_ENGINE,           /* send_engine: continues with its message */
    EVENT_PACKET_READ,      /* sim_packet: host memory returns the first data */
    EVENT_PACKET_READY,     /* sim_packet: its payload is on the adapter */
    EVENT_PACKET_LEFT,      /* sim_packet: its last bit is on the link */
    EVENT_PACKET_AT_SWITCH, /* sim_packet: its head is at a switch */
    EVENT_LINK_FREE,        /* link: a packet has left the switch */
    EVENT_PACKET_ARRIVED,   /* sim_packet: argument is the stage (receive_engine.c) */
    EVENT_PACKET_PROCESSED, /* sim_packet: by the receive engine */
    EVENT_DELIVER,          /* sim_packet: the message is visible in memory */
    EVENT_COMPLETE,         /* sim_wqe: its completion is visible */
    EVENT_RESPOND,          /* sim_qp: the response to a read is due */
    EVENT_ACK,              /* sim_qp: what has arrived may be acknowledged */
    EVENT_ACK_TURNAROUND,   /* sim_qp: may send again */
    EVENT_TIMEOUT,          /* sim_qp */
    EVENT_PAUSE,            /* link: a pause frame takes effect; argument as ethernet.c makes it */
    EVENT_PACED,            /* sim_qp: its rate allows another packet */
    EVENT_QP_READY,         /* sim_qp: receives from now on */
    EVENT_RECEIVES_POSTED,  /* sim_qp: argument is how many of its receives packets find now */
    EVENT_REGION,           /* region_change */
    EVENT_LINK_FAILS,       /* NULL: argument is an index of fabric.failing */
    EVENT_KINDS,
};

/* A send completion on its way into the memory of its process. */
struct sim_cqe {
    struct sim_cqe *next;
    uint64_t hca_qp; /* in the address space of that process */
    uint64_t wr_id;
    uint32_t sq_index;
    uint32_t byte_len;
    uint16_t flags;
    uint8_t opcode;
    uint8_t status;
};

struct sim_cqe_list {
    struct sim_cqe *first;
    struct sim_cqe *last;
};

struct sim_port; /* hca.h */
struct sim_qp;   /* sim_qp.h */

struct model {
    struct parameters parameters;
    struct faults faults;
    struct sim_cqe_list cqe_lists[MAX_PROCS];
    struct pool cqes, packets, wqes, qps;
    uint32_t port_count;
    struct sim_port *ports; /* by LID, from 1 */
    struct fabric fabric;
    uint32_t vl_weights[VLS_MAX];
    uint32_t qp_index_bits;             /* 0: QP_INDEX_BITS; set before model_init() */
    struct sim_qp **qp_table;           /* by index of the QP number */
    struct transport_counters counters; /* of all QPs */
    struct ethernet ethernet;
};

/* Set by sim_attach(). */
extern struct model *model;

static inline bool model_is_ethernet(void)
{
    return model->parameters.link.layer == LAYER_ETHERNET;
}

/* Creates the fabric that model->parameters describe. Returns 0 or an errno value with the reason
 * logged. */
int model_init(void);

void model_dispatch(const struct event *event);

#endif
