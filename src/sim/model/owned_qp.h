/* SPDX-License-Identifier: BSD-2-Clause */
/* QPs that no process owns: a program that drives the model itself posts RDMA writes and datagrams
 * to them, and is told when they arrive and complete. No memory is read or written; addresses only
 * decide which translations the adapters need. */
#ifndef SIM_MODEL_OWNED_QP_H
#define SIM_MODEL_OWNED_QP_H

#include "sim/model/sim_qp.h"

/* The fabric has no QPs but these, whose work requests are shorter than those of programs. */
void owned_qp_init(void);

struct owned_qp_end {
    struct sim_port *port;
    uint32_t proc; /* whose translations: unique on its adapter */
    void *data;    /* becomes owner_data */
};

/* Creates two QPs, connected to each other, with the numbers 'qpn' and 'qpn' + 1. Returns false if
 * out of memory. */
bool owned_qp_connect(const struct sim_qp_owner *owner, uint32_t qpn,
                      const struct owned_qp_end ends[2], struct sim_qp *qps[2]);

/* Creates a UD QP, which always has a receive, of 'receive' bytes at that address. NULL if out of
 * memory. */
struct sim_qp *owned_qp_datagram(const struct sim_qp_owner *owner, uint32_t qpn,
                                 const struct owned_qp_end *end, uint64_t address,
                                 uint32_t receive);

/* An RDMA write or, on a UD QP, a send. */
struct owned_qp_write {
    uint64_t wr_id;
    uint32_t sq_index;
    uint16_t flags; /* IBV_SEND_INLINE, IBV_SEND_SIGNALED */
    uint32_t length;
    uint64_t local, remote;
    const struct sim_qp *to; /* of a send */
};

/* Posts at virtual time 'now', which may be in the future, but not before that of an
 * earlier write. Returns false if out of memory. */
bool owned_qp_post(struct sim_qp *qp, const struct owned_qp_write *write, uint64_t now);

#endif
