/* SPDX-License-Identifier: BSD-2-Clause */
/* What a QP has posted to its send queue, and where in the program. */
#ifndef CHECK_POSTS_H
#define CHECK_POSTS_H

#include "check/stacktrace.h"
#include "hca/objects.h"

#define POST_SGES 4

struct post {
    bool used;
    uint32_t index; /* of the send queue */
    uint64_t wr_id;
    uint64_t length;
    uint64_t remote_addr; /* this and the key: of RDMA operations and atomics */
    uint32_t rkey;
    uint32_t num_sge;
    uint8_t opcode;
    bool is_inline, is_signaled, is_fenced;
    bool is_summed;
    uint8_t inject_status; /* to complete with, if it succeeds; 0: none */
    uint64_t sum; /* of the bytes it sends */
    struct ibv_sge sge[POST_SGES];
    struct stacktrace posted;
};

/* Where the program called ibv_post_send(), ibv_post_recv() or their kin. */
void post_take_stack(struct stacktrace *trace);

/* The record of this work request, NULL: none. The send queue's lock is held. */
struct post *post_find(const struct hca_qp *qp, uint32_t index);
/* The record of the next work request with this wr_id that completes: signalled, or with an error.
 * Completions of a QP come in order. The lock is held; NULL: there is no record. */
struct post *post_completed(struct hca_qp *qp, uint64_t wr_id, bool failed);

#endif
