/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion rings and receive queues, from both sides. */

#include "fabric.h"

#include "hca/arena.h"
#include "hca/cq.h"
#include "hca/epoch.h"
#include "hca/proc.h"
#include "hca/qp.h"
#include "hca/rq.h"
#include "hca/shm_lock.h"
#include "hca/srq.h"
#include "hca/table.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct ibv_pd *pd;
static char *memory;
static struct ibv_mr *mr;

static int join_fabric(void **state)
{
    pd = ibv_alloc_pd(fabric_open());
    memory = calloc(1, 1 << 20);
    mr = ibv_reg_mr(pd, memory, 1 << 20, IBV_ACCESS_LOCAL_WRITE);
    return !mr;
}

static int leave_fabric(void **state)
{
    ibv_dereg_mr(mr);
    free(memory);
    return ibv_dealloc_pd(pd);
}

static void post_recv(struct ibv_qp *qp, uint64_t wr_id, uint64_t at, uint32_t length)
{
    struct ibv_sge sge = { (uintptr_t)memory + at, length, mr->lkey };
    struct ibv_recv_wr *bad, wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

    assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
}

static int try_send(struct ibv_qp *qp, uint64_t wr_id, const void *data, uint32_t length)
{
    struct ibv_sge sge = { (uintptr_t)data, length, 0 };
    struct ibv_send_wr *bad, wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1,
        .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE };

    return ibv_post_send(qp, &wr, &bad);
}

/* More messages than the first ring holds, taken only at the end: it must have grown, in order. */
static void a_ring_grows_and_keeps_the_order(void **state)
{
    enum { DEPTH = 3000 };
    struct ibv_cq *cq = ibv_create_cq(pd->context, 2 * DEPTH, NULL, NULL, 0);
    struct ibv_qp *a = fabric_rc_qp(pd, cq, DEPTH), *b = fabric_rc_qp(pd, cq, DEPTH);
    struct ibv_wc wc;

    fabric_connect(a, b);
    for (uint32_t i = 0; i < DEPTH; i++)
        post_recv(b, i, i * 16, 16);
    for (uint32_t i = 0; i < DEPTH; i++)
        assert_int_equal(try_send(a, i, &i, sizeof(i)), 0);
    for (uint32_t i = 0; i < DEPTH; i++) {
        assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.opcode, IBV_WC_RECV);
        assert_int_equal(wc.wr_id, i);
        assert_memory_equal(memory + i * 16, &i, sizeof(i));
    }
    ibv_destroy_qp(a);
    ibv_destroy_qp(b);
    assert_int_equal(ibv_destroy_cq(cq), 0);
}

struct producer {
    pthread_t thread;
    struct shared_cq *cq;
    uint32_t id, count;
};

static void *produce(void *arg)
{
    struct producer *p = arg;

    for (uint32_t i = 0; i < p->count; i++) {
        uint64_t ticket;
        epoch_enter();
        struct cqe *e = cq_reserve(p->cq, &ticket);
        if (e) {
            e->qpn = p->id;
            e->srqn = 0;
            e->imm = i;
            cq_publish(p->cq, e, ticket, IBV_WC_SUCCESS, IBV_WC_RECV, CQE_HOLE);
        }
        epoch_exit();
        if (!e)
            return "overrun";
    }
    return NULL;
}

/* Entries of no QP are passed over by polling: what is checked is that every ticket is published
 * where the consumer looks for it, through several growths. */
static void many_producers_fill_one_ring(void **state)
{
    enum { PRODUCERS = 3, EACH = 20000 };
    struct ibv_cq *cq = ibv_create_cq(pd->context, PRODUCERS * EACH, NULL, NULL, 0);
    struct hca_cq *own = (struct hca_cq *)cq;
    struct producer producers[PRODUCERS];
    struct ibv_wc wc;
    void *complaint;

    for (uint32_t i = 0; i < PRODUCERS; i++) {
        producers[i] = (struct producer){ .cq = own->shared, .id = i + 1, .count = EACH };
        assert_int_equal(pthread_create(&producers[i].thread, NULL, produce, &producers[i]), 0);
    }
    for (int i = 0; i < PRODUCERS; i++) {
        pthread_join(producers[i].thread, &complaint);
        assert_null(complaint);
    }
    while (own->head < PRODUCERS * EACH) {
        uint64_t before = own->head;
        assert_int_equal(ibv_poll_cq(cq, 16, &wc), 0);
        assert_true(own->head > before);
    }
    assert_int_equal(own->head, PRODUCERS * EACH);
    assert_int_equal(ibv_destroy_cq(cq), 0);
}

