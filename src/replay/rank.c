/* SPDX-License-Identifier: BSD-2-Clause */
#include "replay/rank.h"

#include "sim/model/prefetch.h"
#include "sim/model/server.h"
#include "sim/sched/sched.h"

#include <errno.h>
#include <stdlib.h>

int rank_init(struct rank *rank)
{
    rank->left = rank->schedule->count;
    rank->cpus = calloc(rank->schedule->cpus, sizeof(*rank->cpus));
    rank->cqs = calloc(replay_state.devices, sizeof(*rank->cqs));
    if (replay_state.rails > 1)
        rank->traffic = peer_policy_traffic(rank);
    if (!rank->cpus || !rank->cqs || (replay_state.rails > 1 && !rank->traffic))
        return ENOMEM;
    for (uint32_t i = 0; i < rank->schedule->cpus; i++)
        rank->cpus[i] = (struct cpu){
            .rank = rank, .ready_first = GOAL_NONE, .ready_last = GOAL_NONE, .finishing = GOAL_NONE
        };
    return match_init(&rank->matching);
}

void rank_free(struct rank *rank)
{
    if (rank->matching.receives.buckets)
        match_free(&rank->matching);
    free(rank->cpus);
    free(rank->cqs);
    free(rank->traffic);
}

void rank_charge_copy(struct cpu *cpu, uint64_t bytes)
{
    const struct parameters *p = &model->parameters;

    if (bytes)
        cpu_charge(cpu, p->host.copy_call + bytes / p->host.copy_rate);
}

/* ---- waking ---- */

static void wake(struct cpu *cpu, uint64_t time)
{
    cpu->asleep = false;
    cpu->clock = time;
    event_at(time, EVENT_CPU, cpu, 0);
}

/* A sleeping processor polls every host.poll_empty. */
static uint64_t next_poll(const struct cpu *cpu)
{
    uint64_t period = ns_of(model->parameters.host.poll_empty);

    return sched_poll_that_sees(sched->now, cpu->clock, period ? period : 1);
}

void rank_changed(struct rank *rank)
{
    rank->changes++;
    for (uint32_t i = 0; i < rank->schedule->cpus; i++) {
        struct cpu *cpu = &rank->cpus[i];

        if (cpu->asleep) {
            cpu->changed = true;
            wake(cpu, next_poll(cpu));
            return;
        }
    }
}

/* ---- operations ---- */

/* 'from' is the processor that has met the last requirement. */
void rank_make_ready(struct cpu *from, uint32_t index)
{
    struct rank *rank = from->rank;
    struct goal_op *op = rank_op(rank, index);
    struct cpu *cpu = &rank->cpus[op->cpu];

    op->state = OP_READY;
    op->next = GOAL_NONE;
    if (cpu->ready_last == GOAL_NONE)
        cpu->ready_first = index;
    else
        rank_op(rank, cpu->ready_last)->next = index;
    cpu->ready_last = index;
    if (cpu->asleep)
        wake(cpu, from->clock > cpu->clock ? from->clock : cpu->clock);
}

/* Follows the edges of one kind: those to operations that wait for the start, or for the end. */
static void release(struct cpu *cpu, uint32_t index, uint32_t kind)
{
    const struct goal_rank *schedule = cpu->rank->schedule;
    const struct goal_op *op = &schedule->ops[index];

    for (uint32_t i = op->first_edge; i < op[1].first_edge; i++) {
        uint32_t to = schedule->edges[i];
        struct goal_op *next = &schedule->ops[to & ~GOAL_EDGE_START];

        if ((to & GOAL_EDGE_START) != kind)
            continue;
        if (!--next->waits)
            rank_make_ready(cpu, to & ~GOAL_EDGE_START);
        else if (next->kind == GOAL_SEND)
            peer_prefetch(cpu->rank, next->peer);
    }
}

