/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/cq.h"

#include "hca/arena.h"
#include "hca/async.h"
#include "hca/bounce.h"
#include "hca/engine.h"
#include "hca/epoch.h"
#include "hca/mr.h"
#include "hca/notify.h"
#include "hca/observer.h"
#include "hca/proc.h"
#include "hca/qp.h"
#include "hca/rq.h"
#include "hca/srq.h"
#include "util/list.h"
#include "util/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FIRST_RING_MAX  128
#define FIRST_RING_MIN  16
#define IDLE_EVERY      8    /* empty polls in a row: the first and every eighth do idle work */
#define YIELD_AFTER     25   /* rounds of idle work in a row: the peer may need this core */
#define BUSY_NS         500000 /* sched_yield() takes longer where others want the core */
#define SLEEP_NS        5000
#define FIRST_SLEEPS    32
#define MOST_SLEEPS     8192
#define LOOK_AT_TAIL    64   /* rounds between reads of the senders' cache line, a miss for them */
/* The mark of CQEs that send_fast() writes, solicited or not. */
#define SHORT_MASK      (0xffffffffull & ~(uint64_t)CQE_SOLICITED)
#define SHORT_MARK      ((uint64_t)IBV_WC_RECV << 16 | CQE_IN_LINE)
#define OVERTAKING_TRIES 100000 /* reads of a CQE that is being published, at most */
#define STUCK_AFTER     4    /* polls that find a ticket taken but not published */

struct spinlock cq_list_lock;
struct hca_cq *cq_list;

static uint64_t ring_bytes(uint32_t size)
{
    return sizeof(struct cq_ring) + (uint64_t)size * sizeof(struct cqe);
}

/* ---- creating and destroying ---- */

static void find_next_entry(struct hca_cq *cq)
{
    store_relaxed(&cq->next_entry,
                  &cq->ring->entries[load_relaxed(&cq->head) & (cq->ring_size - 1)]);
}

static int make_ring(struct hca_cq *cq, uint32_t cqe)
{
    uint32_t size = round_up_pow2(cqe);

    size = size > FIRST_RING_MAX ? FIRST_RING_MAX : size < FIRST_RING_MIN ? FIRST_RING_MIN : size;
    cq->ring = arena_alloc(ring_bytes(size));
    if (!cq->ring)
        return ENOMEM;
    cq->ring->size = size;
    cq->ring_size = size;
    store_relaxed(&cq->ring->limit, size);
    cq->limit_published = size;
    find_next_entry(cq);
    store_relaxed(&cq->shared->ring, seg_offset(cq->ring));
    return 0;
}

static void join_channel(struct hca_cq *cq, struct hca_channel *channel)
{
    cq->shared->has_channel = 1;
    cq->shared->channel_fd = channel->ibv.fd;
    cq->shared->channel_id = channel->id;
    spin_lock(&channel->lock);
    list_push(channel->cqs, cq, next_on_channel, link_on_channel);
    channel->ibv.refcnt++;
    spin_unlock(&channel->lock);
}

static void leave_channel(struct hca_cq *cq, struct hca_channel *channel)
{
    spin_lock(&channel->lock);
    list_remove(cq, next_on_channel, link_on_channel);
    if (channel->next_to_look_at == cq)
        channel->next_to_look_at = NULL;
    channel->ibv.refcnt--;
    spin_unlock(&channel->lock);
}

struct hca_cq *cq_create(struct hca_context *context, uint32_t cqe, struct hca_channel *channel,
                         bool timestamps)
{
    struct hca_cq *cq = calloc(1, sizeof(*cq));

    if (!cq)
        return NULL;
    cq->sends_capacity = 64;
    cq->sends = malloc(cq->sends_capacity * sizeof(*cq->sends));
    cq->shared = arena_alloc(sizeof(*cq->shared));
    if (!cq->sends || !cq->shared || make_ring(cq, cqe)) {
        arena_free(cq->shared, sizeof(*cq->shared));
        free(cq->sends);
        free(cq);
        errno = ENOMEM;
        return NULL;
    }
    cq->ibv.context = &context->verbs.context;
    cq->owner = proc_self;
    cq->shared->proc = proc_self;
    cq->shared->wants_timestamps = timestamps;
    store_relaxed(&cq->shared->capacity, cqe);
    cq->shared->events.fd = context->verbs.context.async_fd;
    cq->shared->events.id = context->async_id;
    if (channel)
        join_channel(cq, channel);
    spin_lock(&cq_list_lock);
    list_push(cq_list, cq, next, link);
    spin_unlock(&cq_list_lock);
    return cq;
}

