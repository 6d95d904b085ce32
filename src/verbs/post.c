/* SPDX-License-Identifier: BSD-2-Clause */
/* Work requests: checked here, executed by the engine. */

#include "verbena.h"
#include "verbs/verbs.h"

#include "check/check.h"
#include "hca/addr.h"
#include "hca/cq.h"
#include "hca/engine.h"
#include "hca/idle.h"
#include "hca/qp.h"
#include "hca/rq.h"

#include <string.h>
#include <time.h>

#define MAX_MESSAGE (1ull << 31)

#define OP(name) (1u << IBV_WR_##name)
#define CONNECTED_OPS                                                                              \
    (OP(RDMA_WRITE) | OP(RDMA_WRITE_WITH_IMM) | OP(SEND) | OP(SEND_WITH_IMM))
#define RELIABLE_OPS                                                                               \
    (CONNECTED_OPS | OP(RDMA_READ) | OP(ATOMIC_CMP_AND_SWP) | OP(ATOMIC_FETCH_AND_ADD))
#define WINDOW_OPS (OP(LOCAL_INV) | OP(BIND_MW) | OP(SEND_WITH_INV))

static bool opcode_allowed(enum ibv_qp_type type, unsigned opcode)
{
    static const uint32_t allowed[IBV_QPT_XRC_RECV + 1] = {
        [IBV_QPT_RC] = RELIABLE_OPS | WINDOW_OPS | OP(ATOMIC_WRITE),
        [IBV_QPT_UC] = CONNECTED_OPS | OP(LOCAL_INV) | OP(BIND_MW),
        [IBV_QPT_UD] = OP(SEND) | OP(SEND_WITH_IMM),
        [IBV_QPT_XRC_SEND] = RELIABLE_OPS,
    };

    return opcode < 32 && allowed[type] & 1u << opcode;
}

static int check_lengths(const struct hca_qp *qp, const struct ibv_send_wr *wr)
{
    uint64_t total = 0;

    if (unlikely(wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_send_sge))
        return EINVAL;
    for (int i = 0; i < wr->num_sge; i++)
        total += wr->sg_list[i].length;
    if (unlikely(total > MAX_MESSAGE))
        return EINVAL;
    if (wr->opcode == IBV_WR_ATOMIC_WRITE)
        return total == 8 ? 0 : EINVAL; /* carried in the WQE, whatever max_inline_data is */
    if (wr->send_flags & IBV_SEND_INLINE &&
        (total > qp->cap.max_inline_data || wr->opcode == IBV_WR_RDMA_READ ||
         wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD))
        return EINVAL;
    return 0;
}

static int set_datagram_address(struct send_wqe *w, const struct ibv_send_wr *wr)
{
    const struct hca_ah *ah = (const struct hca_ah *)wr->wr.ud.ah;

    if (!ah)
        return EINVAL;
    w->remote_qpn = wr->wr.ud.remote_qpn;
    w->remote_qkey = wr->wr.ud.remote_qkey;
    w->sl = ah->attr.sl;
    w->has_grh = ah->attr.is_global;
    w->dgid = ah->attr.grh.dgid;
    w->sgid_index = ah->attr.grh.sgid_index;
    w->dlid = ah->attr.dlid;
    if (!w->dlid && w->has_grh)
        w->dlid = w->dgid.raw[0] == 0xff ? ADDR_MCAST_LID : addr_lid_from_gid(&w->dgid);
    return 0;
}

static int set_bind(struct send_wqe *w, const struct ibv_send_wr *wr)
{
    if (!wr->bind_mw.mw || (wr->bind_mw.bind_info.length && !wr->bind_mw.bind_info.mr))
        return EINVAL;
    w->mw = wr->bind_mw.mw;
    w->rkey = wr->bind_mw.rkey;
    w->bind = wr->bind_mw.bind_info;
    w->num_sge = 0;
    return 0;
}

