#include "cm/wire.h"

#include "hca/arena.h"
#include "hca/notify.h"
#include "hca/proc.h"
#include "hca/segment.h"
#include "hca/shm_lock.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define BINDINGS_PER_CHUNK 512
#define BINDING_CHUNKS     128
#define EPHEMERAL_FIRST    32768
#define EPHEMERAL_COUNT    28232
#define MAILBOX_MAX        (1u << 20)

struct mailbox_ring {
    uint32_t size; /* power of two */
    uint32_t reserved;
    struct wire_message messages[];
};

/* Messages head..tail are whole: each index is moved only after what it covers has been written. */
struct mailbox {
    uint32_t generation; /* of the process that reads it */
    _Atomic uint32_t head, tail;
    _Atomic uint64_t ring;
};

struct wire_root {
    struct shm_lock lock;
    _Atomic uint32_t binding_high;
    _Atomic uint64_t chunks[BINDING_CHUNKS];
    struct mailbox mailboxes[MAX_PROCS];
};

static struct wire_root *root;

/* ---- the root and its lock ---- */

static struct wire_root *find_root(void)
{
    uint64_t offset = load_acquire(&seg->cm_root);

    if (!offset) {
        struct wire_root *made = arena_alloc_permanent(sizeof(*made));
        if (!made)
            return NULL;
        if (atomic_compare_exchange_strong(&seg->cm_root, &offset, seg_offset(made)))
            return made;
    }
    return seg_at(offset, sizeof(struct wire_root));
}

int wire_attach(void)
{
    int err;

    if (root && proc_self >= 0)
        return 0;
    if ((err = segment_attach()))
        return err;
    if (!(root = find_root()))
        return ENOMEM;
    wire_lock();
    struct mailbox *box = &root->mailboxes[proc_self];
    store_relaxed(&box->head, load_relaxed(&box->tail));
    box->generation = load_relaxed(&proc_slot(proc_self)->generation);
    wire_unlock();
    return 0;
}

void wire_forget(void)
{
    root = NULL;
}

void wire_lock(void)
{
    shm_lock(&root->lock);
}

void wire_unlock(void)
{
    shm_unlock(&root->lock);
}

void wire_self(struct wire_peer *self)
{
    memset(self, 0, sizeof(*self));
    self->proc = proc_self;
    self->generation = load_relaxed(&proc_slot(proc_self)->generation);
    self->fd = -1;
}

bool wire_peer_alive(const struct wire_peer *peer)
{
    return peer->proc < MAX_PROCS &&
           load_acquire(&proc_slot(peer->proc)->generation) == peer->generation &&
           proc_alive(peer->proc);
}

/* ---- mailboxes ---- */

static struct mailbox_ring *ring_of(struct mailbox *box)
{
    uint64_t offset = load_acquire(&box->ring);
    struct mailbox_ring *ring = seg_at(offset, sizeof(*ring));

    if (!ring || ring->size == 0 || ring->size > MAILBOX_MAX || (ring->size & (ring->size - 1)) ||
        !seg_at(offset, sizeof(*ring) + (uint64_t)ring->size * sizeof(ring->messages[0])))
        return NULL;
    if (load_relaxed(&box->tail) - load_relaxed(&box->head) > ring->size)
        store_relaxed(&box->head,
                      load_relaxed(&box->tail)); /* damaged: nothing in it can be right */
    return ring;
}

/* The smaller ring stays where it is: together they are never more than twice the largest. */
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

