/* SPDX-License-Identifier: BSD-2-Clause */
/* Hooks for observers of the model. A hook that is not set costs one test. */
#ifndef SIM_MODEL_OBSERVER_H
#define SIM_MODEL_OBSERVER_H

#include <stddef.h>
#include <stdint.h>

struct server;
struct sim_packet;
struct sim_qp;
struct sim_wqe;

struct model_observer {
    void (*server_busy)(const struct server *server, uint64_t start, uint64_t end);
    /* The first bit of the packet leaves its port. */
    void (*packet_sent)(const struct sim_packet *pkt);
    /* The last reference to the packet was dropped. */
    void (*packet_done)(const struct sim_packet *pkt);
    void (*wqe_done)(const struct sim_wqe *wqe);
};

extern struct model_observer model_observer;

/* What the jobs of servers are for, until set again. */
struct model_activity {
    const struct sim_qp *qp;      /* or NULL */
    const struct sim_packet *pkt; /* or NULL */
    const char *work;             /* name of the job; NULL: the opcode of the packet */
};

extern struct model_activity model_activity;

static inline void model_set_activity(const struct sim_qp *qp, const struct sim_packet *pkt)
{
    model_activity.qp = qp;
    model_activity.pkt = pkt;
}

#endif