static void *poll_once(void *cq)
{
    struct ibv_wc wc;

    return ibv_poll_cq(cq, 1, &wc) ? "something was there" : NULL;
}

/* One thread finds a ticket taken and not published, again and again. While it waits for the lock
 * another takes that entry: the next ticket is nobody's yet, and must not be given up. */
static void a_ticket_that_nobody_has_is_not_abandoned(void **state)
{
    struct ibv_cq *cq = ibv_create_cq(pd->context, 64, NULL, NULL, 0);
    struct hca_cq *own = (struct hca_cq *)cq;
    struct producer one = { .cq = own->shared, .id = 1, .count = 1 };
    pthread_t thread;
    void *complaint;
    uint64_t ticket;

    epoch_enter();
    assert_non_null(cq_reserve(own->shared, &ticket));
    epoch_exit();
    store_relaxed(&own->idle_polls, 63); /* the next poll looks, and has looked often enough */
    store_relaxed(&own->stuck_polls, 3);
    spin_lock(&own->lock);
    assert_int_equal(pthread_create(&thread, NULL, poll_once, cq), 0);
    while (load_relaxed(&own->stuck_polls)) /* until it waits for the lock */
        usleep(1000);
    store_relaxed(&own->head, ticket + 1);
    store_relaxed(&own->next_entry, &own->ring->entries[ticket + 1]);
    spin_unlock(&own->lock);
    pthread_join(thread, &complaint);
    assert_null(complaint);
    assert_int_equal(load_relaxed(&own->ring->entries[ticket + 1].mark), 0);
    assert_null(produce(&one));
    assert_null(poll_once(cq));
    assert_int_equal(own->head, ticket + 2);
    assert_int_equal(ibv_destroy_cq(cq), 0);
}

static void a_full_queue_says_so(void **state)
{
    struct ibv_cq *cq = ibv_create_cq(pd->context, 64, NULL, NULL, 0);
    struct ibv_qp *a = fabric_rc_qp(pd, cq, 4), *b = fabric_rc_qp(pd, cq, 4);
    struct ibv_sge sge = { (uintptr_t)memory, 8, mr->lkey };
    struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };
    uint64_t word = 1;

    fabric_connect(a, b);
    for (int i = 0; i < 4; i++)
        assert_int_equal(ibv_post_recv(b, &wr, &bad), 0);
    assert_int_equal(ibv_post_recv(b, &wr, &bad), ENOMEM);
    assert_ptr_equal(bad, &wr);
    for (int i = 0; i < 4; i++)
        assert_int_equal(try_send(a, i, &word, sizeof(word)), 0);
    assert_int_equal(try_send(a, 9, &word, sizeof(word)), ENOMEM);
    ibv_destroy_qp(a);
    ibv_destroy_qp(b);
    assert_int_equal(ibv_destroy_cq(cq), 0);
}

static bool never(void *arg, uint32_t slot)
{
    return false;
}

static void a_receive_taken_by_the_dead_is_put_back(void **state)
{
    struct hca_rq rq;
    struct rq_view view;
    uint32_t left;
    uint64_t wr_id;
    struct ibv_sge sge = { (uintptr_t)memory, 8, mr->lkey };
    struct ibv_recv_wr wr = { .wr_id = 77, .sg_list = &sge, .num_sge = 1 };

    assert_int_equal(rq_create(&rq, 4, 1, true), 0);
    assert_int_equal(rq_post(&rq, ((struct hca_pd *)pd)->id, &wr), 0);
    assert_true(rq_open(seg_offset(rq.shared), &view));
    assert_true(rq_take(&view, &left));
    assert_int_equal(left, 0);
    _Atomic uint32_t *taker = seg_at(rq.shared->taker, sizeof(uint32_t) * 4);
    assert_int_equal(taker[view.slot], proc_word(proc_self));
    taker[view.slot] = proc_word(proc_self) ^ 0x8000; /* a generation that is gone */
    assert_false(rq_peek(&view));
    rq_recover(&rq, ((struct hca_pd *)pd)->id, never, NULL);
    assert_true(rq_take(&view, &left));
    assert_true(rq_complete(&rq, view.slot, &wr_id));
    assert_int_equal(wr_id, 77);
    assert_false(rq_complete(&rq, view.slot, &wr_id));
    rq_destroy(&rq);
}

