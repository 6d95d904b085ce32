/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HCA_RQ_H
#define HCA_RQ_H

/* Receive queues. Message i takes receive i. With one sender, receives complete in order, and
 * receive i is in slot i modulo the depth. With many senders they do not, and an order ring in the
 * segment has the slot. The work request ids stay in private memory of the owner. */

#include "hca/objects.h"

int rq_create(struct hca_rq *rq, uint32_t max_wr, uint32_t max_sge, bool many_senders);
void rq_destroy(struct hca_rq *rq);
/* Discards all posted receives. The queue must be unfindable for senders. */
void rq_reset(struct hca_rq *rq);

int rq_post(struct hca_rq *rq, uint32_t pd, const struct ibv_recv_wr *wr);

/* Checks the keys of the posted receives again, after a region has changed. */
void rq_recheck(struct hca_rq *rq, uint32_t pd);

/* The receive in `slot` has completed: returns its request id and frees the slot. False: no receive
 * is outstanding in that slot. */
static inline bool rq_complete(struct hca_rq *rq, uint32_t slot, uint64_t *wr_id)
{
    bool known = false;

    spin_lock(&rq->lock);
    if (likely(slot < rq->depth && load_relaxed(&rq->receives[slot].out))) {
        *wr_id = rq->receives[slot].wr_id;
        store_relaxed(&rq->receives[slot].out, false);
        if (rq->free_slots)
            rq->free_slots[rq->free_count] = slot;
        rq->free_count++;
        known = true;
    }
    spin_unlock(&rq->lock);
    return known;
}

static inline struct recv_wqe *rq_own_wqe(const struct hca_rq *rq, uint32_t slot)
{
    return (struct recv_wqe *)(rq->wqes + (uint64_t)slot * rq->stride);
}

/* For senders, inside an epoch. */
struct rq_view {
    struct shared_rq *rq;
    const uint32_t *order;
    uint32_t depth;
    uint32_t slot;
};
bool rq_open(uint64_t offset, struct rq_view *view);
static inline uint32_t rq_slot(const struct rq_view *view, uint32_t number)
{
    return view->order ? view->order[number & (2 * view->depth - 1)] : number & (view->depth - 1);
}
/* The number of the next receive, if there is one. */
static inline bool rq_next(struct shared_rq *rq, uint32_t *number)
{
    *number = load_relaxed(&rq->head);
    if (unlikely(*number == rq->posted_seen))
        rq->posted_seen = load_acquire(&rq->posted);
    return *number != rq->posted_seen;
}
/* The next receive without taking it, for the one sender of a connected queue. */
bool rq_peek(struct rq_view *view);
static inline void rq_advance(struct shared_rq *rq)
{
    store_release(&rq->head, load_relaxed(&rq->head) + 1);
}
/* Takes the next receive of a queue with many senders. */
bool rq_take(struct rq_view *view, uint32_t *left);
/* NULL: invalid offset. The owner may write to the WQE at any time: num_sge may exceed
 * `max_sge`. */
struct recv_wqe *rq_wqe(const struct shared_rq *rq, uint32_t slot, uint32_t *max_sge);
/* The length of a receive's scatter list, and how many leading bytes of it can be written. */
struct rq_capacity {
    uint32_t length;
    uint32_t reach;
};
struct rq_capacity rq_recv_capacity(const struct shared_rq *rq, uint32_t slot);
/* The status of a receive whose message writes its first `length` bytes. */
static inline enum ibv_wc_status rq_capacity_check(struct rq_capacity receive, uint64_t length)
{
    if (likely(length <= receive.reach))
        return IBV_WC_SUCCESS;
    return receive.reach < receive.length ? IBV_WC_LOC_PROT_ERR : IBV_WC_LOC_LEN_ERR;
}

/* Queues receives again that dead senders had taken and not completed. `in_ring` tells whether the
 * CQ's ring has a completion for the slot. */
void rq_recover(struct hca_rq *rq, uint32_t pd, bool (*in_ring)(void *arg, uint32_t slot),
                void *arg);

/* Call when no sender can take from the queue, with the queue's lock held. Receives that are
 * outstanding, but neither queued nor marked in `accounted` (by slot), were taken by a sender that
 * died: queues them again, at the head. */
void rq_put_back_lost(struct hca_rq *rq, uint8_t *accounted);

#endif
