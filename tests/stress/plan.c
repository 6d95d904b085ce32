/* SPDX-License-Identifier: BSD-2-Clause */
#include "plan.h"

#include "rig.h"

#include <stdio.h>
#include <string.h>

const char *const transport_name[TRANSPORT_COUNT] = { "RC", "UC", "UD", "XRC" };
const char *const op_name[OP_KINDS] = { "send", "send-imm",  "write", "write-imm",
                                        "read", "read-back", "cas",   "fadd" };

struct dice {
    uint64_t state;
};

static uint64_t roll(struct dice *dice, uint64_t sides)
{
    dice->state = rig_mix(dice->state);
    return dice->state % sides;
}

static bool chance(struct dice *dice, unsigned one_in)
{
    return roll(dice, one_in) == 0;
}

static enum transport pick_transport(struct dice *dice)
{
    static const enum transport weighted[] = { TRANSPORT_RC,  TRANSPORT_RC, TRANSPORT_RC,
                                               TRANSPORT_RC,  TRANSPORT_UC, TRANSPORT_UD,
                                               TRANSPORT_XRC, TRANSPORT_XRC };

    return weighted[roll(dice, sizeof(weighted) / sizeof(weighted[0]))];
}

static void plan_proc(struct plan_proc *proc, struct dice *dice)
{
    proc->cqs = 1 + roll(dice, 3);
    proc->events = chance(dice, 3);
    proc->churn = chance(dice, 4);
    proc->mapped_memory = chance(dice, 2);
    proc->srq_depth = 4u << roll(dice, 6);
    proc->xrc_srq_depth = 4u << roll(dice, 5);
}

static void plan_side(struct plan_side *side, const struct plan *plan, const struct plan_link *link,
                      uint32_t ops, struct dice *dice)
{
    uint32_t depth_limit = link->max_len > 65536 ? 2 : link->max_len > 8192 ? 4 : 8;

    side->sq_depth = 1u << roll(dice, depth_limit);
    side->rq_depth = 1u << roll(dice, depth_limit);
    side->use_srq = chance(dice, 3);
    side->ops = ops / 2 + roll(dice, ops);
    side->send_cq = roll(dice, plan->proc[side->proc].cqs);
    side->recv_cq = roll(dice, plan->proc[side->proc].cqs);
}

static void plan_link(struct plan *plan, struct plan_link *link, int a, int b, uint32_t ops,
                      struct dice *dice)
{
    static const uint32_t lengths[] = { 256, 4096, 4096, 65536, 1u << 20 };

    link->transport = pick_transport(dice);
    link->max_len = link->transport == TRANSPORT_UD ? 4096 : lengths[roll(dice, 5)];
    link->side[0].proc = a;
    link->side[1].proc = b;
    for (int s = 0; s < 2; s++)
        plan_side(&link->side[s], plan, link, link->max_len > 65536 ? ops / 4 + 1 : ops, dice);
    if (link->transport == TRANSPORT_XRC)
        link->side[0].use_srq = link->side[1].use_srq = true;
    if (link->transport == TRANSPORT_UC || link->transport == TRANSPORT_UD)
        link->lossy = link->side[0].use_srq || link->side[1].use_srq || chance(dice, 4);
    for (int s = 0; s < 2; s++) {
        struct plan_proc *proc = &plan->proc[link->side[s].proc];
        uint32_t *len = link->transport == TRANSPORT_XRC ? &proc->xrc_srq_len : &proc->srq_len;
        if (link->side[s].use_srq && link->max_len > *len)
            *len = link->max_len;
    }
}

void plan_make(struct plan *plan, uint64_t seed, int procs, uint32_t ops)
{
    struct dice dice = { .state = rig_mix(seed) };

    memset(plan, 0, sizeof(*plan));
    plan->seed = seed;
    plan->procs = procs ? procs : 4 + (int)roll(&dice, MAX_PROCS - 4 + 1);
    for (int p = 0; p < plan->procs; p++)
        plan_proc(&plan->proc[p], &dice);
    /* A ring, so that each process has a neighbour, then random links (also of a process to
     * itself). */
    for (int p = 0; p < plan->procs; p++)
        plan_link(plan, &plan->link[plan->links++], p, (p + 1) % plan->procs, ops, &dice);
    for (int extra = (int)roll(&dice, MAX_LINKS - MAX_PROCS); extra > 0; extra--)
        plan_link(plan, &plan->link[plan->links++], (int)roll(&dice, plan->procs),
                  (int)roll(&dice, plan->procs), ops, &dice);
    for (int l = 0; l < plan->links; l++)
        plan->link[l].index = l;
    /* Few large receives, or the pools of a process would be too large. */
    for (int p = 0; p < plan->procs; p++) {
        if (plan->proc[p].srq_len > 65536 && plan->proc[p].srq_depth > 16)
            plan->proc[p].srq_depth = 16;
        if (plan->proc[p].xrc_srq_len > 65536 && plan->proc[p].xrc_srq_depth > 16)
            plan->proc[p].xrc_srq_depth = 16;
    }
}