/* Of two that a dead process took from a shared queue, the completion of one waits in some CQ. */
static void what_the_dead_took_from_a_shared_queue_is_put_back(void **state)
{
    struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
    struct hca_srq *srq = (struct hca_srq *)ibv_create_srq(pd, &init);
    struct ibv_cq *cqs[3];
    uint32_t left, slots[2];
    uint64_t wr_id, ticket;
    struct rq_view view;
    struct ibv_wc wc;

    for (int i = 0; i < 3; i++)
        cqs[i] = ibv_create_cq(pd->context, 4, NULL, NULL, 0);
    for (int i = 0; i < 2; i++) {
        struct ibv_sge sge = { (uintptr_t)memory, 8, mr->lkey };
        struct ibv_recv_wr *bad, wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 };
        assert_int_equal(ibv_post_srq_recv(&srq->ibv, &wr, &bad), 0);
    }
    assert_true(rq_open(seg_offset(srq->rq.shared), &view));
    _Atomic uint32_t *takers = seg_at(srq->rq.shared->taker, sizeof(uint32_t) * 4);
    for (int i = 0; i < 2; i++) {
        assert_true(rq_take(&view, &left));
        slots[i] = view.slot;
        takers[view.slot] = proc_word(proc_self) ^ 0x8000; /* a generation that is gone */
    }
    struct shared_cq *cq = ((struct hca_cq *)cqs[1])->shared;
    epoch_enter();
    struct cqe *e = cq_reserve(cq, &ticket);
    e->qpn = 0;
    e->srqn = srq->srqn;
    e->slot = slots[0];
    cq_publish(cq, e, ticket, IBV_WC_SUCCESS, IBV_WC_RECV, CQE_HOLE);
    epoch_exit();
    srq_recover_receives();
    assert_true(rq_take(&view, &left));
    assert_int_equal(view.slot, slots[1]);
    assert_false(rq_take(&view, &left));
    assert_true(rq_complete(&srq->rq, slots[1], &wr_id));
    assert_int_equal(wr_id, 1);
    assert_int_equal(ibv_poll_cq(cqs[1], 1, &wc), 0);
    assert_int_equal(ibv_destroy_srq(&srq->ibv), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ibv_destroy_cq(cqs[i]), 0);
}

static void post_numbered(struct hca_rq *rq, uint64_t wr_id)
{
    struct ibv_sge sge = { (uintptr_t)memory, 8, mr->lkey };
    struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

    assert_int_equal(rq_post(rq, ((struct hca_pd *)pd)->id, &wr), 0);
}

/* What a sender has done when it is killed in the middle of taking a receive. */
enum step { HOLDS_THE_LOCK, HAS_SIGNED, HAS_ADVANCED, HAS_UNLOCKED, STEPS };

static void take_and_die(struct rq_view *view, uint32_t dead, enum step last)
{
    struct shared_rq *rq = view->rq;
    _Atomic uint32_t *takers = seg_at(rq->taker, sizeof(uint32_t) * rq->depth);

    assert_true(rq_peek(view));
    store_relaxed(&rq->lock.holder, dead);
    if (last >= HAS_SIGNED)
        store_relaxed(&takers[view->slot], dead);
    if (last >= HAS_ADVANCED)
        rq_advance(rq);
    if (last >= HAS_UNLOCKED)
        shm_unlock(&rq->lock);
}

/* Each receive is taken once by those who live, wherever the first taker stopped, and whether the
 * next message comes before the owner has noticed or after. */
