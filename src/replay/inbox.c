/* SPDX-License-Identifier: BSD-2-Clause */
/* The order in which a rank handles messages: see rails_poll_slots() in mtl/rail.c. It goes through
 * its connections, the newest first, and through their rails, and takes everything from one before
 * it goes on. What arrives meanwhile on a rail that it has passed waits for the next pass. Rails
 * that have messages are in one of two pairing heaps: for this pass, and for the next. */
#include "replay/rank.h"

static struct peer_rail *meld(struct peer_rail *a, struct peer_rail *b)
{
    if (!a || !b)
        return a ? a : b;
    if (a->order < b->order) {
        struct peer_rail *earlier = b;

        b = a;
        a = earlier;
    }
    b->heap_next = a->heap_first;
    a->heap_first = b;
    return a;
}

/* The heap without its first element. */
static struct peer_rail *without_first(const struct peer_rail *heap)
{
    struct peer_rail *child = heap->heap_first, *pairs = NULL, *rest = NULL;

    while (child) {
        struct peer_rail *a = child, *b = a->heap_next;

        child = b ? b->heap_next : NULL;
        a = meld(a, b);
        a->heap_next = pairs;
        pairs = a;
    }
    while (pairs) {
        struct peer_rail *next = pairs->heap_next;

        rest = meld(rest, pairs);
        pairs = next;
    }
    return rest;
}

void inbox_add(struct message *message)
{
    struct peer_rail *rail = &message->to->rails[message->rail];
    struct inbox *inbox = &message->to->rank->inbox;
    struct peer_rail **heap;
    bool queued;

    if (!message->to->is_remote) {
        message_append(&inbox->shared, message);
        return;
    }
    heap = rail->order <= inbox->at ? &inbox->now : &inbox->later;
    queued = rail->arrived.first;
    message_append(&rail->arrived, message);
    if (queued)
        return;
    rail->heap_first = NULL;
    *heap = meld(*heap, rail);
}

void inbox_begin(struct inbox *inbox)
{
    inbox->at = UINT32_MAX;
    inbox->now = meld(inbox->now, inbox->later);
    inbox->later = NULL;
}

struct message *inbox_take(struct inbox *inbox)
{
    struct peer_rail *rail = inbox->now;
    struct message *message = message_pop(&inbox->shared);

    if (message)
        return message;
    inbox->at = 0;
    if (!rail)
        return NULL;
    inbox->at = rail->order;
    message = message_pop(&rail->arrived);
    if (!rail->arrived.first)
        inbox->now = without_first(rail);
    return message;
}
