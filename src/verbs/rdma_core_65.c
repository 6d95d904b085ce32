/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that rdma-core added after version 44, up to 65; the system's headers may lack them.
 * Without these definitions, programs would reach the system's libibverbs with our contexts.
 */

#include "verbs/verbs.h"

#include "util/link.h"

#include <unistd.h>

struct ibv_dmah;
struct ibv_dmah_init_attr;
struct ibv_comp_cntr;
struct ibv_comp_cntr_caps;
struct ibv_comp_cntr_init_attr;
struct ibv_qp_attach_comp_cntr_attr;

#define UNSUPPORTED(name, ...)    \
    EXPORT int name(__VA_ARGS__); \
    EXPORT int name(__VA_ARGS__)  \
    {                             \
        return EOPNOTSUPP;        \
    }

#define UNSUPPORTED_OBJECT(type, name, ...) \
    EXPORT type *name(__VA_ARGS__);         \
    EXPORT type *name(__VA_ARGS__)          \
    {                                       \
        return fail(EOPNOTSUPP);            \
    }

/* ---- buffers ---- */

struct ibv_buf {
    struct ibv_pd *pd;
    char *addr;
    size_t size;
};

EXPORT void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf);
EXPORT void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf)
{
    struct ibv_buf *b = calloc(1, sizeof(*b));
    void *memory = NULL;
    int err = b ? posix_memalign(&memory, sysconf(_SC_PAGESIZE), size) : ENOMEM;

    if (err) {
        free(b);
        return fail(err);
    }
    *b = (struct ibv_buf){ .pd = pd, .addr = memory, .size = size };
    *buf = b;
    return b->addr;
}

EXPORT void ibv_free_buf(struct ibv_buf *buf);
EXPORT void ibv_free_buf(struct ibv_buf *buf)
{
    free(buf->addr);
    free(buf);
}

EXPORT int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf);
EXPORT int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf)
{
    errno = ENODATA; /* plain memory, not a dma-buf */
    return -1;
}

/* ---- registration ---- */

enum {
    REG_IOVA = 1 << 0,
    REG_ADDR = 1 << 1,
    REG_BUF = 1 << 5,
};

/* struct ibv_mr_init_attr under another name, because newer headers define it. */
struct mr_init_attr {
    size_t length;
    int access;
    uint64_t comp_mask;
    uint64_t iova;
    char *addr;
    int fd;
    uint64_t fd_offset;
    void *dmah;
    struct ibv_buf *buf;
};

static bool lies_within(const struct mr_init_attr *attr, const struct ibv_buf *buf)
{
    return attr->addr >= buf->addr && attr->length <= buf->size &&
           (size_t)(attr->addr - buf->addr) <= buf->size - attr->length;
}

EXPORT struct ibv_mr *verbs_reg_mr_ex(struct ibv_pd *pd,
                                      struct mr_init_attr *attr) __asm__("ibv_reg_mr_ex");
EXPORT struct ibv_mr *verbs_reg_mr_ex(struct ibv_pd *pd, struct mr_init_attr *attr)
{
    if (attr->comp_mask & ~(uint64_t)(REG_IOVA | REG_ADDR | REG_BUF))
        return fail(EOPNOTSUPP); /* dma-buf, DMA handle */
    if (!(attr->comp_mask & REG_ADDR) ||
        (attr->comp_mask & REG_BUF && (attr->buf->pd != pd || !lies_within(attr, attr->buf))))
        return fail(EINVAL);
    return ibv_reg_mr_iova2(pd, attr->addr, attr->length,
                            attr->comp_mask & REG_IOVA ? attr->iova : (uintptr_t)attr->addr,
                            attr->access);
}

EXPORT struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr,
                                     size_t length, int access);
EXPORT struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr,
                                     size_t length, int access)
{
    struct mr_init_attr attr = { .length = length,
                                 .access = access,
                                 .addr = addr,
                                 .buf = buf,
                                 .comp_mask = REG_ADDR | REG_BUF };

    return verbs_reg_mr_ex(pd, &attr);
}

/* ---- the port's speed ---- */

EXPORT int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num, uint64_t *speed);
EXPORT int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num, uint64_t *speed)
{
    struct ibv_port_attr attr;

    if (port_num > UINT8_MAX || ibv_query_port(context, port_num, &attr))
        return EINVAL;
    *speed = (uint64_t)link_lanes(attr.active_width) * link_speed(attr.active_speed)->lane;
    return 0;
}

/* ---- DMA handles, completion counters: not supported ---- */

UNSUPPORTED_OBJECT(struct ibv_dmah, ibv_alloc_dmah, struct ibv_context *context,
                   struct ibv_dmah_init_attr *attr)
UNSUPPORTED(ibv_dealloc_dmah, struct ibv_dmah *dmah)
UNSUPPORTED(_ibv_query_comp_cntr_caps, struct ibv_context *context, struct ibv_comp_cntr_caps *caps,
            size_t caps_size)
UNSUPPORTED_OBJECT(struct ibv_comp_cntr, ibv_create_comp_cntr, struct ibv_context *context,
                   struct ibv_comp_cntr_init_attr *attr)
UNSUPPORTED(ibv_destroy_comp_cntr, struct ibv_comp_cntr *counter)
UNSUPPORTED(ibv_set_comp_cntr, struct ibv_comp_cntr *counter, uint64_t value)
UNSUPPORTED(ibv_set_err_comp_cntr, struct ibv_comp_cntr *counter, uint64_t value)
UNSUPPORTED(ibv_inc_comp_cntr, struct ibv_comp_cntr *counter, uint64_t amount)
UNSUPPORTED(ibv_inc_err_comp_cntr, struct ibv_comp_cntr *counter, uint64_t amount)
UNSUPPORTED(ibv_read_comp_cntr, struct ibv_comp_cntr *counter, uint64_t *value)
UNSUPPORTED(ibv_read_err_comp_cntr, struct ibv_comp_cntr *counter, uint64_t *value)
UNSUPPORTED(ibv_qp_attach_comp_cntr, struct ibv_qp *qp, struct ibv_comp_cntr *counter,
            struct ibv_qp_attach_comp_cntr_attr *attr)

EXPORT int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm);
EXPORT int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm)
{
    errno = EOPNOTSUPP;
    return -1;
}