static void a_taker_may_die_at_any_step(void **state)
{
    uint32_t dead = proc_word(proc_self) ^ 0x8000, left;

    for (int order = 0; order < 2 * STEPS; order++) {
        bool next_comes_first = order % 2;
        unsigned taken = 0;
        struct hca_rq rq;
        struct rq_view view;
        uint64_t wr_id = 0;

        assert_int_equal(rq_create(&rq, 3, 1, true), 0);
        assert_true(rq_open(seg_offset(rq.shared), &view));
        for (uint64_t i = 0; i < 3; i++)
            post_numbered(&rq, i);
        take_and_die(&view, dead, order / 2);
        if (next_comes_first) {
            assert_true(rq_take(&view, &left));
            assert_true(rq_complete(&rq, view.slot, &wr_id));
            taken |= 1u << wr_id;
        }
        rq_recover(&rq, ((struct hca_pd *)pd)->id, never, NULL);
        while (rq_take(&view, &left)) {
            assert_true(rq_complete(&rq, view.slot, &wr_id));
            assert_false(taken & 1u << wr_id);
            taken |= 1u << wr_id;
        }
        assert_int_equal(taken, 7);
        rq_destroy(&rq);
    }
}

static uint32_t take_from_one_sender(struct rq_view *view)
{
    assert_true(rq_peek(view));
    rq_advance(view->rq);
    return view->slot;
}

/* Three of depth four, so that slots are passed over; round and round. */
static void receives_of_one_sender_go_round(void **state)
{
    struct ibv_recv_wr wr = { 0 };
    struct hca_rq rq;
    struct rq_view view;
    uint64_t wr_id;

    assert_int_equal(rq_create(&rq, 3, 1, false), 0);
    assert_true(rq_open(seg_offset(rq.shared), &view));
    for (uint64_t i = 0; i < 3; i++)
        post_numbered(&rq, i);
    for (uint64_t i = 0; i < 20; i++) {
        assert_int_equal(rq_post(&rq, ((struct hca_pd *)pd)->id, &wr), ENOMEM);
        assert_true(rq_complete(&rq, take_from_one_sender(&view), &wr_id));
        assert_int_equal(wr_id, i);
        post_numbered(&rq, i + 3);
    }
    rq_destroy(&rq);
}

static void what_one_dead_sender_took_is_put_back_in_order(void **state)
{
    struct hca_rq rq;
    struct rq_view view;
    uint8_t waiting[4] = { 0 };
    uint64_t wr_id;

    assert_int_equal(rq_create(&rq, 4, 1, false), 0);
    assert_true(rq_open(seg_offset(rq.shared), &view));
    for (uint64_t i = 0; i < 4; i++)
        post_numbered(&rq, i);
    assert_true(rq_complete(&rq, take_from_one_sender(&view), &wr_id));
    waiting[take_from_one_sender(&view)] = 1;
    take_from_one_sender(&view);
    take_from_one_sender(&view);
    assert_false(rq_peek(&view));
    rq_put_back_lost(&rq, waiting);
    for (uint64_t i = 2; i < 4; i++) {
        assert_true(rq_complete(&rq, take_from_one_sender(&view), &wr_id));
        assert_int_equal(wr_id, i);
    }
    assert_false(rq_peek(&view));
    rq_destroy(&rq);
}

/* ---- an answer and the completion of what it answers ---- */

enum { QUESTIONS = 20000 };

struct talk {
    struct ibv_qp *qp;
    _Atomic uint32_t wanted; /* questions */
};

static void *ask(void *arg)
{
    struct talk *talk = arg;
    struct ibv_sge sge = { (uintptr_t)memory, 8, mr->lkey };

    for (uint32_t i = 0; i < QUESTIONS; i++) {
        struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1,
            .opcode = i & 1 ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM, .send_flags = IBV_SEND_SIGNALED };
        while (talk->wanted <= i)
            sched_yield();
        ibv_post_send(talk->qp, &wr, &bad);
    }
    return NULL;
}

static struct ibv_wc wait_for(struct ibv_cq *cq)
{
    struct ibv_wc wc;

    while (ibv_poll_cq(cq, 1, &wc) == 0)
        sched_yield();
    return wc;
}

/* One thread posts, another answers and polls: it must not see an answer before the send is over. The
 * far CQ is armed: telling of the message keeps the poster busy between the two. */
