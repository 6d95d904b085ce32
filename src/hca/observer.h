/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HCA_OBSERVER_H
#define HCA_OBSERVER_H

/* What the checks want to know of the adapter. Only paths that are rare anyway look at it: failures,
 * and completions of work requests that were posted while an observer was set. */

#include "hca/objects.h"

#include <stdlib.h>

struct hca_observer {
    /* A send is about to complete; returns the status that it completes with. */
    enum ibv_wc_status (*send_completes)(struct hca_qp *qp, const struct send_wqe *wqe,
                                         enum ibv_wc_status status);
    /* A receive, whose WQE is in this slot, is about to become visible to senders. False: there is no
     * need to call receive_completes() for a short message. */
    bool (*receive_posted)(struct hca_rq *rq, uint32_t slot, uint32_t pd);
    /* A poll has found the completion of a receive. `placed` bytes of the message are in its
     * memory; the others follow after this call. */
    void (*receive_completes)(struct hca_rq *rq, uint32_t slot, enum ibv_wc_status status,
                              uint32_t placed);
    /* The same poll is about to report an error, for a message to QP `qpn`. */
    void (*receive_failed)(const struct hca_rq *rq, uint32_t slot, uint32_t qpn,
                           enum ibv_wc_status status);
    /* The posted receives are forgotten; for good: so is the queue. */
    void (*receives_dropped)(struct hca_rq *rq, bool for_good);
    /* A QP of this process is in error and about to be flushed. */
    void (*qp_failed)(const struct hca_qp *qp);
    bool strict_events; /* arming a CQ raises no event for completions that it has already */
    bool tail_first;    /* the last bytes of an RDMA write become visible before the others */
    /* Takes the memory of a destroyed object, to recognise its use; NULL: it is freed at once. */
    void (*keep_object)(void *memory);
    /* The program accesses memory that it cannot: by the instruction at `pc`, or NULL: by a system
     * call. Returns whether it can now. NULL: no memory is protected. */
    bool (*memory_touched)(const void *address, size_t length, const void *pc);
    /* The program unmaps memory, or has just moved it away; NULL: nobody asks. */
    void (*memory_unmaps)(const void *address, size_t length);
    /* A CQ has no room for the completion of a send. */
    void (*cq_overrun)(const struct hca_cq *cq);
};

extern const struct hca_observer *hca_observer; /* NULL: nobody */
extern bool hca_faults_seen; /* memory_touched() is called before the program sees a fault */

/* Where the bytes begin that become visible first, of a write to this address; 0: all at once. The
 * split is between cache lines: programs rely on those being written at once. */
static inline uint64_t hca_tail_of(uint64_t address, uint64_t length)
{
    uint64_t from;

    if (likely(!hca_observer || !hca_observer->tail_first))
        return 0;
    from = round_up(address + length / 2, CACHE_LINE) - address;
    return from < length ? from : 0;
}

static inline void hca_free_object(void *object)
{
    if (unlikely(hca_observer && hca_observer->keep_object))
        hca_observer->keep_object(object);
    else
        free(object);
}

#endif