/* The bound stops a corrupted chain. */
static void free_rings(struct hca_cq *cq)
{
    struct cq_ring *ring = cq->ring;
    uint32_t size = cq->ring_size, next_size;

    for (int hops = 0; ring && hops < 32; hops++) {
        struct cq_ring *next = cq_ring_at(load_relaxed(&ring->next), &next_size);
        arena_free(ring, ring_bytes(size));
        ring = next;
        size = next_size;
    }
}

/* No QP or SRQ refers to the CQ: each was destroyed with a grace period. */
void cq_destroy(struct hca_cq *cq)
{
    spin_lock(&cq_list_lock);
    list_remove(cq, next, link);
    spin_unlock(&cq_list_lock);
    if (cq->ibv.channel)
        leave_channel(cq, (struct hca_channel *)cq->ibv.channel);
    async_withdraw(&cq->shared->events, cq->ibv.context->async_fd);
    free_rings(cq);
    arena_free(cq->shared, sizeof(*cq->shared));
    free(cq->sends);
    hca_free_object(cq);
}

/* ---- consuming from the ring ---- */

static struct cqe *next_entry(struct hca_cq *cq)
{
    return load_relaxed(&cq->next_entry);
}

static bool is_published(struct hca_cq *cq, struct cqe *entry)
{
    return load_acquire(&entry->mark) >> 32 == (uint32_t)(load_relaxed(&cq->head) * 2 + 1);
}

/* The limit moves by compare-and-swap, because a producer may freeze it to start a larger ring. */
static void move_limit(struct hca_cq *cq)
{
    struct cq_ring *ring = cq->ring;
    uint32_t size = cq->ring_size, next_size;
    uint64_t limit = load_acquire(&ring->limit), head = load_relaxed(&cq->head);

    if (!(limit & LIMIT_FROZEN)) {
        if (head + size - limit < size / 4)
            return;
        if (atomic_compare_exchange_strong(&ring->limit, &limit, head + size)) {
            cq->limit_published = head + size;
            return;
        }
    }
    limit &= ~LIMIT_FROZEN;
    cq->limit_published = limit;
    if (head < limit)
        return;
    struct cq_ring *next = cq_ring_at(load_acquire(&ring->next), &next_size);
    if (!next)
        return;
    cq->ring = next;
    cq->ring_size = next_size;
    cq->limit_published = load_relaxed(&next->limit) & ~LIMIT_FROZEN;
    store_release(&cq->shared->ring, seg_offset(next));
    epoch_grace();
    arena_free(ring, ring_bytes(size));
}

static void consume(struct hca_cq *cq)
{
    uint64_t head = load_relaxed(&cq->head) + 1;

    store_relaxed(&cq->head, head);
    store_release(&cq->shared->head, head);
    if (unlikely(head + cq->ring_size - cq->limit_published >= cq->ring_size / 4 ||
                 head >= cq->limit_published))
        move_limit(cq);
    find_next_entry(cq);
}

/* A producer took this ticket and has not published the CQE. If it is still missing after a grace
 * period, its producer is dead. A stopped producer publishes when it continues. */
static void skip_abandoned(struct hca_cq *cq)
{
    struct cqe *entry = next_entry(cq);
    uint64_t head = load_relaxed(&cq->head);

    /* Another thread may have consumed that CQE: then no producer has this ticket yet. */
    if (load_acquire(&cq->shared->tail) == head || load_relaxed(&cq->shared->overrun))
        return;
    if (!epoch_grace() || is_published(cq, entry))
        return;
    log_info("skipping a completion that a dead process did not publish");
    store_release(&entry->mark, (uint64_t)(uint32_t)(head * 2 + 1) << 32 | CQE_HOLE);
}