static void an_answer_does_not_overtake_the_completion(void **state)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(pd->context);
    struct ibv_cq *near = ibv_create_cq(pd->context, 16, NULL, NULL, 0);
    struct ibv_cq *far = ibv_create_cq(pd->context, 16, NULL, channel, 0);
    struct ibv_qp *b = fabric_rc_qp(pd, far, QUESTIONS); /* whose sends are not signalled */
    struct talk talk = { .qp = fabric_rc_qp(pd, near, 4) };
    uint32_t overtaken = 0;
    pthread_t asker;

    fabric_connect(talk.qp, b);
    assert_int_equal(pthread_create(&asker, NULL, ask, &talk), 0);
    for (uint32_t i = 0; i < QUESTIONS; i++) {
        post_recv(talk.qp, 0, 0, 8);
        post_recv(b, 0, 64, 8);
        ibv_req_notify_cq(far, 0);
        talk.wanted = i + 1;
        wait_for(far);
        assert_int_equal(try_send(b, 0, memory, 8), 0);
        overtaken += wait_for(near).opcode != IBV_WC_SEND;
        wait_for(near);
    }
    pthread_join(asker, NULL);
    assert_int_equal(overtaken, 0);
    ibv_destroy_qp(talk.qp);
    ibv_destroy_qp(b);
    ibv_destroy_cq(near);
    ibv_destroy_cq(far);
    ibv_destroy_comp_channel(channel);
}

struct publisher {
    struct hca_cq *cq;
    struct hca_qp *qp;
    atomic_bool started, finished;
};

/* A sender that comes when another thread has the CQ's lock, which it needs to finish publishing. */
static void *finish_publishing(void *arg)
{
    struct publisher *publisher = arg;

    publisher->started = true;
    while (!load_acquire(&publisher->cq->lock.held))
        sched_yield();
    spin_lock(&publisher->cq->lock);
    store_release(&publisher->qp->publishing, 0);
    publisher->finished = true;
    spin_unlock(&publisher->cq->lock);
    return NULL;
}

/* ibv_poll_cq() waits a limited time for a send that is being published, and releases the CQ's lock
 * meanwhile. A busy machine may exceed that time, so one success is enough. */
static void a_waiting_poll_lets_the_sender_publish(void **state)
{
    enum { TRIES = 1000 };
    struct ibv_cq *cq = ibv_create_cq(pd->context, 16, NULL, NULL, 0);
    struct ibv_qp *a = fabric_rc_qp(pd, cq, 4), *b = fabric_rc_qp(pd, cq, TRIES);
    bool let_in = false;

    fabric_connect(a, b);
    for (int i = 0; i < TRIES && !let_in; i++) {
        struct publisher publisher = { .cq = (struct hca_cq *)cq, .qp = (struct hca_qp *)a };
        pthread_t thread;
        post_recv(a, 0, 0, 8);
        assert_int_equal(try_send(b, 0, memory, 8), 0);
        store_release(&publisher.qp->publishing, 1);
        assert_int_equal(pthread_create(&thread, NULL, finish_publishing, &publisher), 0);
        while (!publisher.started)
            sched_yield();
        assert_int_equal(wait_for(cq).opcode, IBV_WC_RECV);
        let_in = publisher.finished;
        while (!publisher.finished) {
            spin_lock(&publisher.cq->lock);
            sched_yield();
            spin_unlock(&publisher.cq->lock);
            sched_yield();
        }
        pthread_join(thread, NULL);
    }
    assert_true(let_in);
    ibv_destroy_qp(a);
    ibv_destroy_qp(b);
    ibv_destroy_cq(cq);
}

static void *wait_for_end(void *mutex)
{
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
    return NULL;
}

/* Only a process with threads waits at all. */
static void a_poll_waits_for_a_sender_no_longer_than_its_limit(void **state)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    struct ibv_cq *cq = ibv_create_cq(pd->context, 16, NULL, NULL, 0);
    struct ibv_qp *a = fabric_rc_qp(pd, cq, 4), *b = fabric_rc_qp(pd, cq, 4);
    pthread_t thread;

    pthread_mutex_lock(&mutex);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_end, &mutex), 0);
    fabric_connect(a, b);
    post_recv(a, 0, 0, 8);
    assert_int_equal(try_send(b, 0, memory, 8), 0);
    store_release(&((struct hca_qp *)a)->publishing, 1);
    assert_int_equal(wait_for(cq).opcode, IBV_WC_RECV);
    store_release(&((struct hca_qp *)a)->publishing, 0);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
    ibv_destroy_qp(a);
    ibv_destroy_qp(b);
    ibv_destroy_cq(cq);
}

