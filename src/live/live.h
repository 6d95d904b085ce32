/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LIVE_LIVE_H
#define LIVE_LIVE_H

/* The live engine: the process that posts a work request executes it immediately. */

#include "dma/deliver.h"
#include "hca/engine.h"

/* The result of a WQE: an enum ibv_wc_status, or one of these if it must be retried. */
enum { WAIT_RNR = DELIVER_NO_RECEIVE, WAIT_RESPONSE = -2, WAIT_ROOM = DELIVER_NO_ROOM };

#define LIVE_SHORT_WRITE 256 /* bytes of an RDMA write that may be a message in a ring */

extern const struct hca_engine live_engine;

/* ---- wqe.c: one WQE, from checks to completion ---- */
int wqe_execute(struct hca_qp *qp, const struct send_wqe *wqe, uint32_t *byte_len);
/* The peer of a connected QP, if it exists and is connected to this QP. Inside an epoch. */
struct shared_qp *wqe_find_peer(const struct hca_qp *qp);
/* Where the entry of a QP lies: it stays there as long as this does not change. */
static inline uint64_t wqe_chunk_of(uint32_t qpn)
{
    return load_acquire(&seg->qp_dir[(qpn & ((1u << QP_INDEX_BITS) - 1)) >> QP_CHUNK_SHIFT]);
}

/* Logs how many datagrams of this process were dropped. */
void wqe_report_drops(void);

/* ---- send_fast.c: a short send to a connected peer, with a cached route ---- */
bool send_fast(struct hca_qp *qp, const struct ibv_sge *sge, unsigned flags);

/* ---- write_fast.c: a short RDMA write into memory that this process maps ---- */
bool write_fast(struct hca_qp *qp, const struct ibv_send_wr *wr, unsigned flags);

/* ---- count.c: port counters. With the send queue's lock held ---- */
void count_short_send(struct hca_qp *qp, struct shared_qp *peer, uint32_t length);
void count_short_write(struct hca_qp *qp, struct shared_qp *peer, uint32_t length);
void count_message(struct hca_qp *qp, struct shared_qp *peer, const struct send_wqe *wqe,
                   uint32_t byte_len);
void count_datagram_sent(struct hca_qp *qp, const struct send_wqe *wqe, uint32_t length);
void count_datagram_received(struct shared_qp *peer, const struct send_wqe *wqe, uint32_t length);

#endif