/* Calls `see` for each completion in the ring until it returns true. */
static bool any_waiting(struct hca_cq *cq, bool (*see)(struct cqe *e, void *arg), void *arg)
{
    uint64_t tail = load_acquire(&cq->shared->tail), head = load_relaxed(&cq->head);
    struct cq_ring *ring = cq->ring;
    uint32_t size = cq->ring_size;

    if (tail - head > 2 * HCA_MAX_CQE) /* the segment is corrupted */
        tail = head;
    for (uint64_t t = head; t < tail; t++) {
        if (t >= (load_acquire(&ring->limit) & ~LIMIT_FROZEN))
            ring = cq_ring_at(load_acquire(&ring->next), &size);
        if (!ring)
            return false;
        struct cqe *e = &ring->entries[t & (size - 1)];
        if (load_acquire(&e->mark) >> 32 == (uint32_t)(t * 2 + 1) && see(e, arg))
            return true;
    }
    return false;
}

struct slot_id {
    uint32_t qpn, srqn, slot;
};

static bool is_slot(struct cqe *e, void *arg)
{
    struct slot_id *id = arg;

    return e->slot == id->slot && e->srqn == id->srqn && (id->srqn || e->qpn == id->qpn);
}

bool cq_ring_holds(struct hca_cq *cq, uint32_t qpn, uint32_t srqn, uint32_t slot)
{
    struct slot_id id = { qpn, srqn, slot };

    spin_lock(&cq->lock);
    bool found = any_waiting(cq, is_slot, &id);
    spin_unlock(&cq->lock);
    return found;
}

struct slot_marks {
    struct hca_qp *qp;
    uint8_t *slots;
};

static bool mark_slot(struct cqe *e, void *arg)
{
    struct slot_marks *marks = arg;
    uint32_t slot = e->slot;

    if (e->qpn == marks->qp->ibv.qp_num && !e->srqn && slot < marks->qp->rq.depth)
        marks->slots[slot] = 1;
    return false;
}

void cq_mark_waiting(struct hca_cq *cq, struct hca_qp *qp, uint8_t *slots)
{
    struct slot_marks marks = { qp, slots };

    any_waiting(cq, mark_slot, &marks);
}

/* ---- receive completions ---- */

/* Copies into the scatter list of a receive of this process, from byte `skip` on. */
static bool scatter(struct hca_rq *rq, uint32_t slot, uint32_t pd, uint32_t skip,
                    const uint8_t *data, uint32_t length)
{
    struct recv_wqe *wqe = rq_own_wqe(rq, slot);
    struct mem_ref ref;

    for (uint32_t i = 0; i < wqe->num_sge && i < rq->max_sge && length; i++) {
        uint64_t addr = wqe->sge[i].addr;
        uint32_t n = wqe->sge[i].length;
        if (skip >= n) {
            skip -= n;
            continue;
        }
        addr += skip;
        n -= skip;
        skip = 0;
        n = n < length ? n : length;
        if (unlikely(!mr_local(wqe->sge[i].lkey, pd, addr, n, true, &ref)))
            return false;
        char *to = ref.kind == MEM_SEGMENT ? (char *)seg + ref.addr : (char *)ref.addr;
        if (n <= CQE_INLINE)
            copy_short(to, data, n);
        else
            memcpy(to, data, n);
        data += n;
        length -= n;
    }
    return length == 0;
}

static bool take_payload(struct hca_rq *rq, struct cqe *e, uint32_t slot, uint32_t pd,
                         unsigned flags, bool datagram)
{
    uint32_t header = datagram ? HCA_GRH_BYTES : 0;
    uint32_t length = e->length - header;
    bool ok = true;

    if (flags & CQE_GRH) {
        struct ibv_grh grh;
        qp_make_grh(&grh, e->slid, length, (const union ibv_gid *)(e->data + CQE_DGID_AT));
        ok = scatter(rq, slot, pd, 0, (uint8_t *)&grh, sizeof(grh));
    }
    if ((flags & CQE_IN_LINE) && length)
        return ok && length <= CQE_INLINE && scatter(rq, slot, pd, header, e->data, length);
    if (flags & CQE_IN_BOUNCE) {
        struct bounce_block *block = bounce_find(e);
        ok = ok && block && length <= BOUNCE_BYTES &&
             scatter(rq, slot, pd, header, block->data, length);
    }
    return ok;
}

static inline void fill_wc(struct ibv_wc *wc, const struct cqe *e, unsigned status, unsigned opcode,
                           unsigned flags)
{
    wc->status = status;
    wc->opcode = opcode;
    wc->vendor_err = 0;
    wc->byte_len = e->length;
    wc->imm_data = e->imm;
    wc->qp_num = e->qpn;
    wc->src_qp = e->src_qp;
    wc->wc_flags = flags;
    wc->pkey_index = 0;
    wc->slid = e->slid;
    wc->sl = e->sl;
    wc->dlid_path_bits = 0;
}

