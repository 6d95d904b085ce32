/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/shm_lock.h"
#include "live/live.h"

#include "dma/copy.h"
#include "dma/deliver.h"
#include "dma/peer.h"
#include "hca/addr.h"
#include "hca/epoch.h"
#include "hca/mw.h"
#include "hca/observer.h"
#include "hca/proc.h"
#include "hca/qp.h"
#include "hca/responder.h"
#include "util/log.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

/* ---- local memory ---- */

static char *own_pointer(const struct mem_ref *ref)
{
    return ref->kind == MEM_SEGMENT ? (char *)seg + ref->addr : (char *)ref->addr;
}

static bool build_local(const struct hca_qp *qp, const struct send_wqe *w, bool for_writing,
                        struct local_list *list)
{
    struct mem_ref ref;

    list->count = 0;
    list->length = 0;
    list->unmapped = false;
    for (uint32_t i = 0; i < w->num_sge; i++) {
        const struct ibv_sge *sge = &w->sge[i];
        if (!sge->length)
            continue;
        if (w->flags & IBV_SEND_INLINE)
            ref = (struct mem_ref){ .kind = MEM_PROCESS, .addr = sge->addr };
        else if (unlikely(
                     !mr_local(sge->lkey, qp->pd->id, sge->addr, sge->length, for_writing, &ref)))
            return false;
        else
            list->unmapped |= load_relaxed(&ref.mr->unmapped);
        list->iov[list->count++] = (struct iovec){ own_pointer(&ref), sge->length };
        list->length += sge->length;
    }
    return true;
}

/* ---- the responder ---- */

struct shared_qp *wqe_find_peer(const struct hca_qp *qp)
{
    struct shared_qp *peer = shared_qp_find(qp->attr.dest_qp_num);
    uint8_t want =
        qp->ibv.qp_type == IBV_QPT_XRC_SEND ? IBV_QPT_XRC_RECV : (uint8_t)qp->ibv.qp_type;

    if (unlikely(!peer || load_relaxed(&peer->dest_qpn) != qp->ibv.qp_num || peer->type != want ||
                 !responder_is_ready(peer) || load_relaxed(&peer->lid) != qp->dest_lid ||
                 addr_port_is_down(load_relaxed(&peer->lid)) ||
                 addr_port_is_down(load_relaxed(&qp->shared->lid))))
        return NULL;
    return peer;
}

/* The requester's status. An error also moves the responder's QP to the error state, unless it is
 * unreliable. */
static int status_of_check(struct shared_qp *peer, enum responder_status status)
{
    if (status == RESPONDER_OK)
        return IBV_WC_SUCCESS;
    if (peer->type != IBV_QPT_UC)
        qp_fail(peer,
                status == RESPONDER_ACCESS_ERROR ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR);
    return status == RESPONDER_ACCESS_ERROR ? IBV_WC_REM_ACCESS_ERR : IBV_WC_REM_INV_REQ_ERR;
}

static int find_remote(struct shared_qp *peer, const struct send_wqe *w, uint64_t length,
                       unsigned access, struct mem_ref *ref)
{
    if (!length)
        return IBV_WC_SUCCESS;
    return status_of_check(
        peer, responder_check(peer, w->srqn, w->rkey, w->remote_addr, length, access, ref));
}

static int find_remote_word(struct shared_qp *peer, const struct send_wqe *w, unsigned access,
                            struct mem_ref *ref)
{
    return status_of_check(
        peer, responder_check_atomic(peer, w->srqn, w->rkey, w->remote_addr, access, ref));
}

static int status_of_copy(int err)
{
    return err == 0 ? IBV_WC_SUCCESS : err == ESRCH ? IBV_WC_RETRY_EXC_ERR : IBV_WC_REM_OP_ERR;
}

/* ---- operations ---- */

/* Copies the bytes of a write from `from` to `end`. */
static int write_part(const struct local_list *local, const struct mem_ref *ref, uint64_t from,
                      uint64_t end)
{
    struct local_list part = { .unmapped = local->unmapped, .length = end - from };
    struct mem_ref to = *ref;
    uint64_t at = 0;

    for (unsigned i = 0; i < local->count; at += local->iov[i++].iov_len) {
        uint64_t first = from > at ? from - at : 0;
        uint64_t last = end - at < local->iov[i].iov_len ? end - at : local->iov[i].iov_len;

        if (at < end && first < last)
            part.iov[part.count++] =
                (struct iovec){ (char *)local->iov[i].iov_base + first, last - first };
    }
    to.addr += from;
    to.length = part.length;
    return copy_out(&part, &to, 1);
}

