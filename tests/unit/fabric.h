/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNIT_FABRIC_H
#define UNIT_FABRIC_H

/* A fabric of the test's own, and a device on it. */

#include <infiniband/verbs.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

struct ibv_context *fabric_open(void);

/* The first process of a fabric has number 0, as has everything that was never set. Call this before
 * fabric_open() to have another number, and the second at the end. */
void fabric_let_another_be_first(void);
void fabric_end_the_first(void);

/* Two RC queue pairs of this process, connected to each other and ready to send. */
void fabric_connect(struct ibv_qp *a, struct ibv_qp *b);
struct ibv_qp *fabric_rc_qp(struct ibv_pd *pd, struct ibv_cq *cq, unsigned depth);

/* A UD queue pair that is ready to send. */
struct ibv_qp *fabric_ud_qp(struct ibv_pd *pd, struct ibv_cq *send_cq, struct ibv_cq *recv_cq,
                            uint32_t qkey);

/* What is written to standard error between these calls; valid until the next. */
void fabric_log_begin(void);
const char *fabric_log_end(void);

#endif
