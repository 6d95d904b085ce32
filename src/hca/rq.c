#include "hca/rq.h"

#include "hca/arena.h"
#include "hca/mr.h"
#include "hca/proc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* While a sender reads the order of the next few receives, the owner writes that of the receives it
 * posts, a depth further on. In a ring of just that depth these would be the same cache line, and
 * each message would cost the sender a miss. */
#define ORDER_MIN 64

static uint64_t wqe_stride(uint32_t max_sge)
{
    return sizeof(struct recv_wqe) + (uint64_t)max_sge * sizeof(((struct recv_wqe *)0)->sge[0]);
}

int rq_create(struct hca_rq *rq, uint32_t max_wr, uint32_t max_sge)
{
    uint32_t depth = round_up_pow2(max_wr ? max_wr : 1);
    uint32_t order_size = 2 * depth > ORDER_MIN ? 2 * depth : ORDER_MIN;
    uint64_t order_at = sizeof(struct shared_rq);
    uint64_t taker_at = order_at + order_size * sizeof(struct recv_order);
    uint64_t wqes_at = round_up(taker_at + depth * sizeof(uint32_t), CACHE_LINE);
    uint64_t size = wqes_at + depth * wqe_stride(max_sge);

    memset(rq, 0, sizeof(*rq));
    struct shared_rq *shared = arena_alloc(size);
    rq->wr_ids = malloc(depth * sizeof(*rq->wr_ids));
    rq->free_slots = malloc(depth * sizeof(*rq->free_slots));
    rq->outstanding = calloc(depth, 1);
    if (!shared || !rq->wr_ids || !rq->free_slots || !rq->outstanding) {
        arena_free(shared, size);
        free(rq->wr_ids);
        free(rq->free_slots);
        free(rq->outstanding);
        return ENOMEM;
    }
    shared->depth = depth;
    shared->order_size = order_size;
    shared->max_sge = max_sge;
    shared->order = seg_offset(shared) + order_at;
    shared->taker = seg_offset(shared) + taker_at;
    shared->wqes = seg_offset(shared) + wqes_at;
    rq->shared = shared;
    rq->takers = (_Atomic uint32_t *)((char *)shared + taker_at);
    rq->wqes = (char *)shared + wqes_at;
    rq->size = size;
    rq->depth = depth;
    rq->order_mask = order_size - 1;
    rq->stride = wqe_stride(max_sge);
    rq->max_wr = max_wr;
    rq->max_sge = max_sge;
    rq_reset(rq);
    return 0;
}

void rq_destroy(struct hca_rq *rq)
{
    if (!rq->shared)
        return;
    arena_free(rq->shared, rq->size);
    free(rq->wr_ids);
    free(rq->free_slots);
    free(rq->outstanding);
    rq->shared = NULL;
}

void rq_reset(struct hca_rq *rq)
{
    struct shared_rq *shared = rq->shared;

    store_relaxed(&shared->posted, 0);
    store_relaxed(&shared->head, 0);
    shared->posted_seen = 0;
    shared->claimed = 0;
    rq->least = UINT32_MAX;
    store_relaxed(&shared->least, UINT32_MAX);
    memset(rq->outstanding, 0, rq->depth);
    for (uint32_t i = 0; i < rq->max_wr; i++)
        rq->free_slots[i] = rq->max_wr - 1 - i;
    rq->free_count = rq->max_wr;
}

static inline uint32_t capacity_of(const struct recv_wqe *wqe, uint32_t max_sge, uint32_t pd)
{
    struct place place;
    uint64_t total = 0;

    for (uint32_t i = 0; i < wqe->num_sge && i < max_sge; i++) {
        if (wqe->sge[i].length && !mr_local(wqe->sge[i].lkey, pd, wqe->sge[i].addr,
                                            wqe->sge[i].length, true, &place))
            return RECV_BROKEN;
        total += wqe->sge[i].length;
    }
    return total < RECV_BROKEN ? total : RECV_BROKEN - 1;
}

/* What the receive in that slot holds; the least of all is told to senders. */
static inline uint32_t note_capacity(struct hca_rq *rq, uint32_t slot, uint32_t pd)
{
    uint32_t capacity = capacity_of(rq_own_wqe(rq, slot), rq->max_sge, pd);
    uint32_t usable = capacity == RECV_BROKEN ? 0 : capacity;

    if (unlikely(usable < rq->least)) {
        rq->least = usable;
        store_relaxed(&rq->shared->least, usable);
    }
    return capacity;
}

void rq_recheck(struct hca_rq *rq, uint32_t pd)
{
    spin_lock(&rq->lock);
    uint32_t head = load_relaxed(&rq->shared->head), posted = load_relaxed(&rq->shared->posted);
    for (uint32_t i = head; i != posted && i - head < rq->max_wr; i++) {
        struct recv_order *order = rq_order(rq, i);
        if (order->slot < rq->max_wr)
            order->capacity = note_capacity(rq, order->slot, pd);
    }
    spin_unlock(&rq->lock);
}