/* Takes a CQE of send_fast(). False: the CQE or its receive needs the general path; nothing was
 * changed. */
static inline bool take_short(struct cqe *e, struct ibv_wc *wc)
{
    struct hca_qp *qp = qp_by_number(e->qpn);
    uint32_t length = e->length;
    struct mem_ref ref;

    if (unlikely(!qp || e->srqn || length > CQE_INLINE))
        return false;
    struct hca_rq *rq = &qp->rq;
    uint32_t slot = e->slot;
    if (unlikely(!rq->shared || rq->free_slots || slot >= rq->depth))
        return false;
    struct posted_receive *receive = &rq->receives[slot];
    if (unlikely(receive->num_sge != 1 || length > receive->length ||
                 !mr_local(receive->lkey, qp->pd->id, receive->addr, length, true, &ref) ||
                 ref.kind != MEM_PROCESS || !rq_complete(rq, slot, &wc->wr_id)))
        return false;
    copy_short((void *)ref.addr, e->data, length);
    fill_wc(wc, e, IBV_WC_SUCCESS, IBV_WC_RECV, 0);
    return true;
}

/* The adapter puts longer messages, and those of the wire, into memory before it writes the CQE. */
static uint32_t bytes_placed(const struct cqe *e, unsigned opcode, unsigned flags)
{
    return opcode == IBV_WC_RECV && !(flags & (CQE_IN_LINE | CQE_IN_BOUNCE)) ? e->length : 0;
}

/* False: the CQE's QP is gone; skip the CQE. */
static bool take_recv(struct hca_cq *cq, struct cqe *e, struct ibv_wc *wc)
{
    uint64_t mark = load_relaxed(&e->mark);
    unsigned flags = mark & 0xffff, opcode = mark >> 16 & 0xff, status = mark >> 24 & 0xff;

    if (likely((mark & SHORT_MASK) == SHORT_MARK) && likely(take_short(e, wc)))
        return true;
    struct hca_qp *qp = qp_by_number(e->qpn);
    struct hca_srq *srq = e->srqn ? srq_by_number(e->srqn) : NULL;
    struct hca_rq *rq = srq ? &srq->rq : qp && !e->srqn ? &qp->rq : NULL;
    uint32_t slot = e->slot;
    bool wanted = !(flags & (CQE_HOLE | CQE_ORPHAN)) && rq && rq->shared && slot < rq->depth &&
                  (qp || (srq && srq->is_xrc));

    if (wanted && unlikely(rq->watched))
        hca_observer->receive_completes(rq, slot, status, bytes_placed(e, opcode, flags));
    if (likely(wanted) && status == IBV_WC_SUCCESS &&
        unlikely(!take_payload(rq, e, slot, srq ? srq->shared->pd : qp->pd->id, flags,
                               qp && qp->ibv.qp_type == IBV_QPT_UD))) {
        status = IBV_WC_LOC_PROT_ERR;
        if (qp)
            qp_set_error(qp->shared);
    }
    if (flags & CQE_IN_BOUNCE)
        bounce_return(e);
    if (wanted && unlikely(status != IBV_WC_SUCCESS && rq->watched))
        hca_observer->receive_failed(rq, slot, e->qpn, status);
    if (unlikely((flags & CQE_HOLE) || !rq || !rq->shared ||
                 !rq_complete(rq, slot, &wc->wr_id) || !wanted))
        return false;
    fill_wc(wc, e, status, opcode,
            (flags & CQE_IMM ? IBV_WC_WITH_IMM : 0) | (flags & CQE_INV ? IBV_WC_WITH_INV : 0) |
                (flags & (CQE_GRH | CQE_GRH_PLACED) ? IBV_WC_GRH : 0));
    if (unlikely(status != IBV_WC_SUCCESS)) {
        qp_log_receive(e->qpn, wc->wr_id, status);
        store_relaxed(&cq->needs_flush, true);
    }
    return true;
}

/* ---- send completions ---- */

