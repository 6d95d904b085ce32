/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/traffic.h"

#include "hca/addr.h"
#include "hca/epoch.h"

/* Takes the counter with the same step that clears it: a reaper that dies loses at most one. */
static void move(_Atomic uint64_t *to, _Atomic uint64_t *from)
{
    if (load_relaxed(from))
        atomic_fetch_add(to, atomic_exchange(from, 0));
}

static void move_all(struct traffic *to, struct traffic *from)
{
    move(&to->xmit_bytes, &from->xmit_bytes);
    move(&to->xmit_packets, &from->xmit_packets);
    move(&to->rcv_bytes, &from->rcv_bytes);
    move(&to->rcv_packets, &from->rcv_packets);
}

void traffic_retire(struct shared_qp *qp)
{
    unsigned port = addr_port_bit(load_relaxed(&qp->lid));

    if (port >= MAX_FABRIC_PORTS)
        return;
    move_all(&seg->port_traffic[port], &qp->requests);
    move_all(&seg->port_traffic[port], &qp->responses);
}

static struct shared_qp *qps_of_chunk(uint64_t chunk)
{
    return seg_at(chunk, sizeof(struct shared_qp) << QP_CHUNK_SHIFT);
}

void traffic_retire_chunk(uint64_t chunk)
{
    struct shared_qp *qps = qps_of_chunk(chunk);

    for (unsigned i = 0; qps && i < 1u << QP_CHUNK_SHIFT; i++)
        traffic_retire(&qps[i]);
}

static void add_all(struct traffic *sum, const struct traffic *t)
{
    traffic_add(&sum->xmit_bytes, load_relaxed(&t->xmit_bytes));
    traffic_add(&sum->xmit_packets, load_relaxed(&t->xmit_packets));
    traffic_add(&sum->rcv_bytes, load_relaxed(&t->rcv_bytes));
    traffic_add(&sum->rcv_packets, load_relaxed(&t->rcv_packets));
}

void traffic_of_port(uint16_t lid, struct traffic *sum)
{
    *sum = (struct traffic){ 0 };
    add_all(sum, &seg->port_traffic[addr_port_bit(lid)]);
    epoch_enter();
    for (unsigned c = 0; c < QP_CHUNKS; c++) {
        uint64_t chunk = load_acquire(&seg->qp_dir[c]);
        struct shared_qp *qps = chunk ? qps_of_chunk(chunk) : NULL;

        for (unsigned i = 0; qps && i < 1u << QP_CHUNK_SHIFT; i++)
            if (load_relaxed(&qps[i].lid) == lid) {
                add_all(sum, &qps[i].requests);
                add_all(sum, &qps[i].responses);
            }
    }
    epoch_exit();
}
