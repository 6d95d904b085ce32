/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/idle.h"

#include "hca/engine.h"
#include "hca/qp.h"
#include "hca/segment.h"
#include "util/log.h"

#include <stdlib.h>

static atomic_uint ended_idle; /* queue pairs of this process */

static bool is_connected_type(const struct hca_qp *qp)
{
    return qp->ibv.qp_type != IBV_QPT_UD;
}

static bool has_receives(const struct hca_qp *qp)
{
    const struct hca_rq *rq = qp->init.srq ? &((const struct hca_srq *)qp->init.srq)->rq : &qp->rq;

    return rq->shared && load_relaxed(&rq->shared->posted);
}

/* Ready to send, but sent nothing. Programs that only test connection setup post no receives. */
static bool stayed_idle(const struct hca_qp *qp)
{
    return is_connected_type(qp) && qp->was_ready && !qp->sq_posted && has_receives(qp);
}

/* In any process: the target of RDMA operations sends nothing itself. */
void idle_first_send(const struct hca_qp *qp)
{
    if (is_connected_type(qp))
        store_relaxed(&seg->connected_sends, 1);
}

void idle_note_end(const struct hca_qp *qp)
{
    if (stayed_idle(qp))
        atomic_fetch_add(&ended_idle, 1);
}

static unsigned count_idle(void)
{
    unsigned count = atomic_load(&ended_idle);

    pthread_mutex_lock(&qp_list_mutex);
    for (const struct hca_qp *qp = qp_list; qp; qp = qp->next)
        count += stayed_idle(qp);
    pthread_mutex_unlock(&qp_list_mutex);
    return count;
}

void idle_warn(void)
{
    const char *wanted = getenv("VERBENA_WARN_IDLE");
    unsigned count;

    if (hca_is_ethernet()) /* the peers that send may be on other hosts */
        return;
    if (!wanted || !*wanted || load_relaxed(&seg->connected_sends) || !(count = count_idle()) ||
        atomic_exchange(&seg->idle_told, 1))
        return;
    log_warn("the program connected queue pairs (%u in this process) and sent nothing over them: "
             "its data went another way, probably through shared memory. With UCX, UCX_TLS=rc_v,"
             "self restricts it to the adapter",
             count);
}
