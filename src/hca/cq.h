/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HCA_CQ_H
#define HCA_CQ_H

/*
 * Completion queues. Receive completions, with small payloads inside, are written by the sending
 * process into a ring in the segment that all senders to the CQ share: a ticket is one atomic add,
 * so a CQ costs the same with one QP or ten thousand. Send completions never leave the process.
 */

#include "hca/objects.h"

struct hca_cq *cq_create(struct hca_context *context, uint32_t cqe, struct hca_channel *channel,
                         bool timestamps);
void cq_destroy(struct hca_cq *cq);
int cq_resize(struct hca_cq *cq, uint32_t cqe);

/* Whether peers see something else than what this process, its owner, has published, or the next
 * completion is not there. `tail` is the next ticket; `idle`: no completion waits in the ring. */
bool cq_is_overwritten(struct hca_cq *cq, uint64_t *tail, bool *idle);
/* Afterwards, cq_push_send() works whatever peers see. */
void cq_restore(struct hca_cq *cq);
/* Raises the channel's descriptor, armed or not. */
void cq_wake(struct hca_cq *cq);
/* Skips a completion whose producer cannot publish it any more. False: there is none to come. */
bool cq_skip_if_stuck(struct hca_cq *cq);

/* Returns the number of entries; timestamps may be NULL. */
int cq_poll(struct hca_cq *cq, int entries, struct ibv_wc *wc, uint64_t *timestamps);
int cq_arm(struct hca_cq *cq, bool solicited_only);

/* ---- producing ---- */

/* Reserves a CQE in the ring, inside an epoch; NULL: the CQ has overrun or its ring cannot grow. A
 * reserved CQE must be published. */
struct cqe *cq_reserve(struct shared_cq *cq, uint64_t *ticket);
/* Whether the ring takes another CQE, or grows to do so. False: there is no memory for that, and
 * the consumer has to poll first. Ask before anything is done that cannot be undone. Inside an
 * epoch. */
bool cq_has_room(struct shared_cq *cq);
/* So many producers may reserve a CQE between the question and the reservation. */
#define CQ_ROOM_AHEAD 8
/* Finds the CQE of a ticket that is not in the ring of the route, and updates the route. */
struct cqe *cq_find_entry(struct cq_route *route, uint64_t ticket);
/* The same with a cached route. A limit only grows, and a ring stays while a ticket below its limit
 * is not consumed: so the cached ring is right for our ticket. */
static inline struct cqe *cq_reserve_along(struct cq_route *r, uint64_t *ticket)
{
    struct shared_cq *cq = r->cq;

    *ticket = atomic_fetch_add(&cq->tail, 1);
    if (unlikely(*ticket >= r->limit ||
                 *ticket - load_relaxed(&cq->head_seen) >= load_relaxed(&cq->capacity)))
        return cq_find_entry(r, *ticket);
    return &r->ring->entries[*ticket & r->mask];
}

/* Raises the CQ's event if it is armed for such a completion. */
void cq_fire(struct shared_cq *cq, unsigned flags, enum ibv_wc_status status);

static inline void cq_publish(struct shared_cq *cq, struct cqe *entry, uint64_t ticket,
                              enum ibv_wc_status status, enum ibv_wc_opcode opcode, unsigned flags)
{
    uint64_t sequence = (uint32_t)(ticket * 2 + 1);

    if (unlikely(cq->wants_timestamps))
        entry->timestamp = now_ns();
    store_release(&entry->mark,
                  sequence << 32 | (uint64_t)status << 24 | (uint64_t)(opcode & 0xff) << 16 | flags);
    if (cq->has_channel)
        cq_fire(cq, flags, status);
}

struct shared_cq *cq_open(uint64_t offset);
/* The ring at that offset and its size, or NULL if the offset is invalid. */
struct cq_ring *cq_ring_at(uint64_t offset, uint32_t *size);

/* A completion of our own send queue. */
void cq_push_send(struct hca_cq *cq, struct hca_qp *qp, uint64_t wr_id, uint32_t sq_index,
                  enum ibv_wc_status status, enum ibv_wc_opcode opcode, uint32_t byte_len);

/* Removes the completions of a QP that is being reset or destroyed. */
void cq_purge(struct hca_cq *cq, struct hca_qp *qp);

/* Whether a receive completion for that slot of a receive queue waits in the ring. */
bool cq_ring_holds(struct hca_cq *cq, uint32_t qpn, uint32_t srqn, uint32_t slot);

/* Marks, by slot, the receives of a QP's own queue whose completions wait in the ring. With the
 * CQ's lock held. */
void cq_mark_waiting(struct hca_cq *cq, struct hca_qp *qp, uint8_t *slots);

void cq_overrun(struct shared_cq *cq);

/* Whether any CQ of this process has a completion. */
bool cq_any_waits(void);
bool cq_is_empty(struct hca_cq *cq);

extern struct spinlock cq_list_lock;
extern struct hca_cq *cq_list;

#endif