/* RDMA promises no order of the bytes. Once in a while the first ones are late enough for a program
 * that polls the last byte to notice. */
#define LATE_NS    10000
#define LATE_EVERY 32

static int write_tail_first(const struct local_list *local, const struct mem_ref *ref,
                            uint64_t from)
{
    static atomic_uint writes;
    int err = write_part(local, ref, from, local->length);

    if (!err && atomic_fetch_add(&writes, 1) % LATE_EVERY == 0) {
        for (uint64_t until = now_ns() + LATE_NS; now_ns() < until;)
            sched_yield();
    }
    return err ? err : write_part(local, ref, 0, from);
}

/* Programs write short messages into rings. The peer polls the next entry: fetching its cache line
 * takes longer than the rest of the next write. */
static void expect_next_write(struct hca_qp *qp, const struct send_wqe *w, const struct mem_ref *ref)
{
    int64_t ahead = w->remote_addr - qp->last_write;

    qp->last_write = w->remote_addr;
    if (ahead)
        peer_prefetch(ref, 2 * ahead);
}

static int run_write(struct hca_qp *qp, const struct send_wqe *w, struct shared_qp *peer,
                     uint32_t *byte_len)
{
    uint64_t tail;
    struct local_list local;
    struct mem_ref ref;
    int status;

    if (unlikely(!build_local(qp, w, false, &local)))
        return IBV_WC_LOC_PROT_ERR;
    if ((status = find_remote(peer, w, local.length, IBV_ACCESS_REMOTE_WRITE, &ref)))
        return status;
    *byte_len = local.length;
    if (!local.length)
        return IBV_WC_SUCCESS;
    if (local.length <= LIVE_SHORT_WRITE)
        expect_next_write(qp, w, &ref);
    tail = hca_tail_of(ref.addr, local.length);
    return status_of_copy(unlikely(tail) ? write_tail_first(&local, &ref, tail)
                                         : copy_out(&local, &ref, 1));
}

static int run_write_imm(struct hca_qp *qp, const struct send_wqe *w, struct shared_qp *peer,
                         uint32_t *byte_len)
{
    int status;

    if (qp->ibv.qp_type != IBV_QPT_UC && (status = deliver_obstacle(peer, w)))
        return status;
    if ((status = run_write(qp, w, peer, byte_len)))
        return status;
    struct delivery m = { .wqe = w,
                          .sender = qp,
                          .length = *byte_len,
                          .opcode = IBV_WC_RECV_RDMA_WITH_IMM,
                          .slid = load_relaxed(&qp->shared->lid),
                          .src_qp = qp->ibv.qp_num };
    return deliver_message(peer, &m);
}

static int run_read(struct hca_qp *qp, const struct send_wqe *w, struct shared_qp *peer,
                    uint32_t *byte_len)
{
    struct local_list local;
    struct mem_ref ref;
    int status;

    if (unlikely(!build_local(qp, w, true, &local)))
        return IBV_WC_LOC_PROT_ERR;
    if ((status = find_remote(peer, w, local.length, IBV_ACCESS_REMOTE_READ, &ref)))
        return status;
    *byte_len = local.length;
    return local.length ? status_of_copy(copy_in(&local, &ref)) : IBV_WC_SUCCESS;
}

/* With the lock held in both cases: some peers map the word, others access it through the
 * kernel. */
static int change_word(const struct mem_ref *ref, const struct send_wqe *w, uint64_t *before)
{
    _Atomic uint64_t *word = copy_mapped_word(ref);
    bool add = w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    uint64_t after;
    int err;

    if (word) {
        *before = w->compare_add;
        if (add)
            *before = atomic_fetch_add(word, w->compare_add);
        else
            atomic_compare_exchange_strong(word, before, w->swap);
        return 0;
    }
    if ((err = copy_word(ref, before, false)))
        return err;
    after = responder_atomic(add, *before, w->compare_add, add ? w->compare_add : w->swap);
    return after == *before ? 0 : copy_word(ref, &after, true);
}