void plan_print(const struct plan *plan)
{
    for (int p = 0; p < plan->procs; p++)
        printf("# process %d: %d CQ, %s%s, srq %u, xrc srq %u\n", p, plan->proc[p].cqs,
               plan->proc[p].events ? "events" : "polling", plan->proc[p].churn ? ", churn" : "",
               plan->proc[p].srq_depth, plan->proc[p].xrc_srq_depth);
    for (int l = 0; l < plan->links; l++) {
        const struct plan_link *link = &plan->link[l];
        printf("# link %d: %s %d-%d, up to %u bytes%s\n", l, transport_name[link->transport],
               link->side[0].proc, link->side[1].proc, link->max_len, link->lossy ? ", lossy" : "");
        for (int s = 0; s < 2; s++)
            printf("#   side %d: sq %u, rq %u%s, %u operations\n", s, link->side[s].sq_depth,
                   link->side[s].rq_depth, link->side[s].use_srq ? " (srq)" : "",
                   link->side[s].ops);
    }
}

static uint32_t receives_in_flight(const struct plan *plan, const struct plan_link *link,
                                   int receiver)
{
    const struct plan_side *side = &link->side[receiver];
    const struct plan_proc *proc = &plan->proc[side->proc];

    if (link->transport == TRANSPORT_XRC)
        return proc->xrc_srq_depth;
    return side->use_srq ? proc->srq_depth : side->rq_depth;
}

/*
 * A sender is never more than the posted receives ahead of what its receiver has checked, and
 * makes at most WRITES_PER_RECV writes between two receives: with this many slots none is written
 * again before it was checked.
 */
uint32_t plan_landing_slots(const struct plan *plan, const struct plan_link *link, int receiver)
{
    return (receives_in_flight(plan, link, receiver) + 2) * (WRITES_PER_RECV + 1);
}

uint32_t plan_read_bytes(const struct plan_link *link)
{
    return 2 * link->max_len;
}

static uint64_t stream_key(const struct plan *plan, const struct plan_link *link, int side,
                           uint64_t purpose)
{
    return rig_mix(rig_mix(plan->seed ^ purpose) + link->index * 2ull + side);
}

uint64_t plan_read_key(const struct plan *plan, const struct plan_link *link, int owner)
{
    return stream_key(plan, link, owner, 0x5245414453ull);
}

void walk_start(struct op_walk *walk, const struct plan *plan, const struct plan_link *link,
                int side)
{
    memset(walk, 0, sizeof(*walk));
    walk->link = link;
    walk->side = side;
    walk->key = stream_key(plan, link, side, 0x4f5053ull);
    walk->slots = plan_landing_slots(plan, link, !side);
    walk->last_slot = UINT32_MAX;
}

bool op_consumes_receive(const struct op *op)
{
    return op->kind == OP_SEND || op->kind == OP_SEND_IMM || op->kind == OP_WRITE_IMM;
}

bool op_moves_payload(const struct op *op)
{
    return op->kind <= OP_WRITE_IMM;
}

bool link_carries_header(const struct plan_link *link)
{
    return link->transport == TRANSPORT_UC || link->transport == TRANSPORT_UD;
}

static enum op_kind pick_kind(const struct op_walk *walk, struct dice *dice)
{
    static const enum op_kind reliable[] = { OP_SEND,  OP_SEND,      OP_SEND_IMM, OP_WRITE,
                                             OP_WRITE, OP_WRITE_IMM, OP_READ,     OP_READ_BACK,
                                             OP_CAS,   OP_FADD };
    static const enum op_kind unreliable[] = { OP_SEND, OP_SEND_IMM, OP_WRITE, OP_WRITE_IMM };

    switch (walk->link->transport) {
    case TRANSPORT_UD:
        return roll(dice, 2) ? OP_SEND : OP_SEND_IMM;
    case TRANSPORT_UC:
        return unreliable[roll(dice, 4)];
    default:
        return reliable[roll(dice, 10)];
    }
}

static uint32_t pick_length(uint32_t max_len, struct dice *dice)
{
    uint32_t limit = max_len;

    switch (roll(dice, 16)) {
    case 0:
        return 0;
    case 1:
        return max_len;
    case 2:
        break;
    case 3:
    case 4:
        limit = 4096;
        break;
    default:
        limit = 200;
    }
    if (limit > max_len)
        limit = max_len;
    return 1 + roll(dice, limit);
}

static void pick_pieces(struct op *op, struct dice *dice)
{
    uint32_t left = op->len;

    op->num_sge = op->len ? 1 + (int)roll(dice, MAX_SGE) : (int)roll(dice, 2);
    for (int i = 0; i + 1 < op->num_sge; i++) {
        op->cut[i] = roll(dice, left + 1ull);
        left -= op->cut[i];
    }
    if (op->num_sge)
        op->cut[op->num_sge - 1] = left;
}

static void aim_write(struct op_walk *walk, struct op *op)
{
    /* Without a fence a write may overtake an earlier read of the same bytes. */
    op->fence = walk->read_back_unfenced;
    walk->read_back_unfenced = false;
    op->to_big = op->len > LANDING_SLOT;
    if (op->to_big) {
        walk->big_len = op->len;
        walk->big_payload = op->seq;
        return;
    }
    op->slot = walk->writes++ % walk->slots;
    walk->last_slot = op->slot;
    walk->last_slot_len = op->len;
    walk->last_slot_payload = op->seq;
}