/* Translates a work request without copying its SGE list: the engine copies it if the WQE must wait. */
static inline int translate(struct hca_qp *qp, const struct ibv_send_wr *wr, struct send_wqe *w)
{
    w->wr_id = wr->wr_id;
    w->opcode = wr->opcode;
    w->flags = wr->send_flags | qp->every_send_flags;
    w->imm = wr->imm_data;
    w->sge = wr->sg_list;
    w->num_sge = wr->num_sge;
    w->srqn = wr->qp_type.xrc.remote_srqn;
    w->has_grh = 0;
    w->sl = qp->sl;
    switch (wr->opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_RDMA_READ:
    case IBV_WR_ATOMIC_WRITE:
        w->remote_addr = wr->wr.rdma.remote_addr;
        w->rkey = wr->wr.rdma.rkey;
        return 0;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        w->remote_addr = wr->wr.atomic.remote_addr;
        w->rkey = wr->wr.atomic.rkey;
        w->compare_add = wr->wr.atomic.compare_add;
        w->swap = wr->wr.atomic.swap;
        return 0;
    case IBV_WR_BIND_MW:
        return set_bind(w, wr);
    default:
        return qp->ibv.qp_type == IBV_QPT_UD ? set_datagram_address(w, wr) : 0;
    }
}

static inline int check_send(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
    if (unlikely(!opcode_allowed(qp->ibv.qp_type, wr->opcode)))
        return EINVAL;
    return check_lengths(qp, wr);
}

static bool may_post_send(const struct hca_qp *qp)
{
    enum ibv_qp_state state = qp_state(qp);

    return state >= IBV_QPS_RTS && state <= IBV_QPS_ERR;
}

static inline uint32_t next_index(struct hca_qp *qp)
{
    if (unlikely(!qp->sq_posted))
        idle_first_send(qp);
    return qp->sq_posted++;
}

static inline bool may_go_fast(const struct hca_qp *qp, const struct ibv_send_wr *wr,
                               unsigned flags)
{
    return wr->num_sge == 1 && qp->ibv.qp_type == IBV_QPT_RC && !qp->pending &&
           qp_state(qp) == IBV_QPS_RTS &&
           !(flags & IBV_SEND_INLINE && wr->sg_list->length > qp->cap.max_inline_data) &&
           qp->cap.max_send_sge;
}

static inline bool write_fast(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
    unsigned flags = wr->send_flags | qp->every_send_flags;

    if (!hca_engine->write_fast || !may_go_fast(qp, wr, flags) ||
        !hca_engine->write_fast(qp, wr, flags))
        return false;
    uint32_t index = next_index(qp);
    if (flags & IBV_SEND_SIGNALED)
        cq_push_send((struct hca_cq *)qp->ibv.send_cq, qp, wr->wr_id, index, IBV_WC_SUCCESS,
                     IBV_WC_RDMA_WRITE, wr->sg_list->length);
    return true;
}

/* Fast path: most sends are short, and need no translation. */
static inline bool send_fast(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
    unsigned flags = wr->send_flags | qp->every_send_flags;

    if (wr->opcode != IBV_WR_SEND)
        return wr->opcode == IBV_WR_RDMA_WRITE && write_fast(qp, wr);
    if (!may_go_fast(qp, wr, flags) || wr->sg_list->length > CQE_INLINE ||
        !hca_engine->send_fast(qp, wr->sg_list, flags))
        return false;
    uint32_t index = next_index(qp);
    if (flags & IBV_SEND_SIGNALED)
        cq_push_send((struct hca_cq *)qp->ibv.send_cq, qp, wr->wr_id, index, IBV_WC_SUCCESS,
                     IBV_WC_SEND, wr->sg_list->length);
    store_release(&qp->publishing, 0);
    return true;
}

static inline bool is_full(const struct hca_qp *qp)
{
    return qp->sq_posted - load_relaxed(&qp->sq_freed) >= qp->cap.max_send_wr;
}

/* Without the lock: to take it waits until all that was written before has left the processor, and
 * that goes to lines of peers. Engines without short writes have other uses for the lock. */
static inline bool send_alone(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
    return load_acquire(&qp->alone) && hca_engine->write_fast && !wr->next && !is_full(qp) &&
           send_fast(qp, wr);
}

static inline int send_one(struct hca_qp *qp, struct ibv_send_wr *wr, const void *caller)
{
    struct send_wqe w;
    int err;

    if (unlikely(is_full(qp)))
        return (err = check_send(qp, wr)) ? err : ENOMEM;
    if (likely(send_fast(qp, wr)))
        return 0;
    if (unlikely((err = check_send(qp, wr)) || (err = translate(qp, wr, &w))))
        return err;
    w.caller = caller;
    w.sq_index = next_index(qp);
    hca_engine->send(qp, &w);
    return 0;
}

/* Call without locks: other threads run while virtual time passes. */
static inline void charge_sends(struct hca_qp *qp, const struct ibv_send_wr *list)
{
    if (unlikely(hca_engine->charge_sends != NULL))
        hca_engine->charge_sends(qp, list);
}