void cq_push_send(struct hca_cq *cq, struct hca_qp *qp, uint64_t wr_id, uint32_t sq_index,
                  enum ibv_wc_status status, enum ibv_wc_opcode opcode, uint32_t byte_len)
{
    spin_lock(&cq->lock);
    uint32_t head = load_relaxed(&cq->sends_head), tail = load_relaxed(&cq->sends_tail);
    uint32_t capacity = load_relaxed(&cq->shared->capacity);
    bool full = false;
    /* Reading the ring's tail costs every sender a cache miss, so read it only if send completions
     * alone fill a good part of the CQ. */
    if (unlikely(tail - head >= capacity / 2)) {
        uint64_t received = load_relaxed(&cq->shared->tail) - load_relaxed(&cq->head);
        full = tail - head + received >= capacity;
    }
    if (unlikely(!full && tail - head == cq->sends_capacity)) {
        struct send_completion *grown = malloc(2 * cq->sends_capacity * sizeof(*grown));
        if (grown) {
            for (uint32_t i = head; i != tail; i++)
                grown[i & (2 * cq->sends_capacity - 1)] = cq->sends[i & (cq->sends_capacity - 1)];
            free(cq->sends);
            cq->sends = grown;
            cq->sends_capacity *= 2;
        }
        full = !grown;
    }
    if (likely(!full)) {
        struct send_completion *done = &cq->sends[tail & (cq->sends_capacity - 1)];
        done->wr_id = wr_id;
        done->qp = qp;
        done->sq_index = sq_index;
        done->byte_len = byte_len;
        done->status = status;
        done->opcode = opcode;
        store_release(&cq->sends_tail, tail + 1);
    }
    spin_unlock(&cq->lock);
    if (unlikely(full && hca_observer))
        hca_observer->cq_overrun(cq);
    if (unlikely(full))
        cq_overrun(cq->shared);
    else if (cq->shared->has_channel)
        cq_fire(cq->shared, 0, status);
}

static void take_send(struct hca_cq *cq, struct ibv_wc *wc)
{
    uint32_t head = load_relaxed(&cq->sends_head);
    struct send_completion *done = &cq->sends[head & (cq->sends_capacity - 1)];

    wc->wr_id = done->wr_id;
    wc->status = done->status;
    wc->opcode = done->opcode;
    wc->vendor_err = 0;
    wc->byte_len = done->byte_len;
    wc->imm_data = 0;
    wc->qp_num = done->qp->ibv.qp_num;
    wc->src_qp = 0;
    wc->wc_flags = 0;
    wc->pkey_index = 0;
    wc->slid = 0;
    wc->sl = 0;
    wc->dlid_path_bits = 0;
    store_release(&done->qp->sq_freed, done->sq_index + 1);
    store_release(&cq->sends_head, head + 1);
}

/* A reset discards the receives of the QP's own queue. */
static bool make_hole(struct cqe *e, void *qpn)
{
    if (e->qpn == *(uint32_t *)qpn)
        store_relaxed(&e->mark,
                      load_relaxed(&e->mark) | (e->srqn ? CQE_ORPHAN : CQE_HOLE));
    return false;
}

void cq_purge(struct hca_cq *cq, struct hca_qp *qp)
{
    spin_lock(&cq->lock);
    uint32_t keep = load_relaxed(&cq->sends_head), tail = load_relaxed(&cq->sends_tail);
    for (uint32_t i = keep; i != tail; i++)
        if (cq->sends[i & (cq->sends_capacity - 1)].qp != qp)
            cq->sends[keep++ & (cq->sends_capacity - 1)] = cq->sends[i & (cq->sends_capacity - 1)];
    store_relaxed(&cq->sends_tail, keep);
    any_waiting(cq, make_hole, &qp->ibv.qp_num);
    spin_unlock(&cq->lock);
}

bool cq_is_overwritten(struct hca_cq *cq, uint64_t *tail, bool *idle)
{
    struct shared_cq *shared = cq->shared;

    spin_lock(&cq->lock);
    *tail = load_acquire(&shared->tail);
    uint64_t head = load_relaxed(&cq->head), waiting = *tail - head;
    bool differs = shared->proc != proc_self || load_relaxed(&shared->head) != head ||
                   load_relaxed(&shared->ring) != seg_offset(cq->ring) ||
                   cq->ring->size != cq->ring_size ||
                   (load_relaxed(&cq->ring->limit) & ~LIMIT_FROZEN) != cq->limit_published ||
                   load_relaxed(&shared->capacity) != (uint32_t)cq->ibv.cqe ||
                   waiting > 2 * HCA_MAX_CQE || (waiting && !is_published(cq, next_entry(cq)));
    *idle = !waiting;
    spin_unlock(&cq->lock);
    return differs;
}

