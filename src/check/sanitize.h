/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of the verbs API that an adapter does not notice when they are broken. */
#ifndef CHECK_SANITIZE_H
#define CHECK_SANITIZE_H

#include "check/posts.h"

/* The memory of receives is watched as well. Programs that work on every adapter may break these
 * rules: their peers do not send before they have done so. */
extern bool sanitize_strict;

enum sanitize_rule {
    RULE_SEND_BUFFER,
    RULE_RECEIVE_BUFFER,
    RULE_REGION_IN_USE,
    RULE_LEAK,
    RULE_NEVER_REAPED,
    RULE_OVERRUN,
    RULE_FORK,
    RULE_THREADS,
    RULE_COUNT,
};

/* A program that breaks a rule in a loop is told a few times. */
bool sanitize_is_enough(enum sanitize_rule rule);

/* The program did not poll completions in time. */
void sanitize_overrun(const struct hca_cq *cq);

/* The program unmaps this memory. */
void sanitize_unmaps(const void *addr, size_t length);

/* This WQE was recorded. The send queue's lock is held. */
void sanitize_post(const struct hca_qp *qp, const struct send_wqe *wqe, struct post *post);

#endif
