/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HCA_RESPONDER_H
#define HCA_RESPONDER_H

/* What a responder checks, and the results of its operations, whatever engine carries the message.
 * Each engine translates the results into its own status. Call all of these inside an epoch. */

#include "hca/mr.h"
#include "hca/rq.h"

enum responder_status {
    RESPONDER_OK,
    RESPONDER_NOT_ENABLED,  /* the QP's access flags do not allow the operation */
    RESPONDER_MISALIGNED,   /* an atomic whose address is not a multiple of 8 */
    RESPONDER_ACCESS_ERROR, /* wrong key, PD, range or permission */
};

/* Whether the QP is in a state in which it receives. */
static inline bool responder_is_ready(const struct shared_qp *qp)
{
    uint32_t state = load_acquire(&qp->state);

    return state >= IBV_QPS_RTR && state <= IBV_QPS_SQE && likely(qp->proc < MAX_PROCS);
}

/* Finds the memory that a remote key and address name, for a message to `qp`. `srqn` is the SRQ
 * that an XRC message names. False: the key does not allow this access. */
bool responder_translate(const struct shared_qp *qp, uint32_t srqn, uint32_t rkey, uint64_t addr,
                         uint64_t length, unsigned access, struct mem_ref *ref);

/* Checks the QP's access flags, then the key. With length 0 the key does not matter, and `ref` is
 * left alone. */
enum responder_status responder_check(struct shared_qp *qp, uint32_t srqn, uint32_t rkey,
                                      uint64_t addr, uint64_t length, unsigned access,
                                      struct mem_ref *ref);
/* The same for 8 bytes that are read or written as one. */
enum responder_status responder_check_atomic(struct shared_qp *qp, uint32_t srqn, uint32_t rkey,
                                             uint64_t addr, unsigned access, struct mem_ref *ref);

/* The value that an atomic stores. `operand` is what fetch-and-add adds, or compare-and-swap
 * stores. */
static inline uint64_t responder_atomic(bool add, uint64_t before, uint64_t compare,
                                        uint64_t operand)
{
    if (add)
        return before + operand;
    return before == compare ? operand : before;
}

/* The lock that all adapters of the fabric hold while they change this word. */
static inline struct shm_lock *responder_atomic_lock(const struct mem_ref *word)
{
    return &seg->atomic_locks[(word->addr >> 3) * 0x9e3779b97f4a7c15ull >> 56];
}

/* Send with invalidate: the key must be a type 2 window that is bound to this QP. */
bool responder_invalidate(const struct shared_qp *qp, uint32_t rkey);

/* The number of the SRQ that serves a message, 0: the QP's own receive queue does. Only an XRC
 * message names one. */
static inline uint32_t responder_srqn(const struct shared_qp *qp, uint32_t named_srqn)
{
    return qp->type == IBV_QPT_XRC_RECV ? named_srqn : qp->srqn;
}

/* Opens the receive queue of SRQ `srqn`, or with 0 that of the QP; then `srq` is NULL. */
static inline bool responder_open_rq(const struct shared_qp *qp, uint32_t srqn,
                                     struct shared_srq **srq, struct rq_view *view)
{
    *srq = srqn ? shared_srq_find(srqn) : NULL;
    if (!srqn)
        return rq_open(qp->rq, view);
    return *srq && rq_open((*srq)->rq, view);
}

#endif