bool cq_skip_if_stuck(struct hca_cq *cq)
{
    spin_lock(&cq->lock);
    bool stuck = load_relaxed(&cq->shared->tail) != load_relaxed(&cq->head) &&
                 !is_published(cq, next_entry(cq));
    if (stuck)
        skip_abandoned(cq);
    spin_unlock(&cq->lock);
    return stuck;
}

void cq_restore(struct hca_cq *cq)
{
    store_relaxed(&cq->shared->capacity, cq->ibv.cqe);
}

void cq_wake(struct hca_cq *cq)
{
    struct hca_channel *channel = (struct hca_channel *)cq->ibv.channel;

    if (channel)
        notify_raise(proc_self, channel->ibv.fd, channel->id);
}

/* ---- polling ---- */

bool cq_is_empty(struct hca_cq *cq)
{
    return load_relaxed(&cq->sends_head) == load_relaxed(&cq->sends_tail) &&
           !is_published(cq, next_entry(cq));
}

bool cq_any_waits(void)
{
    bool waits = false;

    spin_lock(&cq_list_lock);
    for (struct hca_cq *cq = cq_list; cq && !waits; cq = cq->next)
        waits = !cq_is_empty(cq);
    spin_unlock(&cq_list_lock);
    return waits;
}

static uint32_t count_up(_Atomic uint32_t *counter)
{
    uint32_t count = load_relaxed(counter) + 1;

    store_relaxed(counter, count);
    return count;
}

/* Lets the processes run that this one waits for. On a quiet machine sched_yield() returns at once.
 * Where it takes long, others want this core, and a poller that has used up its share waits behind
 * all of them: then sleep instead, for a moment, because the kernel runs a thread soon after it
 * wakes. Try sched_yield() again after a while, and more rarely each time it takes long. */
static void give_way_to_others(void)
{
    static __thread uint32_t sleeps_left, sleeps_next = FIRST_SLEEPS;
    struct timespec moment = { .tv_nsec = SLEEP_NS };

    if (sleeps_left) {
        sleeps_left--;
        syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &moment, NULL);
        return;
    }
    uint64_t before = now_ns();
    sched_yield();
    if (likely(now_ns() - before < BUSY_NS)) {
        sleeps_next = FIRST_SLEEPS;
        return;
    }
    if (hca_engine->charge) /* in virtual time, polling waits in another way */
        return;
    sleeps_left = sleeps_next;
    sleeps_next = sleeps_next < MOST_SLEEPS / 2 ? 2 * sleeps_next : MOST_SLEEPS;
}

static void idle(struct hca_cq *cq)
{
    uint32_t looks = load_relaxed(&cq->empty_polls) / IDLE_EVERY;

    if (unlikely(load_relaxed(&hca_waiting)))
        hca_engine->progress();
    if (unlikely(qp_needs_attention()))
        qp_handle_errors();
    if (unlikely(looks && looks % YIELD_AFTER == 0)) {
        notify_serve_if_wanted();
        proc_reap_periodically();
        epoch_repair_own_line();
        qp_look_for_damage();
        give_way_to_others();
    }
    if (unlikely(count_up(&cq->idle_polls) % LOOK_AT_TAIL == 0) &&
        load_relaxed(&cq->shared->tail) != load_relaxed(&cq->head) &&
        count_up(&cq->stuck_polls) >= STUCK_AFTER) {
        store_relaxed(&cq->stuck_polls, 0);
        cq_skip_if_stuck(cq);
    }
}

/* A message that arrives on a QP while it publishes one may be the reply to it, and must not
 * overtake the send's own completion: hardware sends the ACK before the program sees the message.
 * The posting thread may be waiting for our lock, or for a processor. */
struct overtaking {
    uint64_t head;
    uint32_t number; /* of the send that the CQE at `head` waits for; 0: none */
    uint32_t tries;
};

