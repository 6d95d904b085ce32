/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/rq.h"

#include "hca/arena.h"
#include "hca/mr.h"
#include "hca/observer.h"
#include "hca/proc.h"
#include "hca/shm_lock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t wqe_stride(uint32_t max_sge)
{
    return sizeof(struct recv_wqe) + (uint64_t)max_sge * sizeof(((struct recv_wqe *)0)->sge[0]);
}

/* The owner writes the order ring one depth ahead of where the sender reads. In a ring of that
 * depth both would use the same cache line, and each message would cost the sender a miss: double
 * it. */
static uint64_t order_bytes(uint32_t depth)
{
    return 2 * (uint64_t)depth * sizeof(uint32_t);
}

static uint32_t *order_at(const struct hca_rq *rq, uint32_t number)
{
    return &rq->order[number & (2 * rq->depth - 1)];
}

int rq_create(struct hca_rq *rq, uint32_t max_wr, uint32_t max_sge, bool many_senders)
{
    uint32_t depth = round_up_pow2(max_wr ? max_wr : 1);
    uint64_t order = sizeof(struct shared_rq);
    uint64_t taker = order + (many_senders ? order_bytes(depth) : 0);
    uint64_t wqes = round_up(taker + (many_senders ? depth * sizeof(uint32_t) : 0), CACHE_LINE);
    uint64_t size = wqes + depth * wqe_stride(max_sge);

    memset(rq, 0, sizeof(*rq));
    char *block = arena_alloc(size);
    rq->receives = calloc(depth, sizeof(*rq->receives));
    if (many_senders)
        rq->free_slots = malloc(depth * sizeof(*rq->free_slots));
    if (!block || !rq->receives || (many_senders && !rq->free_slots)) {
        arena_free(block, size);
        free(rq->receives);
        free(rq->free_slots);
        return ENOMEM;
    }
    rq->shared = (struct shared_rq *)block;
    rq->shared->depth = depth;
    rq->shared->max_sge = max_sge;
    rq->shared->wqes = seg_offset(block + wqes);
    if (many_senders) {
        rq->shared->order = seg_offset(block + order);
        rq->shared->taker = seg_offset(block + taker);
        rq->order = (uint32_t *)(block + order);
        rq->takers = (_Atomic uint32_t *)(block + taker);
    }
    rq->wqes = block + wqes;
    rq->size = size;
    rq->depth = depth;
    rq->stride = wqe_stride(max_sge);
    rq->max_wr = max_wr;
    rq->max_sge = max_sge;
    rq->watched = hca_observer;
    rq_reset(rq);
    return 0;
}

void rq_destroy(struct hca_rq *rq)
{
    if (!rq->shared)
        return;
    if (rq->watched)
        hca_observer->receives_dropped(rq, true);
    arena_free(rq->shared, rq->size);
    free(rq->receives);
    free(rq->free_slots);
    rq->shared = NULL;
}

void rq_reset(struct hca_rq *rq)
{
    struct shared_rq *shared = rq->shared;

    if (rq->watched)
        hca_observer->receives_dropped(rq, false);
    store_relaxed(&shared->posted, 0);
    store_relaxed(&shared->head, 0);
    shared->posted_seen = 0;
    shared->claimed = 0;
    rq->min_posted_len = UINT32_MAX;
    store_relaxed(&shared->min_posted_len, UINT32_MAX);
    for (uint32_t i = 0; i < rq->depth; i++)
        store_relaxed(&rq->receives[i].out, false);
    for (uint32_t i = 0; rq->free_slots && i < rq->max_wr; i++)
        rq->free_slots[i] = rq->max_wr - 1 - i;
    rq->free_count = rq->max_wr;
}

static uint32_t at_most_32_bits(uint64_t n)
{
    return n < UINT32_MAX ? n : UINT32_MAX;
}

/* A receive may exceed its regions, or have an invalid key: only the bytes that a message writes
 * matter. */
static inline uint32_t reach_of(const struct recv_wqe *wqe, uint32_t max_sge, uint32_t pd)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < wqe->num_sge && i < max_sge; i++) {
        uint32_t length = wqe->sge[i].length;
        uint32_t reach =
            length ? mr_local_reach(wqe->sge[i].lkey, pd, wqe->sge[i].addr, length) : 0;
        total += reach;
        if (unlikely(reach < length))
            break;
    }
    return at_most_32_bits(total);
}

/* Publishes the shortest receive to senders. */
static inline void note_reach(struct hca_rq *rq, struct recv_wqe *wqe, uint32_t pd)
{
    wqe->reach = reach_of(wqe, rq->max_sge, pd);
    if (unlikely(wqe->reach < rq->min_posted_len)) {
        rq->min_posted_len = wqe->reach;
        store_relaxed(&rq->shared->min_posted_len, wqe->reach);
    }
}

static uint32_t own_slot(const struct hca_rq *rq, uint32_t number)
{
    return rq->order ? *order_at(rq, number) : number & (rq->depth - 1);
}

