/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the verbs call the checks. Each call costs one predictable branch while no check is on. */
#ifndef CHECK_CHECK_H
#define CHECK_CHECK_H

#include "check/inject.h"
#include "hca/engine.h"
#include "hca/objects.h"

extern bool check_on; /* any check is */
extern bool check_explains;
extern bool check_injects;
extern bool check_sanitizes;

enum check_kind { CHECK_PD, CHECK_MR, CHECK_CQ, CHECK_QP, CHECK_SRQ, CHECK_CHANNEL, CHECK_TD, CHECK_KINDS };

void check_object_made(enum check_kind kind, const void *object, uint32_t number);
void check_object_gone(enum check_kind kind, const void *object);

/* The number is a QP number or a key, else 0. Returns the object, which may be NULL. */
static inline void *check_made(enum check_kind kind, void *object, uint32_t number)
{
    if (unlikely(check_on) && object)
        check_object_made(kind, object, number);
    return object;
}

/* Call before the object is freed. */
static inline void check_gone(enum check_kind kind, const void *object)
{
    if (unlikely(check_on))
        check_object_gone(kind, object);
}

/* The rules that --sanitize watches (sanitize.c). Each does nothing unless check_sanitizes. */
/* The program has polled this completion. What it must not read of a failed one is made useless. */
void check_polled(struct ibv_wc *wc);
/* A post has failed because the send queue is full. */
void check_queue_full(struct hca_qp *qp);
/* The program registers this memory. */
void check_pins(const void *addr, size_t length);
/* The program deregisters a region, or closes a device. */
void check_deregisters(const struct ibv_mr *mr);
void check_closes(struct ibv_context *context);
/* The program passes this object to a call; ends the program if the object was destroyed. */
void check_uses(enum check_kind kind, const void *object, const char *call);
/* The same of a call that destroys the object, which a child may do after fork(). */
void check_destroys(enum check_kind kind, const void *object, const char *call);
/* A thread is in a call on this object, which one thread at a time may use. */
void check_enters(enum check_kind kind, const void *object, const char *call);
void check_leaves(enum check_kind kind, const void *object);

/* The errno with which this call has to fail, 0: it may succeed. */
static inline int check_call(enum plan_verb verb)
{
    return unlikely(check_injects) ? inject_errno(verb) : 0;
}

/* What the program has registered changes by this much. Returns the errno of a call that has to
 * fail. */
static inline int check_registers(int regions, int64_t bytes)
{
    return unlikely(check_injects) ? inject_register(regions, bytes) : 0;
}

/* Whether the connection manager has to meet this fault now. */
static inline bool check_cm(enum plan_fault fault)
{
    return unlikely(check_injects) && inject_cm(fault);
}

/* Whether every work request is recorded: to watch it, to change its outcome, or to keep the whole
 * stack, which in virtual time delays nobody. Otherwise a failed WQE alone has to explain it. */
static inline bool check_records(void)
{
    return check_injects || check_sanitizes || (check_explains && hca_engine->charge);
}

/* Where the program called the verb that posts. */
extern __thread const void *check_caller;

/* This WQE is about to be posted; the send queue's lock is held. If the WQE succeeds, it completes
 * with `status` instead, unless that is 0. */
void check_posts(struct hca_qp *qp, const struct send_wqe *wqe, uint8_t status);

/* Tells the user why a call fails, if that is wanted. Returns `err`. */
int check_refuse(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define check_because(err, ...) (unlikely(check_explains) ? check_refuse(err, __VA_ARGS__) : (err))

/* Why ibv_modify_qp() refused these attributes of a QP that is in state `from`. */
void check_explain_modify(const struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask,
                          enum ibv_qp_state from, int err);
/* Why a work request was not accepted. */
void check_explain_post(const struct hca_qp *qp, const struct ibv_send_wr *wr, int err);
void check_explain_post_receive(const struct hca_rq *rq, const struct ibv_recv_wr *wr,
                                bool in_reset, int err);

#endif
