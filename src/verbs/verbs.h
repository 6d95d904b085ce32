/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VERBS_VERBS_H
#define VERBS_VERBS_H

/* Shared by the files that export verbs. */

#include "hca/engine.h"
#include "hca/objects.h"
#include "hca/proc.h"
#include "hca/segment.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

/* Sets errno and returns NULL, for calls that return an object. */
static inline void *fail(int err)
{
    errno = err;
    return NULL;
}

/* A forked child that uses inherited objects joins the fabric itself. */
static inline int ensure_attached(void)
{
    return likely(proc_self >= 0) ? 0 : segment_attach();
}

/* Size of the device memory. */
static inline uint64_t dm_limit(void)
{
    uint64_t bytes = hca_engine->device_memory ? hca_engine->device_memory() : HCA_MAX_DM;

    return bytes < HCA_MAX_DM ? bytes : HCA_MAX_DM;
}

static inline struct hca_pd *real_pd(struct ibv_pd *pd)
{
    struct hca_pd *p = (struct hca_pd *)pd;

    return p->parent ? p->parent : p;
}

/* ---- functions for the ops tables of a context ---- */
struct ibv_mw *verbs_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int verbs_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int verbs_dealloc_mw(struct ibv_mw *mw);
struct ibv_dm *verbs_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int verbs_free_dm(struct ibv_dm *dm);
struct ibv_mr *verbs_alloc_null_mr(struct ibv_pd *pd);
struct ibv_mr *verbs_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
                               unsigned int access);
int verbs_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                    struct ibv_sge *sg_list, uint32_t num_sge);
struct ibv_td *verbs_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int verbs_dealloc_td(struct ibv_td *td);
struct ibv_pd *verbs_alloc_parent_domain(struct ibv_context *context,
                                         struct ibv_parent_domain_init_attr *attr);

int verbs_poll(struct hca_cq *cq, int entries, struct ibv_wc *wc, uint64_t *timestamps);
int verbs_poll_cq(struct ibv_cq *cq, int entries, struct ibv_wc *wc);
int verbs_poll_checked(struct hca_cq *cq, int entries, struct ibv_wc *wc, uint64_t *timestamps,
                       const char *call);
int verbs_poll_cq_checked(struct ibv_cq *cq, int entries, struct ibv_wc *wc);
int verbs_req_notify_cq(struct ibv_cq *cq, int solicited_only);
struct ibv_cq_ex *verbs_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
int verbs_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
void verbs_fill_cq_ex(struct hca_cq *cq, uint64_t wc_flags);

struct ibv_qp *verbs_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *verbs_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);
struct ibv_srq *verbs_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
int verbs_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);
struct ibv_xrcd *verbs_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
int verbs_close_xrcd(struct ibv_xrcd *xrcd);
int verbs_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
/* The same while a check is on. */
int verbs_post_send_checked(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int verbs_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int verbs_post_recv_checked(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int verbs_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int verbs_post_srq_recv_checked(struct ibv_srq *srq, struct ibv_recv_wr *wr,
                                struct ibv_recv_wr **bad_wr);
/* Posts the whole list or nothing. */
int verbs_post_send_all(struct hca_qp *qp, struct ibv_send_wr *wr, const void *caller);

int verbs_fill_qp_ex(struct hca_qp *qp, uint64_t send_ops);
void verbs_free_qp_ex(struct hca_qp *qp);

/* Fills the ops that are not supported: they fail with EOPNOTSUPP. */
void verbs_fill_unsupported(struct verbs_context *context);

/* Raises a context's asynchronous descriptor for peers that cannot raise it themselves. */
void verbs_watch_context(struct hca_context *c);
void verbs_unwatch_context(struct hca_context *c);
/* Adds a context to the table of contexts that get port events. */
void verbs_list_device(struct hca_context *c);
void verbs_unlist_device(struct hca_context *c);

/* The device is gone: all QPs of this process move to error, and IBV_EVENT_DEVICE_FATAL is raised. */
void verbs_lose_device(struct ibv_context *context);

/* Waits until the program has acknowledged the events of an object that it got. */
void verbs_await_acks(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed,
                      uint32_t taken);

#endif
