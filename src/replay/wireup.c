/* SPDX-License-Identifier: BSD-2-Clause */
/* The exchange of src/mtl/connection.c over UD, with its charges. */
#include "replay/rank.h"

#include "mtl/rail_rules.h"

/* What a wireup message tells: see struct wireup_message. */
#define CONNECTED 1u
#define READY     2u

/* Far from the slots. */
#define MEMORY (1ull << 39)
#define PAGE   4096

bool wireup_init(struct rank *rank)
{
    struct owned_qp_end end = { peer_port(rank, 0), rank->number, rank };

    rank->datagrams = owned_qp_datagram(&peer_rail_owner, replay_state.next_qpn++, &end,
                                        MEMORY + PAGE, sizeof(struct wireup_message));
    return rank->datagrams;
}

/* Registers memory, and creates QPs in the INIT state. */
void wireup_open(struct cpu *cpu, struct peer *peer)
{
    const struct parameters *p = &model->parameters;
    uint32_t entries = rail_send_depth(DEFAULT_window) + 1;

    if (!peer->is_remote || peer->wireup != WIREUP_NEW)
        return;
    peer->wireup = WIREUP_OPEN;
    peer_set_order(peer);
    if (peer->policy)
        peer_policy_open(peer);
    for (uint32_t i = 0; i < replay_state.devices; i++)
        cpu_charge(cpu, parameters_reg_mr(p, peer_rail_memory()));
    for (uint32_t i = 0; i < replay_state.rails; i++) {
        cpu_charge(cpu, p->host.create_qp + entries * p->host.create_qp_entry);
        cpu_charge(cpu, p->host.modify_qp);
    }
}

static void send(struct cpu *cpu, struct peer *peer)
{
    struct owned_qp_write write = {
        .wr_id = (uintptr_t)peer | WORK_WIREUP,
        .sq_index = (peer->connected ? CONNECTED : 0) | (peer->wireup == WIREUP_READY ? READY : 0),
        .flags = IBV_SEND_SIGNALED,
        .length = sizeof(struct wireup_message),
        .local = MEMORY,
        .to = peer->other->rank->datagrams,
    };

    peer_rail_post(cpu, peer->rank->datagrams, &write);
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
    for (uint32_t i = 0; i < replay_state.rails && !peer->connected; i++) {
        cpu_charge(cpu, p->host.modify_qp);
        cpu_charge(cpu, p->host.modify_qp);
    }
    peer->connected = true;
    if (peer->wireup == WIREUP_OPEN)
        start(cpu, peer);
    if (what & CONNECTED && peer->wireup == WIREUP_STARTED)
        peer->wireup = WIREUP_READY;
    if (!(what & READY))
        send(cpu, peer);
    cpu_charge(cpu, p->host.post_recv);
}
