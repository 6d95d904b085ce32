/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine table of virtual time: what verbs calls cost, and how polling and sleeping wait. */
#include "sim/engine.h"

#include "dma/agent.h"
#include "hca/cq.h"
#include "hca/proc.h"
#include "hca/qp.h"
#include "sim/sched/compute.h"
#include "sim/model/hca.h"
#include "sim/model/region.h"
#include "sim/observe/observe.h"
#include "sim/sched/sched.h"
#include "sim/sched/vthread_index.h"
#include "sim/sched/vthread_notify.h"
#include "sim/attach.h"

#include <math.h>
#include <stdlib.h>

#define POLLS_MAX 16 /* looked ahead */

/* ---- costs of calls ---- */

static double cost_of(enum hca_call call, uint64_t amount)
{
    const struct parameters *p = &model->parameters;

    switch (call) {
    case CALL_POST_SEND:
        return p->host.post_send + (amount > 1 ? amount - 1 : 0) * p->host.sge_time;
    case CALL_POST_NEXT_SEND:
        return (p->host.post_next_send > 0 ? p->host.post_next_send : p->host.post_send) +
               (amount > 1 ? amount - 1 : 0) * p->host.sge_time;
    case CALL_POST_RECEIVE:
        return p->host.post_recv + (amount > 1 ? amount - 1 : 0) * p->host.sge_time;
    case CALL_CREATE_QP:
        return p->host.create_qp + amount * p->host.create_qp_entry;
    case CALL_DESTROY_QP:
        return p->host.destroy_qp;
    case CALL_DESTROY_CONNECTED_QP:
        return p->host.destroy_connected_qp;
    case CALL_MODIFY_QP:
    case CALL_PREPARE_QP:
        return p->host.modify_qp;
    case CALL_CREATE_CQ:
        return p->host.create_cq + amount * p->host.create_cq_entry;
    case CALL_DESTROY_CQ:
        return p->host.destroy_cq + amount * p->host.destroy_cq_entry;
    case CALL_CREATE_SRQ:
        return p->host.create_srq;
    case CALL_DESTROY_SRQ:
        return p->host.destroy_srq;
    case CALL_REGISTER:
        return parameters_reg_mr(p, amount);
    case CALL_DEREGISTER:
        return parameters_dereg_mr(p, 1, amount);
    case CALL_ALLOC_PD:
        return p->host.alloc_pd;
    case CALL_CREATE_AH:
        return p->host.create_ah;
    case CALL_BIND_WINDOW:
        return p->host.bind_mw;
    case CALL_EVENT:
        return p->host.event_call;
    case CALL_KINDS:
        break;
    }
    return 0;
}

static __thread uint64_t call_began;
static __thread uint64_t after_doorbell; /* what a call that posts sends still takes then */

/* Others notice a QP when it receives, which is an event, and when it sends. If what a peer sends
 * moves it to error before it is in RTS, the process learns that when it sends. A region changes the
 * ICM, which is an event. Its key is valid from the call on and not from its time, and invalid so: peers
 * of the suite use no key before they are told, or after they are done. */
static bool is_unnoticed(enum hca_call call)
{
    return call == CALL_CREATE_QP || call == CALL_PREPARE_QP || call == CALL_REGISTER ||
           call == CALL_DEREGISTER;
}

static void sim_charge(enum hca_call call, uint64_t amount)
{
    call_began = sched_now();
    if (is_unnoticed(call))
        sched_charge_ahead(cost_of(call, amount));
    else
        sched_charge(cost_of(call, amount));
}

static enum hca_call call_of(const struct ibv_send_wr *wr, bool first)
{
    if (wr->opcode == IBV_WR_BIND_MW)
        return CALL_BIND_WINDOW;
    return first ? CALL_POST_SEND : CALL_POST_NEXT_SEND;
}

static double time_after_doorbell(const struct ibv_send_wr *first)
{
    return first ? model->parameters.host.post_return * cost_of(call_of(first, true), 1) : 0;
}

