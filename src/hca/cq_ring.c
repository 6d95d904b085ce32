/* SPDX-License-Identifier: BSD-2-Clause */
/* The producer's side of a completion queue, as other processes use it. */

#include "hca/cq.h"

#include "hca/arena.h"
#include "hca/async.h"
#include "hca/notify.h"
#include "hca/proc.h"
#include "hca/shm_lock.h"
#include "util/log.h"

#define GROWN_RING_MIN 512
#define RETRY_NS       10000000

struct shared_cq *cq_open(uint64_t offset)
{
    struct shared_cq *cq = seg_at(offset, sizeof(struct shared_cq));

    return cq && likely(cq->proc < MAX_PROCS) ? cq : NULL;
}

struct cq_ring *cq_ring_at(uint64_t offset, uint32_t *size)
{
    struct cq_ring *ring = seg_at(offset, sizeof(struct cq_ring));

    if (unlikely(!ring))
        return NULL;
    *size = *(volatile uint32_t *)&ring->size;
    if (unlikely(!*size || (*size & (*size - 1)) || (offset & (CACHE_LINE - 1)) ||
                 !seg_at(offset, sizeof(*ring) + (uint64_t)*size * sizeof(struct cqe))))
        return NULL;
    return ring;
}

/* Grows the ring for a ticket at or above its limit, unless the limit has moved or another producer
 * has grown it. A new ring takes the tickets from the limit on, so the limit is frozen: the
 * consumer advances it only by compare-and-swap. */
static bool make_room(struct shared_cq *cq, struct cq_ring *ring, uint32_t old_size,
                      uint64_t ticket)
{
    uint32_t size = old_size * 4 > GROWN_RING_MIN ? old_size * 4 : GROWN_RING_MIN;
    uint32_t most = 4 * round_up_pow2(load_relaxed(&cq->capacity));
    static __thread uint64_t next_try; /* an attempt without success is expensive */
    struct cq_ring *next = NULL;

    shm_lock(&cq->grow_lock);
    uint64_t limit = load_acquire(&ring->limit);
    bool room = limit & LIMIT_FROZEN || ticket < limit;
    if (!room && size <= (most > GROWN_RING_MIN ? most : GROWN_RING_MIN) && now_ns() >= next_try)
        next = arena_alloc_for(cq->proc, sizeof(*next) + (uint64_t)size * sizeof(struct cqe));
    if (next) {
        next->size = size;
        store_relaxed(&ring->next, seg_offset(next));
        do
            store_relaxed(&next->limit, limit + size);
        while (!atomic_compare_exchange_weak(&ring->limit, &limit, limit | LIMIT_FROZEN));
        room = true;
    } else if (!room) {
        next_try = now_ns() + RETRY_NS;
    }
    shm_unlock(&cq->grow_lock);
    return room;
}

static struct cqe *place_ticket(struct cq_route *r, uint64_t ticket)
{
    uint32_t size;
    struct cq_ring *ring = cq_ring_at(load_acquire(&r->cq->ring), &size);

    /* The chain is short: rings quadruple. The bound stops a corrupted one. */
    for (int hops = 0; ring && hops < 32; hops++) {
        uint64_t limit = load_acquire(&ring->limit);
        if (likely(ticket < (limit & ~LIMIT_FROZEN))) {
            r->ring = ring;
            r->limit = limit & ~LIMIT_FROZEN;
            r->mask = size - 1;
            return &ring->entries[ticket & r->mask];
        }
        if (limit & LIMIT_FROZEN)
            ring = cq_ring_at(load_acquire(&ring->next), &size);
        else if (!make_room(r->cq, ring, size, ticket))
            return NULL;
    }
    return NULL;
}

bool cq_has_room(struct shared_cq *cq)
{
    struct cq_route probe = { .cq = cq };
    uint64_t tail = load_relaxed(&cq->tail);
    uint32_t capacity = load_relaxed(&cq->capacity);

    if (tail - load_relaxed(&cq->head_seen) >= capacity &&
        tail - load_acquire(&cq->head) >= capacity)
        return true; /* the program lets it overrun, and is told so */
    return place_ticket(&probe, tail + CQ_ROOM_AHEAD);
}

void cq_overrun(struct shared_cq *cq)
{
    if (!atomic_exchange(&cq->overrun, 1)) {
        log_info("a completion queue of process %d has overrun", proc_slot(cq->proc)->pid);
        async_cq_error(cq);
    }
}

struct cqe *cq_find_entry(struct cq_route *r, uint64_t ticket)
{
    struct shared_cq *cq = r->cq;
    uint32_t capacity = load_relaxed(&cq->capacity);
    uint64_t head = load_relaxed(&cq->head_seen);
    struct cqe *entry = NULL;

    if (ticket - head >= capacity) {
        head = load_acquire(&cq->head);
        store_relaxed(&cq->head_seen, head);
    }
    if (ticket - head < capacity)
        entry = place_ticket(r, ticket);
    if (unlikely(!entry))
        cq_overrun(cq);
    return entry;
}

struct cqe *cq_reserve(struct shared_cq *cq, uint64_t *ticket)
{
    struct cq_route route = { .cq = cq };

    return unlikely(load_relaxed(&cq->overrun)) ? NULL : cq_reserve_along(&route, ticket);
}

void cq_fire(struct shared_cq *cq, unsigned flags, enum ibv_wc_status status)
{
    uint32_t armed;

    /* Against cq_arm, which arms and then looks for completions. */
    atomic_thread_fence(memory_order_seq_cst);
    armed = load_relaxed(&cq->armed);
    if (armed == CQ_UNARMED || (armed == CQ_ARMED_SOLICITED && !(flags & CQE_SOLICITED) && !status))
        return;
    if (atomic_compare_exchange_strong(&cq->armed, &armed, CQ_UNARMED)) {
        atomic_fetch_add(&cq->fired, 1);
        notify_raise(cq->proc, cq->channel_fd, cq->channel_id);
    }
}