int rq_post(struct hca_rq *rq, uint32_t pd, const struct ibv_recv_wr *wr)
{
    uint32_t posted = load_relaxed(&rq->shared->posted);

    if (unlikely(wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge))
        return EINVAL;
    if (unlikely(!rq->free_count))
        return ENOMEM;
    uint32_t slot = rq->free_slots[--rq->free_count];
    struct recv_wqe *wqe = rq_own_wqe(rq, slot);
    wqe->num_sge = wr->num_sge;
    for (int i = 0; i < wr->num_sge; i++) {
        wqe->sge[i].addr = wr->sg_list[i].addr;
        wqe->sge[i].length = wr->sg_list[i].length;
        wqe->sge[i].lkey = wr->sg_list[i].lkey;
    }
    *rq_order(rq, posted) = (struct recv_order){ slot, note_capacity(rq, slot, pd) };
    store_relaxed(&rq->takers[slot], 0);
    rq->wr_ids[slot] = wr->wr_id;
    rq->outstanding[slot] = 1;
    store_release(&rq->shared->posted, posted + 1);
    return 0;
}

struct recv_wqe *rq_wqe(const struct shared_rq *rq, uint32_t slot)
{
    uint64_t stride = wqe_stride(rq->max_sge);

    if (unlikely(slot >= rq->depth || rq->max_sge > HCA_MAX_SGE))
        return NULL;
    return seg_at(rq->wqes + slot * stride, stride);
}

bool rq_open(uint64_t offset, struct rq_view *view)
{
    view->rq = seg_at(offset, sizeof(struct shared_rq));
    if (unlikely(!view->rq))
        return false;
    uint32_t size = view->rq->order_size;
    view->mask = size - 1;
    view->order = seg_at(view->rq->order, (uint64_t)size * sizeof(struct recv_order));
    return likely(size && !(size & view->mask) && view->order);
}

bool rq_peek(struct rq_view *view)
{
    uint32_t number;

    if (unlikely(!rq_next(view->rq, &number)))
        return false;
    view->slot = view->order[number & view->mask].slot;
    view->capacity = view->order[number & view->mask].capacity;
    return true;
}

static _Atomic uint32_t *taker_of(const struct shared_rq *rq, uint32_t slot)
{
    _Atomic uint32_t *takers = seg_at(rq->taker, (uint64_t)rq->depth * sizeof(uint32_t));

    return takers && slot < rq->depth ? &takers[slot] : NULL;
}

bool rq_take(struct rq_view *view, uint32_t *left)
{
    struct shared_rq *rq = view->rq;

    shm_lock(&rq->lock);
    bool got = rq_peek(view);
    if (got) {
        _Atomic uint32_t *taker = taker_of(rq, view->slot);
        if (taker)
            store_relaxed(taker, proc_word(proc_self));
        rq_advance(rq);
        *left = load_relaxed(&rq->posted) - load_relaxed(&rq->head);
    }
    shm_unlock(&rq->lock);
    return got;
}

static bool is_abandoned(struct hca_rq *rq, uint32_t slot, uint32_t *by)
{
    *by = load_acquire(&rq->takers[slot]);
    return *by && rq->outstanding[slot] && !proc_word_alive(*by);
}

/* `in_ring` takes a CQ's lock, which comes before ours: so we look twice. */
void rq_recover(struct hca_rq *rq, uint32_t pd, bool (*in_ring)(void *arg, uint32_t slot),
                void *arg)
{
    for (uint32_t slot = 0; slot < rq->max_wr; slot++) {
        uint32_t by, again;
        if (likely(!is_abandoned(rq, slot, &by)))
            continue;
        bool completed = in_ring(arg, slot);
        spin_lock(&rq->lock);
        if (is_abandoned(rq, slot, &again) && again == by) {
            store_relaxed(&rq->takers[slot], 0);
            if (!completed) {
                uint32_t posted = load_relaxed(&rq->shared->posted);
                *rq_order(rq, posted) =
                    (struct recv_order){ slot, note_capacity(rq, slot, pd) };
                store_release(&rq->shared->posted, posted + 1);
            }
        }
        spin_unlock(&rq->lock);
    }
}

void rq_put_back_lost(struct hca_rq *rq, uint8_t *accounted)
{
    uint32_t head = load_relaxed(&rq->shared->head), posted = load_relaxed(&rq->shared->posted);

    for (uint32_t i = head; i != posted && i - head < rq->depth; i++)
        if (rq_order(rq, i)->slot < rq->max_wr)
            accounted[rq_order(rq, i)->slot] = 1;
    for (uint32_t slot = 0; slot < rq->max_wr; slot++)
        if (rq->outstanding[slot] && !accounted[slot] && posted - head < rq->depth)
            *rq_order(rq, --head) = (struct recv_order){ slot, 0 };
    store_release(&rq->shared->head, head);
}