/* A driver holds the lock of the send queue while it writes the WQEs of a call. */
static void sim_charge_sends(struct hca_qp *hqp, const struct ibv_send_wr *list)
{
    struct sim_qp *qp = sim_qp_find(hqp->ibv.qp_num);
    double tail = time_after_doorbell(list);
    uint64_t cost = 0;

    for (const struct ibv_send_wr *wr = list; wr; wr = wr->next)
        cost += ns_of(cost_of(call_of(wr, wr == list), wr->num_sge));
    while (qp && sched_now() < qp->locked_until)
        sched_charge(qp->locked_until - sched_now());
    if (qp)
        qp->locked_until = sched_now() + cost;
    for (const struct ibv_send_wr *wr = list; wr; wr = wr->next) {
        call_began = sched_now();
        sched_charge_ahead(cost_of(call_of(wr, wr == list), wr->num_sge) - (wr == list ? tail : 0));
    }
    after_doorbell = ns_of(tail);
}

/* A process may be ahead of the time at which packets find its receives. Of a QP in error, a receive
 * completes at once: not before its time. */
static void sim_charge_receives(struct hca_qp *hqp, const struct ibv_recv_wr *list)
{
    struct sim_qp *qp = sim_qp_find(hqp->ibv.qp_num);
    uint32_t count = 0;

    for (; list; list = list->next, count++) {
        if (qp && qp_state(hqp) != IBV_QPS_ERR)
            sched_charge_ahead(cost_of(CALL_POST_RECEIVE, list->num_sge));
        else
            sched_charge(cost_of(CALL_POST_RECEIVE, list->num_sge));
    }
    if (qp)
        sim_qp_hide_receives(qp, count);
}

/* A program that polls several CQs must poll each of them after a change before it may sleep. */
static uint32_t cq_count(bool *any_channel)
{
    uint32_t count = 0;

    *any_channel = false;
    spin_lock(&cq_list_lock);
    for (struct hca_cq *cq = cq_list; cq; cq = cq->next) {
        count++;
        *any_channel = *any_channel || cq->shared->has_channel;
    }
    spin_unlock(&cq_list_lock);
    return count;
}

/* A thread that has said which CQ it polls waits for that alone (verbena_poll_only()).
 * A program aware of virtual time waits for memory with verbena_spin(). One that has never called
 * it and has found all its CQs empty waits for a CQE only, unless it has a completion channel, on
 * which it may be about to sleep. One that has called it must not sleep here if it has other
 * threads: it may hold locks that they want. */
static bool may_sleep_polling(const struct vthread *me, uint32_t empty_polls, bool *for_cqe)
{
    bool any_channel;
    uint32_t cqs;

    *for_cqe = me->polls_only;
    if (me->polls_only)
        return true;
    cqs = cq_count(&any_channel);
    if (!me->guest && me->spins && !vthread_index_is_alone(me))
        return false;
    *for_cqe = !me->guest && !me->spins && !any_channel && empty_polls >= cqs && !cq_any_waits();
    return *for_cqe || empty_polls >= 2 * cqs + 2;
}

/* The thread will sleep in this poll, or in one of those that follow at once ('more' later), unless
 * something changes before. */
static bool is_about_to_sleep(struct vthread *me, struct hca_cq *cq, uint32_t *more, bool *for_cqe)
{
    uint32_t empty;

    if (sched_is_first() || cq->shared->has_channel || !cq_is_empty(cq) || sim_qp_has_cqes() ||
        !vthread_index_is_alone(me))
        return false;
    empty = vthread_empty_polls(me) + 1;
    for (*more = 0; *more <= (me->polls_on ? POLLS_MAX : 0); ++*more) {
        if (may_sleep_polling(me, empty + *more, for_cqe))
            return true;
    }
    return false;
}

static void slept(struct vthread *me, bool woken)
{
    if (!woken)
        me->clock += ns_of(model->parameters.host.poll_empty);
    me->waits_for_cqe = false;
    compute_begin();
}

