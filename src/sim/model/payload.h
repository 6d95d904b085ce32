/* What a message does when its time has come: move bytes between processes, take receives, write
 * completions. It is done by whichever process has the turn, which need not be one of the two. */
#ifndef SIM_CARRY_H
#define SIM_CARRY_H

#include "sim/model/sim_qp.h"

/* Keeps the payload of a request whose process may use the buffer again before it was delivered. */
void payload_snapshot(struct sim_wqe *wqe);
void payload_drop_snapshot(struct sim_wqe *wqe);

/* Puts what a read or atomic brought where the request said; an enum ibv_wc_status. */
int payload_read_response(struct sim_wqe *wqe);

/* The bytes that a packet names, as its sender has them now; zeros if they cannot be had. */
void payload_of_packet(const struct sim_packet *pkt, uint8_t *to);

/* The receive that the next message will get: how many segments, how much room. False: none. */
bool recv_claim_peek(struct sim_qp *qp, uint32_t srqn);
enum transport_status recv_claim_take(struct sim_qp *qp, uint32_t srqn);

/* The message that was to fill the receive which was claimed will not go on. */
void recv_claim_return(struct sim_qp *qp);

bool payload_invalidate(struct sim_qp *qp, uint32_t key);
enum transport_status payload_check_remote(struct sim_qp *qp, enum transport_access access,
                                         uint32_t key, uint64_t address, uint64_t length);
enum transport_status payload_atomic(struct sim_qp *qp, const struct packet *wqe,
                                   uint64_t *original);

#endif