/* Atomic against all adapters of the fabric (IBV_ATOMIC_HCA), not against the owner's processor. */
static int run_atomic(struct hca_qp *qp, const struct send_wqe *w, struct shared_qp *peer,
                      uint32_t *byte_len)
{
    uint64_t before;
    struct local_list local;
    struct mem_ref ref;
    int status, err;

    if (unlikely(!build_local(qp, w, true, &local) || local.length != sizeof(before)))
        return local.length != sizeof(before) ? IBV_WC_LOC_LEN_ERR : IBV_WC_LOC_PROT_ERR;
    if ((status = find_remote_word(peer, w, IBV_ACCESS_REMOTE_ATOMIC, &ref)))
        return status;
    shm_lock(responder_atomic_lock(&ref));
    err = change_word(&ref, w, &before);
    shm_unlock(responder_atomic_lock(&ref));
    if (err)
        return status_of_copy(err);
    *byte_len = sizeof(before);
    const char *from = (const char *)&before;
    for (unsigned i = 0; i < local.count; from += local.iov[i].iov_len, i++)
        memcpy(local.iov[i].iov_base, from, local.iov[i].iov_len);
    return IBV_WC_SUCCESS;
}

static int run_atomic_write(struct hca_qp *qp, const struct send_wqe *w, struct shared_qp *peer,
                            uint32_t *byte_len)
{
    struct local_list local;
    struct mem_ref ref;
    int status;

    if (!build_local(qp, w, false, &local))
        return IBV_WC_LOC_PROT_ERR;
    if ((status = find_remote_word(peer, w, IBV_ACCESS_REMOTE_WRITE, &ref)))
        return status;
    *byte_len = local.length; /* 8, as checked when it was posted */
    shm_lock(responder_atomic_lock(&ref));
    int err = copy_out(&local, &ref, 1);
    shm_unlock(responder_atomic_lock(&ref));
    return status_of_copy(err);
}

static int run_send(struct hca_qp *qp, const struct send_wqe *w, struct shared_qp *peer,
                    uint32_t *byte_len)
{
    struct local_list local;

    if (unlikely(!build_local(qp, w, false, &local)))
        return IBV_WC_LOC_PROT_ERR;
    struct delivery m = { .wqe = w,
                          .sender = qp,
                          .payload = &local,
                          .length = local.length,
                          .opcode = IBV_WC_RECV,
                          .slid = load_relaxed(&qp->shared->lid),
                          .src_qp = qp->ibv.qp_num };
    *byte_len = local.length;
    if (unlikely(w->opcode == IBV_WR_SEND_WITH_INV)) {
        int obstacle = deliver_obstacle(peer, w);
        if (obstacle)
            return obstacle;
        if (!responder_invalidate(peer, w->imm)) {
            qp_fail(peer, IBV_EVENT_QP_ACCESS_ERR);
            return IBV_WC_REM_ACCESS_ERR;
        }
    }
    return deliver_message(peer, &m);
}

/* ---- datagrams ---- */

/* Reasons for dropping a datagram. */
enum drop { DROP_NO_QP, DROP_QKEY, DROP_PORT_DOWN, DROP_NO_RECEIVE, DROP_REFUSED, DROPS };
static atomic_ullong dropped[DROPS];

static void drop(enum drop why)
{
    atomic_fetch_add_explicit(&dropped[why], 1, memory_order_relaxed);
}

static void send_datagram(const struct hca_qp *qp, const struct delivery *m, uint32_t qpn,
                          uint16_t dlid, bool multicast)
{
    struct shared_qp *peer = shared_qp_find(qpn);

    if (!peer || peer->type != IBV_QPT_UD || !responder_is_ready(peer) ||
        (!multicast && load_relaxed(&peer->lid) != dlid))
        return drop(DROP_NO_QP);
    if (load_relaxed(&peer->qkey) != m->wqe->remote_qkey)
        return drop(DROP_QKEY);
    if (addr_port_is_down(load_relaxed(&peer->lid)) ||
        addr_port_is_down(load_relaxed(&qp->shared->lid)))
        return drop(DROP_PORT_DOWN);
    count_datagram_received(peer, m->wqe, m->length);
    int status = deliver_message(peer, m);
    if (status != IBV_WC_SUCCESS)
        drop(status == WAIT_RNR ? DROP_NO_RECEIVE : DROP_REFUSED);
}

void wqe_report_drops(void)
{
    unsigned long long total = 0;

    for (int i = 0; i < DROPS; i++)
        total += dropped[i];
    if (total)
        log_write(LOG_LEVEL_INFO,
                  "datagrams dropped: %llu (%llu no such QP, %llu wrong Q_Key, %llu port down, "
                  "%llu no receive posted, %llu receive refused)",
                  total, dropped[DROP_NO_QP], dropped[DROP_QKEY], dropped[DROP_PORT_DOWN],
                  dropped[DROP_NO_RECEIVE], dropped[DROP_REFUSED]);
}