static bool sim_poll_begin(struct hca_cq *cq)
{
    struct vthread *me = sched_self();
    bool for_cqe, woken;
    uint32_t more;

    if (!me || !is_about_to_sleep(me, cq, &more, &for_cqe)) {
        sched_sync();
    } else if (sched_sync_or_poll_wait(model->parameters.host.poll_empty, more, for_cqe, &woken)) {
        slept(me, woken);
        return false;
    }
    sim_qp_drain_cqes();
    return true;
}

static void sim_poll_end(int count)
{
    struct vthread *me = sched_self();
    const struct parameters *p = &model->parameters;
    bool for_cqe;

    if (!me)
        return;
    if (count > 0) {
        me->empty_polls = 0;
        me->clock += ns_of(p->host.poll_hit * count);
        return;
    }
    if (!may_sleep_polling(me, vthread_count_empty_poll(me), &for_cqe)) {
        slept(me, false);
        return;
    }
    me->waits_for_cqe = for_cqe;
    slept(me, sched_poll_wait(p->host.poll_empty));
}

static bool sim_sleep(void)
{
    bool woken = sched_block();

    sim_qp_drain_cqes();
    return woken;
}

/* ---- the engine ---- */

static void sim_send(struct hca_qp *hqp, struct send_wqe *swqe)
{
    sim_qp_post(hqp, swqe, call_began);
    compute_begin();
}

static void sim_send_end(struct hca_qp *hqp)
{
    struct vthread *me = sched_self();

    sim_qp_ring(hqp);
    if (me)
        me->clock += after_doorbell;
}

static bool sim_send_fast(struct hca_qp *hqp, const struct ibv_sge *sge, unsigned int flags)
{
    return false;
}

static void sim_progress(void)
{
}

static void sim_stop(void)
{
    sched_stop();
    observe_leave();
}

static void sim_pause(uint64_t ns)
{
    sched_charge(ns);
}

static uint32_t sim_mtu(void)
{
    return model->parameters.link.mtu;
}

static uint64_t sim_device_memory(void)
{
    return model->parameters.hca.memory;
}

static void change_region(enum region_change_kind kind, uint64_t address, uint64_t length)
{
    region_change(&(struct region_change){ .kind = kind,
                                           .node = segment_config()->node,
                                           .proc = proc_self,
                                           .address = address,
                                           .length = length });
}

static void sim_attach_memory(struct shared_mr *mr)
{
    if (mr->length != UINT64_MAX) /* the whole address space */
        change_region(REGION_ADDED, mr->iova, mr->length);
}

static void sim_detach_memory(struct shared_mr *mr)
{
    if (mr->length != UINT64_MAX)
        change_region(REGION_REMOVED, mr->iova, mr->length);
}

uint64_t sim_icm_host_bytes(void)
{
    bool any_channel;

    if (sched_is_ahead())
        sched_sync();
    return icm_host_bytes(region_icm(segment_config()->node, 0), cq_count(&any_channel));
}

static void sim_deregistered(uint64_t address, uint64_t length)
{
    change_region(REGION_REMAPPED, address, length);
}

static void sim_port_traffic(uint16_t lid, struct traffic *sum)
{
    const struct sim_port *port = hca_port_by_lid(lid);

    *sum = (struct traffic){ port->bytes_out, port->packets_out, port->bytes_in, port->packets_in };
}

const struct hca_engine sim_engine = {
    .name = "sim",
    .base_address = SIM_BASE_ADDRESS,
    .send = sim_send,
    .send_end = sim_send_end,
    .send_fast = sim_send_fast,
    .progress = sim_progress,
    .sq_flush = sim_qp_flush,
    .start = sim_attach,
    .stop = sim_stop,
    .start_copy_agent = agent_start,
    .attach_memory = sim_attach_memory,
    .detach_memory = sim_detach_memory,
    .port_traffic = sim_port_traffic,
    .charge = sim_charge,
    .charge_sends = sim_charge_sends,
    .charge_receives = sim_charge_receives,
    .poll_begin = sim_poll_begin,
    .poll_end = sim_poll_end,
    .sleep = sim_sleep,
    .qp_modified = sim_qp_modified,
    .pause = sim_pause,
    .mtu = sim_mtu,
    .device_memory = sim_device_memory,
    .deregistered = sim_deregistered,
};
