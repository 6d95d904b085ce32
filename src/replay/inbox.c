/* SPDX-License-Identifier: BSD-2-Clause */
/* The order in which a rank handles messages: see rails_poll_slots() in mtl/rail.c. It goes through
 * its connections, the newest first, and takes everything from one before it goes on. What arrives
 * meanwhile on a connection that it has passed waits for the next pass. Connections that have
 * messages are in one of two pairing heaps: for this pass, and for the next. */
#include "replay/rank.h"

static struct peer *meld(struct peer *a, struct peer *b)
{
    if (!a || !b)
        return a ? a : b;
    if (a->number < b->number) {
        struct peer *newer = b;

        b = a;
        a = newer;
    }
    b->heap_next = a->heap_first;
    a->heap_first = b;
    return a;
}

/* The heap without its first element. */
static struct peer *without_first(const struct peer *heap)
{
    struct peer *child = heap->heap_first, *pairs = NULL, *rest = NULL;

    while (child) {
        struct peer *a = child, *b = a->heap_next;

        child = b ? b->heap_next : NULL;
        a = meld(a, b);
        a->heap_next = pairs;
        pairs = a;
    }
    while (pairs) {
        struct peer *next = pairs->heap_next;

        rest = meld(rest, pairs);
        pairs = next;
    }
    return rest;
}

void inbox_add(struct message *message)
{
    struct peer *peer = message->to;
    struct inbox *inbox = &peer->rank->inbox;
    struct peer **heap = peer->number <= inbox->at ? &inbox->now : &inbox->later;
    bool queued = peer->arrived.first;

    if (!peer->qp) {
        message_append(&inbox->shared, message);
        return;
    }
    message_append(&peer->arrived, message);
    if (queued)
        return;
    peer->heap_first = NULL;
    *heap = meld(*heap, peer);
}

void inbox_begin(struct inbox *inbox)
{
    inbox->at = UINT32_MAX;
    inbox->now = meld(inbox->now, inbox->later);
    inbox->later = NULL;
}

struct message *inbox_take(struct inbox *inbox)
{
    struct peer *peer = inbox->now;
    struct message *message = message_pop(&inbox->shared);

    if (message)
        return message;
    inbox->at = 0;
    if (!peer)
        return NULL;
    inbox->at = peer->number;
    message = message_pop(&peer->arrived);
    if (!peer->arrived.first)
        inbox->now = without_first(peer);
    return message;
}