int wire_send(const struct wire_peer *to, const struct wire_message *message, bool wake)
{
    if (to->proc >= MAX_PROCS)
        return ESRCH;
    struct mailbox *box = &root->mailboxes[to->proc];
    if (!wire_peer_alive(to) || box->generation != to->generation)
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

bool wire_receive(struct wire_message *message)
{
    struct mailbox *box = &root->mailboxes[proc_self];
    struct mailbox_ring *ring = ring_of(box);
    uint32_t head = load_relaxed(&box->head);

    if (!ring || head == load_acquire(&box->tail))
        return false;
    *message = ring->messages[head & (ring->size - 1)];
    store_release(&box->head, head + 1);
    return true;
}

/* ---- bindings ---- */

struct wire_binding *wire_binding(unsigned index)
{
    if (index >= BINDINGS_PER_CHUNK * BINDING_CHUNKS)
        return NULL;
    struct wire_binding *chunk = seg_at(load_acquire(&root->chunks[index / BINDINGS_PER_CHUNK]),
                                        BINDINGS_PER_CHUNK * sizeof(*chunk));
    return chunk ? &chunk[index % BINDINGS_PER_CHUNK] : NULL;
}

static unsigned binding_count(void)
{
    unsigned high = load_relaxed(&root->binding_high);

    return high < BINDINGS_PER_CHUNK * BINDING_CHUNKS ? high : BINDINGS_PER_CHUNK * BINDING_CHUNKS;
}

/* A binding in use, or NULL; what the dead have left is taken away here. */
static struct wire_binding *used_binding(unsigned index)
{
    struct wire_binding *b = wire_binding(index);

    if (!b || b->state == BINDING_FREE)
        return NULL;
    if (wire_peer_alive(&b->owner))
        return b;
    b->state = BINDING_FREE;
    return NULL;
}

static bool accepts(const struct wire_binding *b, const struct cm_address *to)
{
    if (!address_is_any(&b->address))
        return address_equal_ip(&b->address, to);
    switch (b->address.family) {
    case AF_INET:
        return address_is_v4(to);
    case AF_INET6:
        return !b->v6_only || !address_is_v4(to);
    default:
        return true;
    }
}

static bool collides(const struct wire_binding *a, const struct wire_binding *b)
{
    return a->node == b->node && a->port_space == b->port_space &&
           a->address.port == b->address.port &&
           (accepts(a, &b->address) || accepts(b, &a->address));
}

static int find_collision(const struct wire_binding *wanted, bool listening)
{
    for (unsigned i = 0; i < binding_count(); i++) {
        struct wire_binding *b = used_binding(i);
        if (!b || b == wanted || !collides(b, wanted))
            continue;
        bool shared = b->reuse && wanted->reuse;
        if (listening ? b->state == BINDING_LISTENING : !shared)
            return EADDRINUSE;
    }
    return 0;
}

static int pick_port(struct wire_binding *wanted)
{
    unsigned start;

    if (getentropy(&start, sizeof(start)))
        start = 0; /* the first that is free will do */
    for (unsigned i = 0; i < EPHEMERAL_COUNT; i++) {
        wanted->address.port = EPHEMERAL_FIRST + (start % EPHEMERAL_COUNT + i) % EPHEMERAL_COUNT;
        if (!find_collision(wanted, false))
            return 0;
    }
    return EADDRNOTAVAIL;
}

static int find_free(unsigned *index)
{
    unsigned i, high = binding_count();

    for (i = 0; i < high; i++) {
        struct wire_binding *b = wire_binding(i);
        if (b && b->state == BINDING_FREE)
            break;
    }
    if (i >= BINDINGS_PER_CHUNK * BINDING_CHUNKS)
        return ENOMEM;
    if (!wire_binding(i)) {
        void *chunk = arena_alloc_permanent(BINDINGS_PER_CHUNK * sizeof(struct wire_binding));
        if (!chunk)
            return ENOMEM;
        store_release(&root->chunks[i / BINDINGS_PER_CHUNK], seg_offset(chunk));
    }
    if (i >= high)
        store_release(&root->binding_high, i + 1);
    *index = i;
    return 0;
}

int wire_bind(struct wire_binding *wanted, unsigned *index)
{
    int err = wanted->address.port ? find_collision(wanted, false) : pick_port(wanted);

    if (err || (err = find_free(index)))
        return err;
    struct wire_binding *b = wire_binding(*index);
    *b = *wanted;
    atomic_thread_fence(memory_order_release);
    b->state = BINDING_BOUND;
    return 0;
}

void wire_unbind(unsigned index)
{
    struct wire_binding *b = wire_binding(index);

    if (b)
        b->state = BINDING_FREE;
}

int wire_listen(unsigned index, int backlog)
{
    struct wire_binding *b = wire_binding(index);

    if (!b)
        return EINVAL;
    if (b->state == BINDING_BOUND && find_collision(b, true))
        return EADDRINUSE;
    b->backlog = backlog;
    b->state = BINDING_LISTENING;
    return 0;
}

/* The node's own listener comes first, and one bound to the very address before a wildcard. */
struct wire_binding *wire_find_listener(uint16_t port_space, const struct cm_address *to,
                                        const struct cm_place *place)
{
    unsigned own_node = proc_slot(proc_self)->node;
    struct wire_binding *best = NULL;
    int best_rank = -1;

    for (unsigned i = 0; i < binding_count(); i++) {
        struct wire_binding *b = used_binding(i);
        if (!b || b->state != BINDING_LISTENING || b->port_space != port_space ||
            b->address.port != to->port || !accepts(b, to) ||
            (place->node != ANY_NODE && place->node != (int)b->node))
            continue;
        int rank = 2 * (b->node == own_node) + !address_is_any(&b->address);
        if (rank > best_rank) {
            best_rank = rank;
            best = b;
        }
    }
    return best;
}
