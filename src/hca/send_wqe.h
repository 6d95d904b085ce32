/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HCA_SEND_WQE_H
#define HCA_SEND_WQE_H

/* A WQE that outlives the call that posted it: its SGEs and inline data are copied behind it. */

#include "hca/objects.h"

/* The bytes of SGEs and inline data. */
size_t send_wqe_extra(const struct send_wqe *wqe);
/* `extra` has room for send_wqe_extra() bytes. */
void send_wqe_copy(struct send_wqe *to, const struct send_wqe *from, struct ibv_sge *extra);

#endif
