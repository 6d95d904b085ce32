/* SPDX-License-Identifier: BSD-2-Clause */
/* The ibv_wr_* calls: collect work requests from start to complete, then post them together. */

#include "verbs/verbs.h"

#include "hca/qp.h"

#include <string.h>

#define SUPPORTED_OPS                                                                              \
    (IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |        \
     IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
     IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |     \
     IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_ATOMIC_WRITE)

struct built {
    struct ibv_send_wr wr;
    struct ibv_sge *sge; /* max_send_sge entries, or one for inline data */
    uint8_t *inline_data;
    uint64_t atomic_word;
};

/* The mutex is held from ibv_wr_start() to ibv_wr_complete(), as the API requires. */
struct wr_builder {
    pthread_mutex_t mutex;
    struct built *built;
    struct ibv_sge *sges;
    uint8_t *inline_data;
    uint32_t count, capacity;
    int err;
};

static struct wr_builder *builder_of(struct ibv_qp_ex *ex)
{
    return ((struct hca_qp *)ex)->builder;
}

static struct built *last(struct ibv_qp_ex *ex)
{
    struct wr_builder *b = builder_of(ex);

    return b->count ? &b->built[b->count - 1] : NULL;
}

static struct built *begin(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode)
{
    struct hca_qp *qp = (struct hca_qp *)ex;
    struct wr_builder *b = qp->builder;
    static _Thread_local struct built sink; /* discards requests after an error */

    if (b->count == b->capacity) {
        b->err = b->err ? b->err : ENOMEM;
        memset(&sink, 0, sizeof(sink));
        return &sink;
    }
    struct built *w = &b->built[b->count];
    uint32_t max_sge = qp->cap.max_send_sge ? qp->cap.max_send_sge : 1;
    memset(w, 0, sizeof(*w));
    w->sge = &b->sges[b->count * max_sge];
    w->inline_data = &b->inline_data[(uint64_t)b->count * (qp->cap.max_inline_data + 8)];
    w->wr.wr_id = ex->wr_id;
    w->wr.opcode = opcode;
    w->wr.send_flags = ex->wr_flags;
    w->wr.sg_list = w->sge;
    b->count++;
    return w;
}

static void set_error(struct ibv_qp_ex *ex, int err)
{
    if (!builder_of(ex)->err)
        builder_of(ex)->err = err;
}

/* ---- operations ---- */

static void rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t addr,
                 __be32 imm)
{
    struct built *w = begin(ex, opcode);

    w->wr.wr.rdma.rkey = rkey;
    w->wr.wr.rdma.remote_addr = addr;
    w->wr.imm_data = imm;
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
    rdma(ex, IBV_WR_RDMA_WRITE, rkey, addr, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, __be32 imm)
{
    rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr, imm);
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
    rdma(ex, IBV_WR_RDMA_READ, rkey, addr, 0);
}

static void atomic(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t addr,
                   uint64_t compare_add, uint64_t swap)
{
    struct built *w = begin(ex, opcode);

    w->wr.wr.atomic.rkey = rkey;
    w->wr.wr.atomic.remote_addr = addr;
    w->wr.wr.atomic.compare_add = compare_add;
    w->wr.wr.atomic.swap = swap;
}

static void wr_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t compare,
                       uint64_t swap)
{
    atomic(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, addr, compare, swap);
}

static void wr_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t add)
{
    atomic(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, addr, add, 0);
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, const void *word)
{
    struct built *w = begin(ex, IBV_WR_ATOMIC_WRITE);

    w->wr.wr.rdma.rkey = rkey;
    w->wr.wr.rdma.remote_addr = addr;
    if (!w->sge)
        return;
    memcpy(w->inline_data, word, 8);
    w->sge[0] = (struct ibv_sge){ .addr = (uintptr_t)w->inline_data, .length = 8 };
    w->wr.num_sge = 1;
    w->wr.send_flags |= IBV_SEND_INLINE;
}