void rq_recheck(struct hca_rq *rq, uint32_t pd)
{
    spin_lock(&rq->lock);
    uint32_t head = load_relaxed(&rq->shared->head), posted = load_relaxed(&rq->shared->posted);
    for (uint32_t i = head; i != posted && i - head < rq->max_wr; i++) {
        uint32_t slot = own_slot(rq, i);
        if (slot < rq->depth)
            note_reach(rq, rq_own_wqe(rq, slot), pd);
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
    uint32_t slot = rq->order ? rq->free_slots[rq->free_count - 1] : posted & (rq->depth - 1);
    struct posted_receive *receive = &rq->receives[slot];
    if (unlikely(load_relaxed(&receive->out)))
        return ENOMEM;
    rq->free_count--;
    struct recv_wqe *wqe = rq_own_wqe(rq, slot);
    wqe->num_sge = wr->num_sge;
    for (int i = 0; i < wr->num_sge; i++) {
        wqe->sge[i].addr = wr->sg_list[i].addr;
        wqe->sge[i].length = wr->sg_list[i].length;
        wqe->sge[i].lkey = wr->sg_list[i].lkey;
    }
    note_reach(rq, wqe, pd);
    receive->wr_id = wr->wr_id;
    receive->num_sge = wr->num_sge;
    if (likely(wr->num_sge)) {
        receive->addr = wr->sg_list->addr;
        receive->length = wr->sg_list->length;
        receive->lkey = wr->sg_list->lkey;
    }
    if (unlikely(rq->watched) && hca_observer->receive_posted(rq, slot, pd))
        receive->num_sge = 0;
    store_relaxed(&receive->out, true);
    if (rq->order) {
        *order_at(rq, posted) = slot;
        store_relaxed(&rq->takers[slot], 0);
    }
    store_release(&rq->shared->posted, posted + 1);
    return 0;
}

struct recv_wqe *rq_wqe(const struct shared_rq *rq, uint32_t slot, uint32_t *max_sge)
{
    *max_sge = *(const volatile uint32_t *)&rq->max_sge;
    uint64_t stride = wqe_stride(*max_sge);

    if (unlikely(slot >= rq->depth || *max_sge > HCA_MAX_SGE))
        return NULL;
    return seg_at(rq->wqes + slot * stride, stride);
}

bool rq_open(uint64_t offset, struct rq_view *view)
{
    view->rq = seg_at(offset, sizeof(struct shared_rq));
    if (unlikely(!view->rq))
        return false;
    uint32_t depth = view->rq->depth;
    uint64_t order = view->rq->order;
    view->depth = depth;
    view->order = order ? seg_at(order, order_bytes(depth)) : NULL;
    return likely(depth && !(depth & (depth - 1)) && (!order || view->order));
}

struct rq_capacity rq_recv_capacity(const struct shared_rq *rq, uint32_t slot)
{
    uint32_t max_sge;
    const struct recv_wqe *wqe = rq_wqe(rq, slot, &max_sge);
    uint64_t capacity = 0;

    for (uint32_t i = 0; wqe && i < wqe->num_sge && i < max_sge; i++)
        capacity += wqe->sge[i].length;
    return (struct rq_capacity){ at_most_32_bits(capacity), wqe ? wqe->reach : 0 };
}

bool rq_peek(struct rq_view *view)
{
    uint32_t number;

    if (unlikely(!rq_next(view->rq, &number)))
        return false;
    view->slot = rq_slot(view, number);
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
    return *by && load_relaxed(&rq->receives[slot].out) && !proc_word_runs(*by);
}

/* A sender that died between its two stores has marked a receive that is still queued. */
static bool is_queued(const struct hca_rq *rq, uint32_t slot)
{
    uint32_t head = load_relaxed(&rq->shared->head), posted = load_relaxed(&rq->shared->posted);

    return head != posted && own_slot(rq, head) == slot;
}

/* With the owner's lock held; the senders' lock keeps the head in place. */
static void put_back(struct hca_rq *rq, uint32_t slot, uint32_t pd)
{
    uint32_t posted = load_relaxed(&rq->shared->posted);

    shm_lock(&rq->shared->lock);
    if (!is_queued(rq, slot)) {
        note_reach(rq, rq_own_wqe(rq, slot), pd);
        *order_at(rq, posted) = slot;
        store_release(&rq->shared->posted, posted + 1);
    }
    store_relaxed(&rq->takers[slot], 0);
    shm_unlock(&rq->shared->lock);
}

/* `in_ring` takes a CQ's lock, which ranks before ours: so check again under our lock. */
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
            if (completed)
                store_relaxed(&rq->takers[slot], 0);
            else
                put_back(rq, slot, pd);
        }
        spin_unlock(&rq->lock);
    }
}

void rq_put_back_lost(struct hca_rq *rq, uint8_t *accounted)
{
    uint32_t head = load_relaxed(&rq->shared->head), posted = load_relaxed(&rq->shared->posted);

    for (uint32_t i = head; i != posted && i - head < rq->depth; i++)
        if (own_slot(rq, i) < rq->depth)
            accounted[own_slot(rq, i)] = 1;
    for (uint32_t slot = 0; slot < rq->depth; slot++)
        if (load_relaxed(&rq->receives[slot].out) && !accounted[slot] &&
            posted - head < rq->depth) {
            head--; /* without an order ring these are the last receives taken, in any order */
            if (rq->order)
                *order_at(rq, head) = slot;
        }
    store_release(&rq->shared->head, head);
}
