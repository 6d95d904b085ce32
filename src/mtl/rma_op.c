/* SPDX-License-Identifier: BSD-2-Clause */
#include "mtl/rma.h"

#include "mtl/log.h"
#include "mtl/rail_rules.h"

#include <opal/runtime/opal_progress.h>

#include <stdlib.h>
#include <unistd.h>

/* The plan of a long copy, until all its stripes are complete. */
struct rma_plan {
    struct rails_plan rails;
    uint32_t left;
};

struct rma_work {
    struct work work;      /* first: a completion's wr_id points at it */
    struct rma_work *next; /* among the spare or the lost ones */
    struct rma_rail *rail;
    struct rma_op *op;
    enum ibv_wr_opcode opcode;
    struct rma_copy copy;
    uint64_t compare_add, swap;
    struct rma_plan *plan; /* of a long copy */
    bool planned;          /* the policy knows of it */
    bool ordered;
    struct rails_stripe stripe;
};

static struct rma_work *spare;
static struct rma_work *lost, **last_lost = &lost; /* their rail has failed: to be posted again */

/* NULL if there is no memory, or the peer is known to be dead: the operation fails. */
static struct rma_work *work_new(struct rma_op *op, enum ibv_wr_opcode opcode,
                                 const struct rma_copy *copy)
{
    struct rma_work *work = spare;

    if (op->peer->endpoint->failed) {
        op->failed = true;
        return NULL;
    }
    if (work)
        spare = work->next;
    else
        work = malloc(sizeof(*work));
    if (!work) {
        mtl_log("out of memory: a one-sided operation fails");
        op->failed = true;
        return NULL;
    }
    work->work = (struct work){ .kind = WORK_RMA };
    work->op = op;
    work->opcode = opcode;
    work->copy = *copy;
    work->plan = NULL;
    work->planned = work->ordered = false;
    op->left++;
    return work;
}

void rma_ops_free(void)
{
    for (struct rma_work *work = spare, *next; work; work = next) {
        next = work->next;
        free(work);
    }
    spare = NULL;
}

/* ---- operations ---- */

void rma_begin(struct rma_op *op, struct rma_peer *peer, void (*done)(struct rma_op *op))
{
    op->peer = peer;
    op->done = done;
    op->left = 1;
    op->failed = false;
}

void rma_end(struct rma_op *op)
{
    if (!--op->left)
        op->done(op);
}

static void plan_done(struct rma_work *work, bool ok)
{
    struct rails_set *set = &work->rail->peer->set;

    if (work->planned && work->rail->up)
        rails_completed(set, &work->stripe, ok, work->plan ? mtl_now() : 0);
    work->planned = false;
    if (work->plan && !--work->plan->left) {
        rails_ended(set, &work->plan->rails);
        free(work->plan);
    }
    work->plan = NULL;
}

static void work_done(struct rma_work *work, bool ok)
{
    struct rma_op *op = work->op;

    plan_done(work, ok);
    op->failed |= !ok;
    work->next = spare;
    spare = work;
    rma_end(op);
}

/* ---- posting ---- */

static void rail_down(struct rma_rail *rail, const char *reason)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
    struct rma_peer *peer = rail->peer;

    if (!rail->up)
        return;
    ibv_modify_qp(rail->qp, &attr, IBV_QP_STATE);
    rails_failed(&peer->set, rail->index);
    rail->up = false;
    mtl.counters.rail_failures++;
    mtl_log("rail %u for windows (%s port %u) to process %u failed: %s; %u of %u rails are left",
            rail->index, ibv_get_device_name(rail->path->device->context->device), rail->path->port,
            peer->endpoint->name.vpid, reason, rails_up(&peer->set), peer->rail_count);
}

static void queue_lost(struct rma_work *work)
{
    work->next = NULL;
    *last_lost = work;
    last_lost = &work->next;
}

