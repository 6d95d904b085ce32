/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HCA_QP_H
#define HCA_QP_H

/* Queue pairs: their numbers, states, errors and flushing. */

#include "hca/objects.h"

#include <pthread.h>

/* 0 if the transition allows the attributes in `mask` and no required one is missing, else
 * EINVAL. */
int qp_check_transition(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
                        int mask);

/* The attributes that a transition requires and allows. False: there is no such transition. */
bool qp_transition(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
                   int *required, int *allowed);

struct hca_qp *qp_create(struct hca_context *context, struct hca_pd *pd,
                         const struct ibv_qp_init_attr *init, struct hca_xrcd *xrcd);
int qp_modify(struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask);
/* Makes the QP unfindable for peers, before qp_destroy(). */
void qp_set_unreachable(struct hca_qp *qp);
void qp_destroy(struct hca_qp *qp);
enum ibv_qp_state qp_state(const struct hca_qp *qp);

/* A QP of this process, or NULL. */
struct hca_qp *qp_by_number(uint32_t qpn);

/* Moves a QP of any process to the error state; its owner flushes it later. */
void qp_set_error(struct shared_qp *qp);
/* The same, and raises an asynchronous event. */
void qp_fail(struct shared_qp *qp, enum ibv_event_type event);

/* Writes the completion of a send that was signalled or has failed. */
void qp_complete_send(struct hca_qp *qp, const struct send_wqe *wqe, enum ibv_wc_status status,
                      uint32_t byte_len);

/* Log at level info why a request or a QP failed; successes and flushes are not logged. */
void qp_log_send(const struct hca_qp *qp, const struct send_wqe *wqe, enum ibv_wc_status status);
void qp_log_receive(uint32_t qpn, uint64_t wr_id, enum ibv_wc_status status);
void qp_log_responder(const struct hca_qp *qp);
const char *qp_state_name(enum ibv_qp_state state);
const char *qp_opcode_name(uint8_t opcode);
/* The usual cause of a status. */
const char *qp_status_cause(enum ibv_wc_status status);
/* Why the peer of a connected QP does not respond, in words. Call inside an epoch. */
void qp_explain_silence(const struct hca_qp *qp, char *text, size_t size);

/* True if a peer has changed an object of ours, or a process has been reaped, since the last
 * qp_handle_errors(). */
bool qp_needs_attention(void);
void qp_handle_errors(void);
/* Moves QPs to error if another process has overwritten what this one published of them: peers
 * cannot reach them, and the program would wait for ever. Looks once in a second at most. */
void qp_look_for_damage(void);

/* Call after a receive was posted to a QP in error, with the receive queue's lock held. */
void qp_flush_late_receive(struct hca_qp *qp);

/* Call after a region was re-registered: posted receives may have become invalid. */
void qp_recheck_receives(void);

void qp_make_grh(struct ibv_grh *grh, uint16_t slid, uint32_t length, const union ibv_gid *dgid);

extern pthread_mutex_t qp_list_mutex; /* guards qp_list and srq_list */
extern struct hca_qp *qp_list;

/* In a forked child: drop all QPs, SRQs and CQs, which belong to the parent. */
void qp_forget(void);

#endif
