/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HCA_SRQ_H
#define HCA_SRQ_H

/* Shared receive queues. */

#include "hca/objects.h"

struct hca_srq *srq_create(struct hca_context *context, struct hca_pd *pd, struct hca_cq *cq,
                           struct hca_xrcd *xrcd, const struct ibv_srq_attr *attr, bool is_xrc);
void srq_destroy(struct hca_srq *srq);
void srq_set_limit(struct hca_srq *srq, uint32_t limit);

/* An SRQ of this process, or NULL. */
struct hca_srq *srq_by_number(uint32_t srqn);

extern struct hca_srq *srq_list; /* guarded by qp_list_mutex */

/* These are called by their counterparts in qp.c, with qp_list_mutex held. */
void srq_recheck_receives(void);
void srq_recover_receives(void);
void srq_forget(void);

#endif