/* A fetch-and-add may have been executed: repeating it could count twice. */
static void work_lost(struct rma_work *work)
{
    if (work->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
        work_done(work, false);
    else
        queue_lost(work);
}

static bool is_atomic(const struct rma_work *work)
{
    return work->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || work->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}

static void post(struct rma_rail *rail, struct rma_work *work)
{
    const struct rma_copy *copy = &work->copy;
    uint32_t device = rail->path->device->index;
    struct ibv_sge sge = { .addr = (uintptr_t)copy->local,
                           .length = copy->length,
                           .lkey = copy->regions ? copy->regions[device]->lkey : 0 };
    struct ibv_send_wr wr = { .wr_id = (uintptr_t)work,
                              .sg_list = &sge,
                              .num_sge = copy->length ? 1 : 0,
                              .opcode = work->opcode,
                              .send_flags = IBV_SEND_SIGNALED },
                       *bad;
    int err;

    if (is_atomic(work)) {
        wr.wr.atomic.remote_addr = copy->remote;
        wr.wr.atomic.rkey = copy->keys.rkey[device];
        wr.wr.atomic.compare_add = work->compare_add;
        wr.wr.atomic.swap = work->swap;
    } else {
        wr.wr.rdma.remote_addr = copy->remote;
        wr.wr.rdma.rkey = copy->keys.rkey[device];
    }
    if (work->opcode == IBV_WR_RDMA_WRITE && copy->length &&
        copy->length <= (uint64_t)mtl.parameters.inline_limit)
        wr.send_flags |= IBV_SEND_INLINE;
    work->rail = rail;
    mtl.counters.rail_messages[rail->index]++;
    mtl.counters.rail_bytes[rail->index] += copy->length;
    err = ibv_post_send(rail->qp, &wr, &bad);
    if (!err) {
        rail->outstanding++;
        return;
    }
    rail_down(rail, strerror(err));
    work_lost(work);
}

/* Atomics of two adapters are not atomic to each other: all go through the first device. */
static struct rma_rail *ordered_rail(struct rma_peer *peer)
{
    for (uint32_t i = 0; i < peer->rail_count; i++) {
        if (peer->rail[i].up && !peer->rail[i].path->device->index)
            return &peer->rail[i];
    }
    return NULL;
}

static bool has_room(const struct rma_rail *rail)
{
    return rail->outstanding < RMA_DEPTH;
}

static void post_when_room(struct rma_rail *rail, struct rma_work *work)
{
    while (rail->up && !has_room(rail))
        rma_wait();
    if (rail->up) {
        post(rail, work);
        return;
    }
    work->rail = rail;
    work_lost(work);
}

/* Requests of a failed rail, which come back one by one, go before all later ones. */
static bool is_draining(const struct rma_rail *rail)
{
    return !rail->up && rail->outstanding;
}

static bool must_wait(const struct rma_peer *peer, const struct rma_rail *rail)
{
    for (uint32_t i = 0; i < peer->rail_count; i++) {
        if (is_draining(&peer->rail[i]))
            return true;
    }
    return lost || (rail && !has_room(rail));
}

static void post_in_order(struct rma_op *op, struct rma_work *work)
{
    struct rma_rail *rail;

    if (!work)
        return;
    while (rail = ordered_rail(op->peer), must_wait(op->peer, rail))
        rma_wait();
    work->ordered = true;
    work->rail = rail ? rail : op->peer->rail;
    if (rail)
        post(rail, work);
    else
        work_done(work, false);
}

static void post_stripe(struct rma_op *op, enum ibv_wr_opcode opcode, const struct rma_copy *copy,
                        const struct rails_stripe *stripe, struct rma_plan *plan)
{
    struct rma_rail *rail = &op->peer->rail[stripe->rail];
    struct rma_work *work = work_new(op, opcode, copy);

    if (!work)
        return;
    work->copy.local = (char *)copy->local + stripe->offset;
    work->copy.remote += stripe->offset;
    work->copy.length = stripe->length;
    work->stripe = *stripe;
    work->plan = plan;
    if (plan)
        plan->left++;
    /* The rail may have failed while an earlier stripe waited for room. */
    work->planned = rail->up;
    if (work->planned)
        rails_given(&op->peer->set, stripe, plan ? mtl_now() : 0);
    post_when_room(rail, work);
}

/* The only rail of a peer, if a copy can go at once that the policy would not measure: there is
 * nothing to choose. */
static struct rma_rail *only_rail(struct rma_peer *peer, const struct rma_copy *copy)
{
    struct rma_rail *rail = peer->rail;

    return peer->rail_count == 1 && copy->length < peer->set.traffic->limits.stripe_threshold &&
                   rail->up && has_room(rail)
               ? rail
               : NULL;
}

/* Short copies have one stripe, and the policy does not measure them. */
static void post_by_policy(struct rma_op *op, enum ibv_wr_opcode opcode,
                           const struct rma_copy *copy)
{
    struct rails_message message = { .class = RAILS_NONBLOCKING, .size = copy->length };
    struct rma_rail *rail = only_rail(op->peer, copy);
    struct rails_plan rails;
    struct rma_plan *plan = NULL;

    if (rail) {
        struct rma_work *work = work_new(op, opcode, copy);

        if (work)
            post(rail, work);
        return;
    }
    if (!rails_plan(&op->peer->set, &message, &rails)) {
        op->failed = true;
        return;
    }
    if (rails.stripe[0].rated) {
        plan = malloc(sizeof(*plan));
        if (!plan) {
            rails_ended(&op->peer->set, &rails);
            op->failed = true;
            return;
        }
        plan->rails = rails;
        plan->left = 1;
    }
    for (uint32_t i = 0; i < rails.count; i++)
        post_stripe(op, opcode, copy, &rails.stripe[i], plan);
    if (plan && !--plan->left) {
        rails_ended(&op->peer->set, &plan->rails);
        free(plan);
    }
}

static void transfer_part(struct rma_op *op, enum ibv_wr_opcode opcode, const struct rma_copy *copy,
                          enum rma_route route)
{
    if (route == RMA_IN_ORDER)
        post_in_order(op, work_new(op, opcode, copy));
    else
        post_by_policy(op, opcode, copy);
}

static void transfer(struct rma_op *op, enum ibv_wr_opcode opcode, const struct rma_copy *copy,
                     enum rma_route route)
{
    struct rma_copy part;

    if (copy->length <= RAIL_COPY_MAX) {
        transfer_part(op, opcode, copy, route);
        return;
    }
    part = *copy;
    for (uint64_t done = 0; done < copy->length; done += part.length) {
        part.local = (char *)copy->local + done;
        part.remote = copy->remote + done;
        part.length = copy->length - done < RAIL_COPY_MAX ? copy->length - done : RAIL_COPY_MAX;
        transfer_part(op, opcode, &part, route);
    }
}

void rma_write(struct rma_op *op, const struct rma_copy *copy, enum rma_route route)
{
    transfer(op, IBV_WR_RDMA_WRITE, copy, route);
}

void rma_read(struct rma_op *op, const struct rma_copy *copy, enum rma_route route)
{
    transfer(op, IBV_WR_RDMA_READ, copy, route);
}

static void post_atomic(struct rma_op *op, enum ibv_wr_opcode opcode, const struct rma_copy *copy,
                        uint64_t compare_add, uint64_t swap)
{
    struct rma_work *work = work_new(op, opcode, copy);

    if (!work)
        return;
    work->copy.length = sizeof(uint64_t);
    work->compare_add = compare_add;
    work->swap = swap;
    post_in_order(op, work);
}

void rma_fetch_add(struct rma_op *op, const struct rma_copy *copy, uint64_t value)
{
    post_atomic(op, IBV_WR_ATOMIC_FETCH_AND_ADD, copy, value, 0);
}

void rma_compare_swap(struct rma_op *op, const struct rma_copy *copy, uint64_t compare,
                      uint64_t swap)
{
    post_atomic(op, IBV_WR_ATOMIC_CMP_AND_SWP, copy, compare, swap);
}

/* ---- completions ---- */

void rma_completed(const struct ibv_wc *completion, struct work *given)
{
    struct rma_work *work = (struct rma_work *)given;

    work->rail->outstanding--;
    if (completion->status == IBV_WC_SUCCESS) {
        work_done(work, true);
    } else {
        rail_down(work->rail, ibv_wc_status_str(completion->status));
        /* What the peer has refused, it would refuse again. */
        if (completion->status == IBV_WC_RETRY_EXC_ERR || completion->status == IBV_WC_WR_FLUSH_ERR)
            work_lost(work);
        else
            work_done(work, false);
    }
    /* Another thread may be sleeping until its operation completes. */
    if (vtime.on && mtl.threads)
        vtime.memory_written(getpid());
}

static struct rma_rail *other_rail(const struct rma_work *work)
{
    struct rma_peer *peer = work->rail->peer;

    if (work->ordered)
        return ordered_rail(peer);
    for (uint32_t i = 0; i < peer->rail_count; i++) {
        if (peer->rail[i].up)
            return &peer->rail[i];
    }
    return NULL;
}

int rma_progress(void)
{
    struct rma_work *work = lost, *next;
    int count = 0;

    if (likely(!work))
        return 0;
    lost = NULL;
    last_lost = &lost;
    for (; work; work = next) {
        struct rma_rail *rail = other_rail(work);

        next = work->next;
        if (is_draining(work->rail) || (rail && !has_room(rail))) {
            queue_lost(work);
            continue;
        }
        count++;
        plan_done(work, false);
        if (rail) {
            mtl.counters.resent++;
            post(rail, work);
        } else {
            work_done(work, false);
        }
    }
    return count;
}

void rma_wait(void)
{
    if (!vtime.on && rails_poll_cqs())
        return;
    mtl_leave();
    opal_progress();
    mtl_enter();
}

/* ---- is the peer there? ---- */

struct probe {
    struct rma_op op;
    bool over;
};

static void probe_over(struct rma_op *op)
{
    container_of(op, struct probe, op)->over = true;
}

bool rma_is_alive(struct rma_peer *peer)
{
    struct probe probe = { .over = false };
    struct rma_copy nothing = { .length = 0 };

    rma_begin(&probe.op, peer, probe_over);
    post_in_order(&probe.op, work_new(&probe.op, IBV_WR_RDMA_WRITE, &nothing));
    rma_end(&probe.op);
    while (!probe.over)
        rma_wait();
    return !probe.op.failed;
}
