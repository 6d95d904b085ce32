/* SPDX-License-Identifier: BSD-2-Clause */
/* How much may be on its way to a host. The host has one socket buffer for all QPs, so they share a
 * limit, which halves when packets are lost and grows again while they arrive. */
#include "wire/wire.h"

#include <stdlib.h>
#include <string.h>

#define LIMIT_MAX    (256u << 10) /* fits into a socket buffer of the default size */
#define LIMIT_MIN    WIRE_READ_BYTES
#define GROWTH       16      /* a byte for so many that arrive */
#define CUT_EVERY    1000000 /* ns: the packets of one burst are lost together */
#define WAKE_AT_ONCE 4

/* Peers are never freed: each is one that the program has connected a QP to. */
static struct spinlock peers_lock;
static struct wire_peer *peers;

struct wire_peer {
    struct wire_peer *next;
    uint8_t gid[16];
    struct spinlock lock; /* innermost */
    int64_t in_flight;    /* bytes, of all QPs */
    int64_t limit;
    uint64_t cut_at;
    struct wire_qp *waiting, **waiting_end;
};

void wire_peer_forget(void)
{
    peers_lock = (struct spinlock){ 0 };
    peers = NULL;
}

struct wire_peer *wire_peer_find(const uint8_t gid[16])
{
    struct wire_peer *peer;

    spin_lock(&peers_lock);
    for (peer = peers; peer; peer = peer->next)
        if (!memcmp(peer->gid, gid, sizeof(peer->gid)))
            break;
    if (!peer && (peer = calloc(1, sizeof(*peer)))) {
        memcpy(peer->gid, gid, sizeof(peer->gid));
        peer->limit = LIMIT_MAX;
        peer->waiting_end = &peer->waiting;
        peer->next = peers;
        peers = peer;
    }
    spin_unlock(&peers_lock);
    return peer;
}

int64_t wire_peer_room(const struct wire_qp *qp)
{
    struct wire_peer *peer = qp->peer;
    int64_t room;

    if (!peer)
        return LIMIT_MAX;
    spin_lock(&peer->lock);
    room = peer->limit - (peer->in_flight - qp->in_flight);
    spin_unlock(&peer->lock);
    return room;
}

void wire_peer_note(struct wire_qp *qp, int64_t in_flight, bool lost, uint64_t now)
{
    struct wire_peer *peer = qp->peer;
    int64_t arrived = qp->in_flight - in_flight;

    if (!peer || (!arrived && !lost))
        return;
    spin_lock(&peer->lock);
    peer->in_flight -= arrived;
    qp->in_flight = in_flight;
    if (lost && now > peer->cut_at + CUT_EVERY) {
        peer->limit = peer->limit / 2 > LIMIT_MIN ? peer->limit / 2 : LIMIT_MIN;
        peer->cut_at = now;
    } else if (!lost && arrived > 0 && peer->limit < LIMIT_MAX) {
        peer->limit += arrived / GROWTH;
    }
    spin_unlock(&peer->lock);
}

bool wire_peer_has_waiting(const struct wire_peer *peer)
{
    return peer && peer->waiting;
}

void wire_peer_wait(struct wire_qp *qp)
{
    struct wire_peer *peer = qp->peer;

    spin_lock(&peer->lock);
    if (!qp->waits) {
        qp->waits = true;
        qp->waiting_next = NULL;
        *peer->waiting_end = qp;
        peer->waiting_end = &qp->waiting_next;
    }
    spin_unlock(&peer->lock);
}

void wire_peer_leave(struct wire_qp *qp)
{
    struct wire_peer *peer = qp->peer;
    struct wire_qp **at;

    if (!peer)
        return;
    wire_peer_note(qp, 0, false, 0);
    spin_lock(&peer->lock);
    for (at = &peer->waiting; *at; at = &(*at)->waiting_next)
        if (*at == qp) {
            *at = qp->waiting_next;
            if (peer->waiting_end == &qp->waiting_next)
                peer->waiting_end = at;
            break;
        }
    qp->waits = false;
    spin_unlock(&peer->lock);
    qp->peer = NULL;
}

void wire_peer_wake(struct wire_peer *peer)
{
    uint32_t woken[WAKE_AT_ONCE];
    unsigned count = 0;

    if (!peer || !peer->waiting)
        return;
    spin_lock(&peer->lock);
    while (peer->waiting && count < WAKE_AT_ONCE &&
           (peer->in_flight + WIRE_BATCH_BYTES <= peer->limit || !peer->in_flight)) {
        struct wire_qp *qp = peer->waiting;

        peer->waiting = qp->waiting_next;
        if (!peer->waiting)
            peer->waiting_end = &peer->waiting;
        qp->waits = false;
        woken[count++] = qp->hca->ibv.qp_num;
    }
    spin_unlock(&peer->lock);
    for (unsigned i = 0; i < count; i++)
        wire_receive_touch(woken[i]);
}
