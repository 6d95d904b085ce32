/* SPDX-License-Identifier: BSD-2-Clause */
/* The exchange of src/mtl/connection.c, with its charges. The MTL sends these messages over UD;
 * here they go over the QPs that they are about, which takes about as long. */
#include "replay/rank.h"

#include "mtl/rail_rules.h"

/* What a wireup message tells: see struct wireup_message. */
#define CONNECTED 1u
#define READY     2u

/* Registers memory, and creates a QP in the INIT state. */
void wireup_open(struct cpu *cpu, struct peer *peer)
{
    const struct parameters *p = &model->parameters;
    uint64_t memory = rail_memory_size(1, DEFAULT_window, rail_slot_size(replay_state.eager_limit));
    uint32_t entries = rail_send_depth(DEFAULT_window) + 1;

    if (!peer->qp || peer->wireup != WIREUP_NEW)
        return;
    peer->wireup = WIREUP_OPEN;
    peer->number = ++peer->rank->last_number;
    cpu_charge(cpu, parameters_reg_mr(p, memory));
    cpu_charge(cpu, p->host.create_qp + entries * p->host.create_qp_entry);
    cpu_charge(cpu, p->host.modify_qp);
}

static void send(struct cpu *cpu, struct peer *peer)
{
    struct owned_qp_write write = {
        .wr_id = WORK_WIREUP,
        .sq_index = (peer->connected ? CONNECTED : 0) | (peer->wireup == WIREUP_READY ? READY : 0),
        .flags = IBV_SEND_SIGNALED,
        .length = sizeof(struct wireup_message),
    };

    peer_post(cpu, peer, &write);
}

/* An address handle is created for the first message to a process. */
static void start(struct cpu *cpu, struct peer *peer)
{
    peer->wireup = WIREUP_STARTED;
    cpu_charge(cpu, model->parameters.host.create_ah);
}

void wireup_start(struct cpu *cpu, struct peer *peer)
{
    if (peer->wireup != WIREUP_OPEN)
        return;
    start(cpu, peer);
    send(cpu, peer);
}

void wireup_arrived(struct cpu *cpu, struct peer *peer, uint32_t what)
{
    const struct parameters *p = &model->parameters;

    wireup_open(cpu, peer);
    if (!peer->connected) {
        cpu_charge(cpu, p->host.modify_qp);
        cpu_charge(cpu, p->host.modify_qp);
        peer->connected = true;
    }
    if (peer->wireup == WIREUP_OPEN)
        start(cpu, peer);
    if (what & CONNECTED && peer->wireup == WIREUP_STARTED)
        peer->wireup = WIREUP_READY;
    if (!(what & READY))
        send(cpu, peer);
    cpu_charge(cpu, p->host.post_recv);
}
