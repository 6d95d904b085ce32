/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/shared.h"

#include "hca/arena.h"
#include "hca/proc.h"

#include <errno.h>
#include <unistd.h>

#define EPHEMERAL_FIRST 32768
#define EPHEMERAL_COUNT 28232

struct cm_binding *binding_at(unsigned index)
{
    if (index >= BINDINGS_PER_CHUNK * BINDING_CHUNKS)
        return NULL;
    struct cm_binding *chunk =
        seg_at(load_acquire(&shared_root->bindings.chunks[index / BINDINGS_PER_CHUNK]),
               BINDINGS_PER_CHUNK * sizeof(*chunk));
    return chunk ? &chunk[index % BINDINGS_PER_CHUNK] : NULL;
}

static unsigned binding_count(void)
{
    unsigned high = load_relaxed(&shared_root->bindings.high);

    return high < BINDINGS_PER_CHUNK * BINDING_CHUNKS ? high : BINDINGS_PER_CHUNK * BINDING_CHUNKS;
}

/* Returns a binding in use, or NULL. Frees a binding whose process has died. */
static struct cm_binding *used_binding(unsigned index)
{
    struct cm_binding *b = binding_at(index);

    if (!b || b->state == BINDING_FREE)
        return NULL;
    if (mailbox_peer_alive(&b->owner))
        return b;
    b->state = BINDING_FREE;
    return NULL;
}

static bool accepts(const struct cm_binding *b, const struct cm_address *to)
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

static bool collides(const struct cm_binding *a, const struct cm_binding *b)
{
    return a->node == b->node && a->port_space == b->port_space &&
           a->address.port == b->address.port &&
           (accepts(a, &b->address) || accepts(b, &a->address));
}

static int find_collision(const struct cm_binding *wanted, bool listening)
{
    for (unsigned i = 0; i < binding_count(); i++) {
        struct cm_binding *b = used_binding(i);
        if (!b || b == wanted || !collides(b, wanted))
            continue;
        bool shared = b->reuse && wanted->reuse;
        if (listening ? b->state == BINDING_LISTENING : !shared)
            return EADDRINUSE;
    }
    return 0;
}

static int pick_port(struct cm_binding *wanted)
{
    unsigned start;

    if (getentropy(&start, sizeof(start)))
        start = 0;
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
        struct cm_binding *b = binding_at(i);
        if (b && b->state == BINDING_FREE)
            break;
    }
    if (i >= BINDINGS_PER_CHUNK * BINDING_CHUNKS)
        return ENOMEM;
    if (!binding_at(i)) {
        void *chunk = arena_alloc_permanent(BINDINGS_PER_CHUNK * sizeof(struct cm_binding));
        if (!chunk)
            return ENOMEM;
        store_release(&shared_root->bindings.chunks[i / BINDINGS_PER_CHUNK], seg_offset(chunk));
    }
    if (i >= high)
        store_release(&shared_root->bindings.high, i + 1);
    *index = i;
    return 0;
}

int binding_add(struct cm_binding *wanted, unsigned *index)
{
    int err = wanted->address.port ? find_collision(wanted, false) : pick_port(wanted);

    if (err || (err = find_free(index)))
        return err;
    struct cm_binding *b = binding_at(*index);
    *b = *wanted;
    atomic_thread_fence(memory_order_release);
    b->state = BINDING_BOUND;
    return 0;
}

void binding_remove(unsigned index)
{
    struct cm_binding *b = binding_at(index);

    if (b)
        b->state = BINDING_FREE;
}

int binding_listen(unsigned index, int backlog)
{
    struct cm_binding *b = binding_at(index);

    if (!b)
        return EINVAL;
    if (b->state == BINDING_BOUND && find_collision(b, true))
        return EADDRINUSE;
    b->backlog = backlog;
    b->state = BINDING_LISTENING;
    return 0;
}

/* Prefers listeners of this node to others, then listeners bound to `to` itself to wildcards. */
struct cm_binding *binding_find_listener(uint16_t port_space, const struct cm_address *to,
                                         const struct cm_dev_addr *dev_addr)
{
    unsigned own_node = proc_slot(proc_self)->node;
    struct cm_binding *best = NULL;
    int best_rank = -1;

    for (unsigned i = 0; i < binding_count(); i++) {
        struct cm_binding *b = used_binding(i);
        if (!b || b->state != BINDING_LISTENING || b->port_space != port_space ||
            b->address.port != to->port || !accepts(b, to) ||
            (dev_addr->node != ANY_NODE && dev_addr->node != (int)b->node))
            continue;
        int rank = 2 * (b->node == own_node) + !address_is_any(&b->address);
        if (rank > best_rank) {
            best_rank = rank;
            best = b;
        }
    }
    return best;
}

int binding_find_process(uint16_t port_space, const struct cm_address *to)
{
    struct shared_root *root = seg_at(load_acquire(&seg->cm_root), sizeof(*root));

    for (unsigned i = 0; root && i < load_acquire(&root->bindings.high); i++) {
        const struct cm_binding *chunk = NULL;

        if (i / BINDINGS_PER_CHUNK < BINDING_CHUNKS)
            chunk = seg_at(load_acquire(&root->bindings.chunks[i / BINDINGS_PER_CHUNK]),
                           BINDINGS_PER_CHUNK * sizeof(*chunk));
        if (!chunk)
            break;
        struct cm_binding b = chunk[i % BINDINGS_PER_CHUNK];
        if (b.state == BINDING_LISTENING && b.port_space == port_space &&
            b.address.port == to->port && accepts(&b, to) && mailbox_peer_alive(&b.owner))
            return b.owner.proc;
    }
    return -1;
}