static bool overtakes(struct hca_cq *cq, const struct cqe *e, struct overtaking *o)
{
    struct hca_qp *qp = qp_by_number(e->qpn);
    uint32_t number = qp ? load_acquire(&qp->publishing) : 0;

    if (likely(!number))
        return false;
    if (!o->number || o->head != cq->head)
        *o = (struct overtaking){ cq->head, number, 0 };
    return number == o->number && o->tries++ < OVERTAKING_TRIES;
}

static void let_others_in(struct spinlock *lock, uint32_t tries)
{
    spin_unlock(lock);
    if (tries % 100 == 0)
        sched_yield();
    else
        cpu_relax();
    spin_lock(lock);
}

int cq_poll(struct hca_cq *cq, int entries, struct ibv_wc *wc, uint64_t *timestamps)
{
    struct overtaking overtaking = { 0 };
    int got = 0;

    if (unlikely(load_relaxed(&cq->event_in_hand)))
        store_relaxed(&cq->event_in_hand, 0);
    if (cq_is_empty(cq)) {
        if ((count_up(&cq->empty_polls) - 1) % IDLE_EVERY)
            return 0;
        idle(cq);
        if (cq_is_empty(cq))
            return 0;
    }
    spin_lock(&cq->lock);
    store_relaxed(&cq->empty_polls, 0);
    store_relaxed(&cq->stuck_polls, 0);
    while (got < entries) {
        struct cqe *e = next_entry(cq);
        if (load_relaxed(&cq->sends_head) != load_relaxed(&cq->sends_tail)) {
            take_send(cq, &wc[got]);
            if (timestamps)
                timestamps[got] = now_ns();
            got++;
        } else if (is_published(cq, e)) {
            if (!__libc_single_threaded && unlikely(overtakes(cq, e, &overtaking))) {
                if (got)
                    break;
                let_others_in(&cq->lock, overtaking.tries);
                continue;
            }
            if (timestamps)
                timestamps[got] = e->timestamp;
            got += take_recv(cq, e, &wc[got]);
            consume(cq);
        } else {
            break;
        }
    }
    spin_unlock(&cq->lock);
    if (unlikely(load_relaxed(&cq->needs_flush))) {
        store_relaxed(&cq->needs_flush, false);
        qp_handle_errors();
    }
    return got;
}

/* Stops at two: callers only distinguish none, one and several. */
static bool count_any(struct cqe *e, void *count)
{
    return ++*(unsigned *)count > 1;
}

static bool count_solicited(struct cqe *e, void *count)
{
    uint64_t mark = load_relaxed(&e->mark);
    bool counts = (mark & CQE_SOLICITED) || (mark >> 24 & 0xff) != IBV_WC_SUCCESS;

    return counts && count_any(e, count);
}

int cq_arm(struct hca_cq *cq, bool solicited_only)
{
    if (!cq->shared->has_channel)
        return 0;
    notify_serve_if_wanted();
    uint32_t want = solicited_only ? CQ_ARMED_SOLICITED : CQ_ARMED_ANY;
    if (load_relaxed(&cq->shared->armed) < want)
        atomic_store(&cq->shared->armed, want);
    atomic_thread_fence(memory_order_seq_cst);
    if (unlikely(hca_observer && hca_observer->strict_events))
        return 0;
    /* Completions that arrived before arming count, or a program that polls and then arms would
     * sleep on them. The completion of its last event does not, for programs that arm before they
     * poll. */
    unsigned waiting = 0;
    spin_lock(&cq->lock);
    any_waiting(cq, solicited_only ? count_solicited : count_any, &waiting);
    if (!solicited_only)
        waiting += load_relaxed(&cq->sends_tail) - load_relaxed(&cq->sends_head);
    spin_unlock(&cq->lock);
    if (waiting > load_relaxed(&cq->event_in_hand))
        cq_fire(cq->shared, CQE_SOLICITED, IBV_WC_SUCCESS);
    return 0;
}

int cq_resize(struct hca_cq *cq, uint32_t cqe)
{
    int err = 0;

    spin_lock(&cq->lock);
    uint64_t waiting = load_relaxed(&cq->sends_tail) - load_relaxed(&cq->sends_head) +
                       (load_relaxed(&cq->shared->tail) - load_relaxed(&cq->head));
    if (waiting > cqe)
        err = EINVAL;
    else
        store_relaxed(&cq->shared->capacity, cqe);
    spin_unlock(&cq->lock);
    return err;
}