void rank_op_done(struct cpu *cpu, uint32_t index)
{
    struct rank *rank = cpu->rank;

    rank_op(rank, index)->state = OP_DONE;
    if (cpu->clock > rank->finished_at)
        rank->finished_at = cpu->clock;
    replay_state.ops_left--;
    if (!--rank->left)
        replay_state.unfinished--;
    release(cpu, index, 0);
}

static void execute(struct cpu *cpu)
{
    uint32_t index = cpu->ready_first;
    struct goal_op *op = rank_op(cpu->rank, index);

    cpu->ready_first = op->next;
    if (cpu->ready_first == GOAL_NONE)
        cpu->ready_last = GOAL_NONE;
    release(cpu, index, GOAL_EDGE_START);
    switch (op->kind) {
    case GOAL_SEND:
        protocol_send(cpu, index);
        break;
    case GOAL_RECV:
        protocol_receive(cpu, index);
        break;
    default:
        op->state = OP_ACTIVE;
        cpu->clock += op->size;
        cpu->finishing = index;
    }
}

/* ---- the processor ---- */

/* Lets everything happen that comes before the clock of this processor. Returns false if there is
 * something: an event continues later. */
static bool catch_up(struct cpu *cpu)
{
    uint64_t time;

    if (event_next_time(&time) && time <= cpu->clock) {
        event_at(cpu->clock, EVENT_CPU, cpu, 0);
        return false;
    }
    sched->now = cpu->clock;
    return true;
}

/* Polls the CQ of one device after the other, a call for each. */
static void poll_cqs(struct cpu *cpu)
{
    if (!cpu->device) {
        cpu->polled_at = cpu->rank->changes;
        cpu->completed = false;
    }
    cpu->completed |= peer_rail_poll_cq(cpu, cpu->device) > 0;
    if (++cpu->device < replay_state.devices)
        return;
    cpu->device = 0;
    cpu->changed = cpu->completed;
}

/* One step of the MTL's progress function. Returns false if there was nothing to do. */
static bool poll(struct cpu *cpu)
{
    struct rank *rank = cpu->rank;
    struct message *message;

    if (cpu->device) {
        poll_cqs(cpu);
        return true;
    }
    if (!cpu->polls)
        inbox_begin(&rank->inbox);
    message = inbox_take(&rank->inbox);
    cpu->polls = message;
    cpu->found |= cpu->polls;
    if (message) {
        protocol_arrived(cpu, message);
        return true;
    }
    if (peer_flush(cpu) || cpu->found) {
        cpu->found = false;
        cpu->changed = true;
        return true;
    }
    if (cpu->changed) {
        poll_cqs(cpu);
        return true;
    }
    cpu->changed = rank->changes != cpu->polled_at;
    return cpu->changed;
}

void rank_prefetch_work(const struct cpu *cpu)
{
    const struct rank *rank = cpu->rank;

    if (cpu->ready_first != GOAL_NONE)
        prefetch_bytes(rank_op(rank, cpu->ready_first), 2 * sizeof(struct goal_op));
    if (rank->inbox.now)
        prefetch_bytes(rank->inbox.now, sizeof(struct peer_rail));
    if (rank->inbox.later)
        prefetch_bytes(rank->inbox.later, sizeof(struct peer_rail));
}

/* A processor that is alone may run ahead of the model until it polls: nobody sees how far it is.
 * Those of one rank see each other's operations. */
void rank_run_cpu(struct cpu *cpu)
{
    bool alone = cpu->rank->schedule->cpus == 1;

    for (;;) {
        bool runs = !cpu->polls && !cpu->device &&
                    (cpu->finishing != GOAL_NONE || cpu->ready_first != GOAL_NONE);

        if ((!runs || !alone) && cpu->clock > sched->now && !catch_up(cpu))
            return;
        if (cpu->finishing != GOAL_NONE) {
            uint32_t done = cpu->finishing;

            cpu->finishing = GOAL_NONE;
            rank_op_done(cpu, done);
        } else if (runs) {
            execute(cpu);
        } else if (!poll(cpu)) {
            break;
        }
    }
    cpu->asleep = true;
}
