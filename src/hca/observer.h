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
    /* A receive of QP `qpn` has completed with an error; called by the poll that found it. */
    void (*receive_failed)(uint32_t qpn, uint64_t wr_id, enum ibv_wc_status status);
    /* A QP of this process is in error and about to be flushed. */
    void (*qp_failed)(const struct hca_qp *qp);
    bool strict_events; /* arming a CQ raises no event for completions that it has already */
    bool keeps_objects; /* destroyed QPs and CQs stay in memory, to recognise their use */
};

extern const struct hca_observer *hca_observer; /* NULL: nobody */

static inline void hca_free_object(void *object)
{
    if (likely(!hca_observer || !hca_observer->keeps_objects))
        free(object);
}

#endif