static void a_damaged_receive_queue_is_not_followed(void **state)
{
    struct hca_rq rq;
    struct rq_view view;

    assert_int_equal(rq_create(&rq, 4, 1, true), 0);
    rq.shared->depth = 5;
    assert_false(rq_open(seg_offset(rq.shared), &view));
    rq.shared->depth = 1u << 31;
    rq.shared->order = seg_limit - 64;
    assert_false(rq_open(seg_offset(rq.shared), &view));
    rq_destroy(&rq);
}

/* Each is found under its own number, and no longer when it is gone. */
static void shared_receive_queues_are_told_apart(void **state)
{
    struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
    struct hca_srq *srqs[3];
    uint32_t gone;

    for (int i = 0; i < 3; i++)
        srqs[i] = (struct hca_srq *)ibv_create_srq(pd, &init);
    for (int i = 0; i < 3; i++) {
        assert_non_null(srqs[i]);
        assert_ptr_equal(shared_srq_find(srqs[i]->srqn), srqs[i]->shared);
        assert_ptr_not_equal(srqs[i]->shared, srqs[(i + 1) % 3]->shared);
        assert_null(shared_srq_find(srqs[i]->srqn ^ 1u << SRQ_INDEX_BITS));
    }
    gone = srqs[0]->srqn;
    for (int i = 0; i < 3; i++)
        assert_int_equal(ibv_destroy_srq(&srqs[i]->ibv), 0);
    assert_null(shared_srq_find(gone));
}

static void only_an_xrc_srq_has_a_number(void **state)
{
    struct ibv_xrcd_init_attr domain = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT
    };
    struct ibv_srq_init_attr_ex init = { .attr = { .max_wr = 4, .max_sge = 1 },
                                         .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
                                         .srq_type = IBV_SRQT_BASIC,
                                         .pd = pd };
    struct ibv_srq *basic = ibv_create_srq_ex(pd->context, &init), *xrc;
    uint32_t number = 0;

    init.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    init.srq_type = IBV_SRQT_XRC;
    init.cq = ibv_create_cq(pd->context, 4, NULL, NULL, 0);
    init.xrcd = ibv_open_xrcd(pd->context, &domain);
    xrc = ibv_create_srq_ex(pd->context, &init);
    assert_true(basic && xrc);
    assert_int_equal(ibv_get_srq_num(basic, &number), EINVAL);
    assert_int_equal(ibv_get_srq_num(xrc, &number), 0);
    assert_ptr_equal(shared_srq_find(number), ((struct hca_srq *)xrc)->shared);
    assert_int_equal(ibv_destroy_srq(basic) | ibv_destroy_srq(xrc), 0);
    assert_int_equal(ibv_destroy_cq(init.cq) | ibv_close_xrcd(init.xrcd), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_grows_and_keeps_the_order),
        cmocka_unit_test(many_producers_fill_one_ring),
        cmocka_unit_test(a_ticket_that_nobody_has_is_not_abandoned),
        cmocka_unit_test(a_full_queue_says_so),
        cmocka_unit_test(a_receive_taken_by_the_dead_is_put_back),
        cmocka_unit_test(what_the_dead_took_from_a_shared_queue_is_put_back),
        cmocka_unit_test(a_taker_may_die_at_any_step),
        cmocka_unit_test(receives_of_one_sender_go_round),
        cmocka_unit_test(what_one_dead_sender_took_is_put_back_in_order),
        cmocka_unit_test(an_answer_does_not_overtake_the_completion),
        cmocka_unit_test(a_waiting_poll_lets_the_sender_publish),
        cmocka_unit_test(a_poll_waits_for_a_sender_no_longer_than_its_limit),
        cmocka_unit_test(a_damaged_receive_queue_is_not_followed),
        cmocka_unit_test(shared_receive_queues_are_told_apart),
        cmocka_unit_test(only_an_xrc_srq_has_a_number),
    };

    return cmocka_run_group_tests_name("queues", tests, join_fabric, leave_fabric);
}
