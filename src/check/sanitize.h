/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of the verbs API that an adapter does not notice when they are broken. */
#ifndef CHECK_SANITIZE_H
#define CHECK_SANITIZE_H

#include "check/posts.h"

/* A work request was recorded. The send queue's lock is held. */
void sanitize_post(const struct hca_qp *qp, struct post *post);

#endif
