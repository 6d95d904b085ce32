#ifndef HCA_QP_H
#define HCA_QP_H

/* Queue pairs: their numbers, states, errors and flushing. */

#include "hca/objects.h"

#include <pthread.h>

/* 0 when the attributes named by mask are what that transition takes, else EINVAL. */
int qp_check_transition(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
                        int mask);

struct hca_qp *qp_create(struct hca_context *context, struct hca_pd *pd,
                         const struct ibv_qp_init_attr *init, struct hca_xrcd *xrcd);
int qp_modify(struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask);
/* No peer finds it any more; the first half of destroying it. */
void qp_set_unreachable(struct hca_qp *qp);
void qp_destroy(struct hca_qp *qp);
enum ibv_qp_state qp_state(const struct hca_qp *qp);

/* Ours, by number; NULL when it is not. */
struct hca_qp *qp_by_number(uint32_t qpn);

/* Moves anybody's QP to the error state; its owner does the flushing when it next looks. */
void qp_set_error(struct shared_qp *qp);
/* The same, and wakes the owner with an asynchronous event. */
void qp_fail(struct shared_qp *qp, enum ibv_event_type event);

/* A send is over: completes it if it was signalled or has failed. */
void qp_complete_send(struct hca_qp *qp, const struct send_wqe *wqe, enum ibv_wc_status status,
                      uint32_t byte_len);

/* Say at level info why a request or a QP failed; nothing of what succeeded or was flushed. */
void qp_log_send(const struct hca_qp *qp, const struct send_wqe *wqe, enum ibv_wc_status status);
void qp_log_receive(uint32_t qpn, uint64_t wr_id, enum ibv_wc_status status);
void qp_log_responder(const struct hca_qp *qp);

/* True once after a peer has changed something of ours, or a process of the fabric has died. */
bool qp_needs_attention(void);
void qp_handle_errors(void);

/* After a receive was posted to a QP in error, with the receive queue's lock held. */
void qp_flush_late_receive(struct hca_qp *qp);

/* After a memory region was re-registered: receives already posted may no longer be good. */
void qp_recheck_receives(void);

void qp_make_grh(struct ibv_grh *grh, uint16_t slid, uint32_t length, const union ibv_gid *dgid);

extern pthread_mutex_t qp_list_mutex; /* guards qp_list and srq_list */
extern struct hca_qp *qp_list;

/* In a forked child: drop all QPs, SRQs and CQs, which belong to the parent. */
void qp_forget(void);

#endif