static inline void end_sends(struct hca_qp *qp)
{
    if (unlikely(hca_engine->send_end != NULL))
        hca_engine->send_end(qp);
}

static inline void charge_receives(struct hca_qp *qp, const struct ibv_recv_wr *list)
{
    if (unlikely(hca_engine->charge_receives != NULL))
        hca_engine->charge_receives(qp, list);
}

static inline void charge_shared_receives(const struct ibv_recv_wr *wr)
{
    if (likely(!hca_engine->charge))
        return;
    for (; wr; wr = wr->next)
        hca_engine->charge(CALL_POST_RECEIVE, wr->num_sge);
}

int verbs_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
    struct hca_qp *qp = (struct hca_qp *)ibv;
    int err = 0;

    if (unlikely(!may_post_send(qp))) {
        *bad_wr = wr;
        if (check_explains)
            check_explain_post(qp, wr, EINVAL);
        return EINVAL;
    }
    if (send_alone(qp, wr))
        return 0;
    charge_sends(qp, wr);
    spin_lock(&qp->sq_lock);
    for (; wr && !(err = send_one(qp, wr, __builtin_return_address(0))); wr = wr->next)
        ;
    end_sends(qp);
    spin_unlock(&qp->sq_lock);
    if (unlikely(err)) {
        *bad_wr = wr;
        if (check_explains)
            check_explain_post(qp, wr, err);
    }
    return err;
}

static int send_one_checked(struct hca_qp *qp, struct ibv_send_wr *wr, uint8_t status)
{
    struct send_wqe w = { 0 };
    int err = check_send(qp, wr);

    if (!err && is_full(qp))
        err = ENOMEM;
    if (err || (err = translate(qp, wr, &w)))
        return err;
    if (status)
        w.flags |= IBV_SEND_SIGNALED; /* errors always complete */
    w.caller = check_caller;
    w.sq_index = next_index(qp);
    check_posts(qp, &w, status);
    hca_engine->send(qp, &w);
    return 0;
}

static void pause_for(uint64_t ns)
{
    struct timespec time = { ns / 1000000000, ns % 1000000000 };

    if (hca_engine->pause)
        hca_engine->pause(ns);
    else
        clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

/* Brings about what the fault plan demands before this work request. */
static void inject_before(struct hca_qp *qp, const struct injection *injection)
{
    if (injection->pause_ns)
        pause_for(injection->pause_ns);
    if (injection->port_down || injection->port_up)
        verbena_set_port(qp->ibv.context, qp->shared->port, injection->port_up);
    if (injection->fatal)
        verbs_lose_device(qp->ibv.context);
    if (injection->disconnect && qp->connection)
        qp->lose_connection(qp->connection);
    if (injection->qp_error || injection->disconnect)
        qp_set_error(qp->shared);
}

static struct ibv_td *td_of(const struct hca_qp *qp)
{
    return qp->ibv.pd ? ((struct hca_pd *)qp->ibv.pd)->td : NULL;
}

/* Posts what check_send() allows. Call without locks. */
static int post_checked(struct hca_qp *qp, struct ibv_send_wr **wr, const char *call)
{
    struct injection injection = { 0 };
    struct ibv_td *td = td_of(qp);
    int err = 0;

    if (td)
        check_enters(CHECK_TD, td, call);
    charge_sends(qp, *wr);
    for (; *wr; *wr = (*wr)->next) {
        if (check_injects) {
            inject_post((*wr)->opcode, &injection);
            inject_before(qp, &injection);
        }
        spin_lock(&qp->sq_lock);
        err = send_one_checked(qp, *wr, injection.status);
        spin_unlock(&qp->sq_lock);
        if (err)
            break;
    }
    spin_lock(&qp->sq_lock);
    end_sends(qp);
    spin_unlock(&qp->sq_lock);
    if (td)
        check_leaves(CHECK_TD, td);
    if (err == ENOMEM && check_sanitizes)
        check_queue_full(qp);
    return err;
}

int verbs_post_send_checked(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
    struct hca_qp *qp = (struct hca_qp *)ibv;
    int err = check_call(VERB_POST_SEND);

    check_uses(CHECK_QP, qp, "ibv_post_send()");
    if (err) {
        *bad_wr = wr;
        return err;
    }
    if (may_post_send(qp)) {
        check_caller = __builtin_return_address(0);
        err = post_checked(qp, &wr, "ibv_post_send()");
    } else {
        err = EINVAL;
    }
    if (err) {
        *bad_wr = wr;
        if (check_explains)
            check_explain_post(qp, wr, err);
    }
    return err;
}

int verbs_post_send_all(struct hca_qp *qp, struct ibv_send_wr *list, const void *caller)
{
    struct ibv_send_wr *bad = list;
    uint32_t count = 0;
    bool records = unlikely(check_on) && check_records();
    int err = may_post_send(qp) ? 0 : EINVAL;

    if (likely(!records))
        charge_sends(qp, list);
    spin_lock(&qp->sq_lock);
    for (; bad && !err && !(err = check_send(qp, bad)); bad = bad->next)
        count++;
    if (!err && qp->sq_posted - load_relaxed(&qp->sq_freed) + count > qp->cap.max_send_wr)
        err = ENOMEM;
    for (struct ibv_send_wr *wr = list; wr && !err && likely(!records); wr = wr->next)
        err = send_one(qp, wr, caller);
    end_sends(qp);
    spin_unlock(&qp->sq_lock);
    if (unlikely(records) && !err) {
        if ((err = check_call(VERB_POST_SEND)))
            return err;
        check_caller = caller;
        err = post_checked(qp, &list, "ibv_wr_complete()");
        bad = list;
    }
    if (unlikely(err && check_explains && list))
        check_explain_post(qp, bad ? bad : list, err);
    return err;
}

int verbs_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    struct hca_qp *qp = (struct hca_qp *)ibv;
    int err = 0;

    if (unlikely(!qp->rq.shared || qp_state(qp) == IBV_QPS_RESET)) {
        *bad_wr = wr;
        if (check_explains)
            check_explain_post_receive(&qp->rq, wr, true, EINVAL);
        return EINVAL;
    }
    charge_receives(qp, wr);
    spin_lock(&qp->rq.lock);
    for (; wr && !(err = rq_post(&qp->rq, qp->pd->id, wr)); wr = wr->next)
        ;
    if (unlikely(qp_state(qp) == IBV_QPS_ERR))
        qp_flush_late_receive(qp);
    spin_unlock(&qp->rq.lock);
    if (unlikely(err)) {
        *bad_wr = wr;
        if (check_explains)
            check_explain_post_receive(&qp->rq, wr, false, err);
    }
    return err;
}