static void wr_send(struct ibv_qp_ex *ex)
{
    begin(ex, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
    begin(ex, IBV_WR_SEND_WITH_IMM)->wr.imm_data = imm;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
    begin(ex, IBV_WR_SEND_WITH_INV)->wr.invalidate_rkey = rkey;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
    begin(ex, IBV_WR_LOCAL_INV)->wr.invalidate_rkey = rkey;
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
                       const struct ibv_mw_bind_info *info)
{
    struct built *w = begin(ex, IBV_WR_BIND_MW);

    w->wr.bind_mw.mw = mw;
    w->wr.bind_mw.rkey = rkey;
    w->wr.bind_mw.bind_info = *info;
}

/* ---- setters of the current request ---- */

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
    struct built *w = last(ex);

    if (!w)
        return;
    w->wr.wr.ud.ah = ah;
    w->wr.wr.ud.remote_qpn = qpn;
    w->wr.wr.ud.remote_qkey = qkey;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t srqn)
{
    struct built *w = last(ex);

    if (w)
        w->wr.qp_type.xrc.remote_srqn = srqn;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge, const struct ibv_sge *list)
{
    struct built *w = last(ex);

    if (!w)
        return;
    if (num_sge > ((struct hca_qp *)ex)->cap.max_send_sge) {
        set_error(ex, EINVAL);
        return;
    }
    memcpy(w->sge, list, num_sge * sizeof(*list));
    w->wr.num_sge = num_sge;
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
    struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

    wr_set_sge_list(ex, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf,
                                    const struct ibv_data_buf *list)
{
    struct built *w = last(ex);
    size_t total = 0;

    if (!w)
        return;
    for (size_t i = 0; i < num_buf; i++) {
        if (list[i].length > ((struct hca_qp *)ex)->cap.max_inline_data - total) {
            set_error(ex, ENOMEM);
            return;
        }
        memcpy(w->inline_data + total, list[i].addr, list[i].length);
        total += list[i].length;
    }
    w->sge[0] = (struct ibv_sge){ .addr = (uintptr_t)w->inline_data, .length = total };
    w->wr.num_sge = total ? 1 : 0;
    w->wr.send_flags |= IBV_SEND_INLINE;
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
    struct ibv_data_buf buf = { addr, length };

    wr_set_inline_data_list(ex, 1, &buf);
}

/* ---- start, complete, abort ---- */

static void wr_start(struct ibv_qp_ex *ex)
{
    struct wr_builder *b = builder_of(ex);

    pthread_mutex_lock(&b->mutex);
    b->count = 0;
    b->err = 0;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
    struct wr_builder *b = builder_of(ex);
    int err = b->err;

    for (uint32_t i = 0; i + 1 < b->count; i++)
        b->built[i].wr.next = &b->built[i + 1].wr;
    if (!err && b->count)
        err = verbs_post_send_all((struct hca_qp *)ex, &b->built[0].wr,
                                  __builtin_return_address(0));
    pthread_mutex_unlock(&b->mutex);
    return err;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
    pthread_mutex_unlock(&builder_of(ex)->mutex);
}

/* ---- setup ---- */

static void fill_calls(struct ibv_qp_ex *ex)
{
    ex->wr_atomic_cmp_swp = wr_cmp_swp;
    ex->wr_atomic_fetch_add = wr_fetch_add;
    ex->wr_atomic_write = wr_atomic_write;
    ex->wr_bind_mw = wr_bind_mw;
    ex->wr_local_inv = wr_local_inv;
    ex->wr_rdma_read = wr_rdma_read;
    ex->wr_rdma_write = wr_rdma_write;
    ex->wr_rdma_write_imm = wr_rdma_write_imm;
    ex->wr_send = wr_send;
    ex->wr_send_imm = wr_send_imm;
    ex->wr_send_inv = wr_send_inv;
    ex->wr_set_ud_addr = wr_set_ud_addr;
    ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
    ex->wr_set_inline_data = wr_set_inline_data;
    ex->wr_set_inline_data_list = wr_set_inline_data_list;
    ex->wr_set_sge = wr_set_sge;
    ex->wr_set_sge_list = wr_set_sge_list;
    ex->wr_start = wr_start;
    ex->wr_complete = wr_complete;
    ex->wr_abort = wr_abort;
}

int verbs_fill_qp_ex(struct hca_qp *qp, uint64_t send_ops)
{
    uint64_t capacity = qp->cap.max_send_wr ? qp->cap.max_send_wr : 1;
    uint64_t sges = qp->cap.max_send_sge ? qp->cap.max_send_sge : 1;
    struct wr_builder *b;

    if (send_ops & ~(uint64_t)SUPPORTED_OPS)
        return EOPNOTSUPP;
    b = calloc(1, sizeof(*b));
    if (!b)
        return ENOMEM;
    qp->builder = b;
    b->capacity = capacity;
    b->built = calloc(capacity, sizeof(*b->built));
    b->sges = calloc(capacity * sges, sizeof(*b->sges));
    b->inline_data = malloc(capacity * (qp->cap.max_inline_data + 8));
    if (!b->built || !b->sges || !b->inline_data) {
        verbs_free_qp_ex(qp);
        return ENOMEM;
    }
    pthread_mutex_init(&b->mutex, NULL);
    fill_calls(&qp->ex);
    return 0;
}

void verbs_free_qp_ex(struct hca_qp *qp)
{
    if (!qp->builder)
        return;
    free(qp->builder->built);
    free(qp->builder->sges);
    free(qp->builder->inline_data);
    free(qp->builder);
    qp->builder = NULL;
}
