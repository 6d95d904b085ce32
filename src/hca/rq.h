#ifndef HCA_RQ_H
#define HCA_RQ_H

/* Receive queues. Message i takes receive i. With one sender receives complete in order, and receive
 * i is in slot i modulo the depth; with many they do not, and an order ring in the segment says where
 * it is. The owner keeps the work request ids to itself. */

#include "hca/objects.h"

int rq_create(struct hca_rq *rq, uint32_t max_wr, uint32_t max_sge, bool many_senders);
void rq_destroy(struct hca_rq *rq);
/* Forgets all posted receives. No sender may be able to find the queue. */
void rq_reset(struct hca_rq *rq);

int rq_post(struct hca_rq *rq, uint32_t pd, const struct ibv_recv_wr *wr);

/* Looks again at the keys of the posted receives, after a region has changed under them. */
void rq_recheck(struct hca_rq *rq, uint32_t pd);

/* The receive in `slot` has completed: its request id, and the slot is free again. False when the
 * slot is none that is out. */
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
/* NULL if it cannot be there. Its owner may write to it at any time: num_sge may exceed `max_sge`. */
struct recv_wqe *rq_wqe(const struct shared_rq *rq, uint32_t slot, uint32_t *max_sge);
/* The length of a receive's scatter list, and how much of it from the front on can be written. */
struct rq_room {
    uint32_t capacity;
    uint32_t reach;
};
struct rq_room rq_room(const struct shared_rq *rq, uint32_t slot);
/* What becomes of a receive whose message touches its first `length` bytes. */
static inline enum ibv_wc_status rq_room_check(struct rq_room room, uint64_t length)
{
    if (likely(length <= room.reach))
        return IBV_WC_SUCCESS;
    return room.reach < room.capacity ? IBV_WC_LOC_PROT_ERR : IBV_WC_LOC_LEN_ERR;
}

/* Puts back what a sender took and, dead now, never completed. `in_ring` tells whether a
 * completion for the slot is on its way. */
void rq_recover(struct hca_rq *rq, uint32_t pd, bool (*in_ring)(void *arg, uint32_t slot),
                void *arg);

/* When nobody can take from the queue any more: receives that are out, but neither queued nor
 * marked in `accounted` (by slot), were taken by a sender that died; they are queued again, first.
 * With the queue's lock held. */
void rq_put_back_lost(struct hca_rq *rq, uint8_t *accounted);

#endif