int verbs_post_recv_explained(struct ibv_qp *ibv, struct ibv_recv_wr *wr,
                              struct ibv_recv_wr **bad_wr)
{
    check_caller = __builtin_return_address(0);
    return verbs_post_recv(ibv, wr, bad_wr);
}

static int before_receives(void)
{
    uint64_t ns = check_injects ? inject_receive_pause() : 0;

    if (ns)
        pause_for(ns);
    return check_call(VERB_POST_RECV);
}

int verbs_post_recv_checked(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    struct ibv_td *td;
    int err;

    check_uses(CHECK_QP, ibv, "ibv_post_recv()");
    if ((err = before_receives())) {
        *bad_wr = wr;
        return err;
    }
    check_caller = __builtin_return_address(0);
    td = td_of((struct hca_qp *)ibv);
    if (td)
        check_enters(CHECK_TD, td, "ibv_post_recv()");
    err = verbs_post_recv(ibv, wr, bad_wr);
    if (td)
        check_leaves(CHECK_TD, td);
    return err;
}

int verbs_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    struct hca_srq *srq = (struct hca_srq *)ibv;
    int err = 0;

    charge_shared_receives(wr);
    spin_lock(&srq->rq.lock);
    for (; wr && !(err = rq_post(&srq->rq, srq->pd->id, wr)); wr = wr->next)
        ;
    spin_unlock(&srq->rq.lock);
    if (unlikely(err)) {
        *bad_wr = wr;
        if (check_explains)
            check_explain_post_receive(&srq->rq, wr, false, err);
    }
    return err;
}

int verbs_post_srq_recv_explained(struct ibv_srq *ibv, struct ibv_recv_wr *wr,
                                  struct ibv_recv_wr **bad_wr)
{
    check_caller = __builtin_return_address(0);
    return verbs_post_srq_recv(ibv, wr, bad_wr);
}

int verbs_post_srq_recv_checked(struct ibv_srq *ibv, struct ibv_recv_wr *wr,
                                struct ibv_recv_wr **bad_wr)
{
    int err;

    check_uses(CHECK_SRQ, ibv, "ibv_post_srq_recv()");
    if ((err = before_receives())) {
        *bad_wr = wr;
        return err;
    }
    check_caller = __builtin_return_address(0);
    return verbs_post_srq_recv(ibv, wr, bad_wr);
}
