/* SPDX-License-Identifier: BSD-2-Clause */
#include "check/posts.h"

#include "check/check.h"
#include "check/sanitize.h"
#include "hca/engine.h"

#include <stdlib.h>

struct checked_qp {
    uint32_t mask;
    uint32_t next; /* index of the first work request that may complete next */
    struct post posts[];
};

struct post *post_find(const struct hca_qp *qp, uint32_t index)
{
    struct checked_qp *checked = qp->checked;
    struct post *post = checked ? &checked->posts[index & checked->mask] : NULL;

    return post && post->used && post->index == index ? post : NULL;
}

struct post *post_completed(struct hca_qp *qp, uint64_t wr_id, bool failed)
{
    struct checked_qp *checked = qp->checked;

    if (!checked)
        return NULL;
    if (qp->sq_posted - checked->next > checked->mask + 1)
        checked->next = qp->sq_posted - checked->mask - 1;
    while (checked->next != qp->sq_posted) {
        struct post *post = post_find(qp, checked->next++);

        if (post && post->wr_id == wr_id && (post->is_signaled || failed))
            return post;
    }
    return NULL;
}

static struct checked_qp *make(const struct hca_qp *qp)
{
    uint32_t size = round_up_pow2(qp->cap.max_send_wr ? qp->cap.max_send_wr : 1);
    struct checked_qp *checked = calloc(1, sizeof(*checked) + size * sizeof(struct post));

    if (checked)
        checked->mask = size - 1;
    return checked;
}

/* Live, a whole stack trace would cost several times what a short message does: the caller must
 * do. */
void post_take_stack(struct stacktrace *trace)
{
    if (hca_engine->charge) {
        stacktrace_take(trace);
        return;
    }
    trace->count = 1;
    trace->frames[0] = (void *)check_caller;
}

void check_posts(struct hca_qp *qp, const struct send_wqe *wqe, uint8_t status)
{
    struct checked_qp *checked = qp->checked;
    struct post *post;

    if (!checked && !(checked = qp->checked = make(qp)))
        return;
    post = &checked->posts[wqe->sq_index & checked->mask];
    post->used = true;
    post->index = wqe->sq_index;
    post->wr_id = wqe->wr_id;
    post->opcode = wqe->opcode;
    post->is_inline = wqe->flags & IBV_SEND_INLINE;
    post->is_signaled = wqe->flags & IBV_SEND_SIGNALED;
    post->is_fenced = wqe->flags & IBV_SEND_FENCE;
    post->inject_status = status;
    post->remote_addr = wqe->remote_addr;
    post->rkey = wqe->rkey;
    post->num_sge = 0;
    post->length = 0;
    for (uint32_t i = 0; i < wqe->num_sge; i++) {
        if (post->num_sge < POST_SGES)
            post->sge[post->num_sge++] = wqe->sge[i];
        post->length += wqe->sge[i].length;
    }
    post_take_stack(&post->posted);
    if (check_sanitizes)
        sanitize_post(qp, wqe, post);
}
