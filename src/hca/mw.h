/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HCA_MW_H
#define HCA_MW_H

/* Work requests on memory windows of the process itself, which send nothing. */

#include "hca/objects.h"

/* IBV_WR_BIND_MW and IBV_WR_LOCAL_INV; an enum ibv_wc_status. */
int mw_bind(struct hca_qp *qp, const struct send_wqe *w);
int mw_invalidate(struct hca_qp *qp, const struct send_wqe *w);

#endif