static unsigned group_members(const struct send_wqe *w, uint32_t *qpns, unsigned capacity)
{
    unsigned count = 0;

    shm_lock(&seg->mcast_lock);
    for (uint32_t i = 0; i < load_relaxed(&seg->mcast_high) && i < MCAST_ENTRIES; i++) {
        struct mcast_entry *e = &seg->mcast[i];
        bool match = w->has_grh ? !memcmp(e->gid, w->dgid.raw, sizeof(e->gid)) : e->lid == w->dlid;
        if (e->qpn && match && count < capacity)
            qpns[count++] = e->qpn;
    }
    shm_unlock(&seg->mcast_lock);
    return count;
}

static int run_datagram(struct hca_qp *qp, const struct send_wqe *w, uint32_t *byte_len)
{
    static const uint32_t max_datagram = 4096;
    struct local_list local;
    uint32_t members[256];

    if (unlikely(!build_local(qp, w, false, &local)))
        return IBV_WC_LOC_PROT_ERR;
    if (unlikely(local.length > max_datagram))
        return IBV_WC_LOC_LEN_ERR;
    struct delivery m = { .wqe = w,
                          .sender = qp,
                          .payload = &local,
                          .length = local.length,
                          .opcode = IBV_WC_RECV,
                          .datagram = true,
                          .slid = load_relaxed(&qp->shared->lid),
                          .src_qp = qp->ibv.qp_num };
    *byte_len = local.length;
    count_datagram_sent(qp, w, local.length);
    if (w->dlid < ADDR_MCAST_LID) {
        send_datagram(qp, &m, w->remote_qpn, w->dlid, false);
        return IBV_WC_SUCCESS;
    }
    unsigned count = group_members(w, members, ARRAY_SIZE(members));
    for (unsigned i = 0; i < count; i++)
        if (members[i] != qp->ibv.qp_num || qp->mcast_loopback)
            send_datagram(qp, &m, members[i], 0, true);
    return IBV_WC_SUCCESS;
}

/* ---- dispatch ---- */

typedef int (*operation)(struct hca_qp *qp, const struct send_wqe *w, struct shared_qp *peer,
                         uint32_t *byte_len);

static const operation operations[] = {
    [IBV_WR_RDMA_WRITE] = run_write,
    [IBV_WR_RDMA_WRITE_WITH_IMM] = run_write_imm,
    [IBV_WR_SEND] = run_send,
    [IBV_WR_SEND_WITH_IMM] = run_send,
    [IBV_WR_SEND_WITH_INV] = run_send,
    [IBV_WR_RDMA_READ] = run_read,
    [IBV_WR_ATOMIC_CMP_AND_SWP] = run_atomic,
    [IBV_WR_ATOMIC_FETCH_AND_ADD] = run_atomic,
    [IBV_WR_ATOMIC_WRITE] = run_atomic_write,
};

static int run_connected(struct hca_qp *qp, const struct send_wqe *w, uint32_t *byte_len)
{
    struct shared_qp *peer = wqe_find_peer(qp);
    int status = WAIT_RESPONSE;

    if (likely(peer))
        status = operations[w->opcode](qp, w, peer, byte_len);
    if (likely(status == IBV_WC_SUCCESS))
        count_message(qp, peer, w, *byte_len);
    if (qp->ibv.qp_type != IBV_QPT_UC || status == IBV_WC_SUCCESS ||
        status == IBV_WC_LOC_PROT_ERR || status == IBV_WC_LOC_LEN_ERR)
        return status;
    return IBV_WC_SUCCESS; /* unreliable: a message that the responder rejects is lost */
}

int wqe_execute(struct hca_qp *qp, const struct send_wqe *w, uint32_t *byte_len)
{
    int status;

    *byte_len = 0;
    if (unlikely(w->opcode == IBV_WR_BIND_MW))
        return mw_bind(qp, w);
    if (unlikely(w->opcode == IBV_WR_LOCAL_INV))
        return mw_invalidate(qp, w);
    epoch_enter();
    status = qp->ibv.qp_type == IBV_QPT_UD ? run_datagram(qp, w, byte_len)
                                           : run_connected(qp, w, byte_len);
    epoch_exit();
    return status;
}