static void aim_read_back(struct op_walk *walk, struct op *op, struct dice *dice)
{
    bool big = walk->big_len && (walk->last_slot == UINT32_MAX || chance(dice, 2));

    if (!big && walk->last_slot == UINT32_MAX) {
        op->kind = OP_READ;
        return;
    }
    walk->read_back_unfenced = true;
    op->to_big = big;
    op->slot = walk->last_slot;
    op->len = big ? walk->big_len : walk->last_slot_len;
    op->payload_seq = big ? walk->big_payload : walk->last_slot_payload;
}

static void aim_cas(struct op_walk *walk, struct op *op, struct dice *dice)
{
    op->len = 8;
    op->cas_matches = !chance(dice, 4);
    op->compare = op->cas_matches ? walk->cas_value : walk->cas_value + 1 + roll(dice, 1000);
    op->swap = rig_mix(dice->state);
    op->add = walk->cas_value;
    if (op->cas_matches)
        walk->cas_value = op->swap;
}

static void aim_fadd(struct op *op, struct dice *dice)
{
    op->len = 8;
    op->cell = (int)roll(dice, FADD_CELLS);
    op->add = 1 + roll(dice, 1u << 20);
}

static void aim(struct op_walk *walk, struct op *op, struct dice *dice)
{
    switch (op->kind) {
    case OP_WRITE:
    case OP_WRITE_IMM:
        aim_write(walk, op);
        break;
    case OP_READ_BACK:
        aim_read_back(walk, op, dice);
        break;
    case OP_CAS:
        aim_cas(walk, op, dice);
        break;
    case OP_FADD:
        aim_fadd(op, dice);
        break;
    default:
        break;
    }
    if (op->kind == OP_READ)
        op->read_offset = roll(dice, plan_read_bytes(walk->link) - op->len + 1ull);
}

bool walk_next(struct op_walk *walk, struct op *op)
{
    const struct plan_side *side = &walk->link->side[walk->side];
    struct dice dice = { .state = walk->key + walk->seq * 0x2545f4914f6cdd1dull };
    bool sequence_in_payload = link_carries_header(walk->link);

    if (walk->seq >= side->ops)
        return false;
    memset(op, 0, sizeof(*op));
    op->seq = op->payload_seq = walk->seq;
    op->kind = pick_kind(walk, &dice);
    if (walk->since_recv >= WRITES_PER_RECV && op->kind == OP_WRITE)
        op->kind = OP_SEND_IMM;
    op->len = pick_length(walk->link->max_len, &dice);
    if (sequence_in_payload && op->len < HEADER_BYTES)
        op->len = HEADER_BYTES;
    aim(walk, op, &dice);
    pick_pieces(op, &dice);
    if (op->kind == OP_CAS || op->kind == OP_FADD) {
        op->num_sge = 1;
        op->cut[0] = 8;
    }
    op->imm = (uint32_t)rig_mix(walk->key + op->seq);
    if (sequence_in_payload)
        op->imm = op->seq;
    op->inline_data = op_moves_payload(op) && op->len <= 64 && chance(&dice, 2);
    op->signalled = walk->seq % side->sq_depth == side->sq_depth - 1 ||
                    walk->seq + 1 == side->ops || !op_moves_payload(op) || chance(&dice, 3);
    op->own_mr = !op->inline_data && op->len && chance(&dice, 24);
    op->recv_seq = walk->recv_seq;
    if (op_consumes_receive(op)) {
        walk->recv_seq++;
        walk->since_recv = 0;
    } else if (op->kind == OP_WRITE) {
        walk->since_recv++;
    }
    walk->seq++;
    return true;
}

static uint64_t payload_word(uint64_t base, uint32_t index)
{
    uint64_t x = base + index * 0x9e3779b97f4a7c15ull;

    return x ^ (x >> 29);
}

void payload_fill(uint64_t key, uint32_t seq, uint32_t offset, void *buf, uint32_t len)
{
    uint64_t base = rig_mix(key ^ (0x1000000000ull + seq));
    uint8_t *out = buf;

    while (len) {
        uint64_t word = payload_word(base, offset / 8);
        uint32_t skip = offset % 8;
        uint32_t n = 8 - skip < len ? 8 - skip : len;

        memcpy(out, (uint8_t *)&word + skip, n);
        out += n;
        offset += n;
        len -= n;
    }
}

int64_t payload_check(uint64_t key, uint32_t seq, uint32_t offset, const void *buf, uint32_t len)
{
    const uint8_t *in = buf;
    uint8_t expected[1024];

    for (uint32_t done = 0; done < len;) {
        uint32_t n = len - done < sizeof(expected) ? len - done : sizeof(expected);

        payload_fill(key, seq, offset + done, expected, n);
        if (memcmp(expected, in + done, n)) {
            for (uint32_t i = 0; i < n; i++)
                if (expected[i] != in[done + i])
                    return done + i;
        }
        done += n;
    }
    return -1;
}
