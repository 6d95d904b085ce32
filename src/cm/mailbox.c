/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/shared.h"

#include "hca/arena.h"
#include "hca/notify.h"
#include "hca/proc.h"

#include <errno.h>
#include <string.h>

#define MAILBOX_MAX (1u << 20)

struct mailbox_ring {
    uint32_t size; /* power of two */
    uint32_t reserved;
    struct cm_message messages[];
};

void mailbox_reset(void)
{
    struct mailbox *box = &shared_root->mailboxes[proc_self];

    store_relaxed(&box->head, load_relaxed(&box->tail));
    box->generation = load_relaxed(&proc_slot(proc_self)->generation);
}

void mailbox_self(struct cm_peer *self)
{
    memset(self, 0, sizeof(*self));
    self->proc = proc_self;
    self->generation = load_relaxed(&proc_slot(proc_self)->generation);
    self->fd = -1;
}

bool mailbox_peer_alive(const struct cm_peer *peer)
{
    return peer->proc < MAX_PROCS &&
           load_acquire(&proc_slot(peer->proc)->generation) == peer->generation &&
           proc_alive(peer->proc);
}

static struct mailbox_ring *ring_of(struct mailbox *box)
{
    uint64_t offset = load_acquire(&box->ring);
    struct mailbox_ring *ring = seg_at(offset, sizeof(*ring));

    if (!ring || ring->size == 0 || ring->size > MAILBOX_MAX || (ring->size & (ring->size - 1)) ||
        !seg_at(offset, sizeof(*ring) + (uint64_t)ring->size * sizeof(ring->messages[0])))
        return NULL;
    if (load_relaxed(&box->tail) - load_relaxed(&box->head) > ring->size)
        store_relaxed(&box->head, load_relaxed(&box->tail)); /* damaged: discard its content */
    return ring;
}

/* The old ring is not freed: all rings of a mailbox take less than twice the largest. */
static struct mailbox_ring *grow(struct mailbox *box, struct mailbox_ring *old)
{
    uint32_t size = old ? 2 * old->size : 128;
    uint32_t head = load_relaxed(&box->head), tail = load_relaxed(&box->tail);

    if (size > MAILBOX_MAX)
        return NULL;
    struct mailbox_ring *ring =
        arena_alloc_permanent(sizeof(*ring) + (uint64_t)size * sizeof(ring->messages[0]));
    if (!ring)
        return NULL;
    ring->size = size;
    for (uint32_t i = head; old && i != tail && i - head < old->size; i++)
        ring->messages[i & (size - 1)] = old->messages[i & (old->size - 1)];
    store_release(&box->ring, seg_offset(ring));
    return ring;
}

int mailbox_send(const struct cm_peer *to, const struct cm_message *message, bool wake)
{
    if (to->proc >= MAX_PROCS)
        return ESRCH;
    struct mailbox *box = &shared_root->mailboxes[to->proc];
    if (!mailbox_peer_alive(to) || box->generation != to->generation)
        return ESRCH;
    struct mailbox_ring *ring = ring_of(box);
    uint32_t tail = load_relaxed(&box->tail);
    if (!ring || tail - load_relaxed(&box->head) >= ring->size)
        ring = grow(box, ring);
    if (!ring)
        return ENOMEM;
    ring->messages[tail & (ring->size - 1)] = *message;
    store_release(&box->tail, tail + 1);
    if (wake)
        notify_raise(to->proc, to->fd, to->notify);
    return 0;
}

bool mailbox_receive(struct cm_message *message)
{
    struct mailbox *box = &shared_root->mailboxes[proc_self];
    struct mailbox_ring *ring = ring_of(box);
    uint32_t head = load_relaxed(&box->head);

    if (!ring || head == load_acquire(&box->tail))
        return false;
    *message = ring->messages[head & (ring->size - 1)];
    store_release(&box->head, head + 1);
    return true;
}
