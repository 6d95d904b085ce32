/* What a message does when its time has come: move bytes between processes, take receives, write
 * completions. It is done by whichever process has the turn, which need not be one of the two. */
#ifndef SIM_CARRY_H
#define SIM_CARRY_H

#include "sim/queue.h"

/* Keeps the payload of a request whose process may use the buffer again before it was delivered. */
void carry_snapshot(struct request *request);
void carry_forget_copy(struct request *request);

/* Puts what a read or atomic brought where the request said; an enum ibv_wc_status. */
int carry_answer(struct request *request);

/* The bytes that a packet names, as its sender has them now; zeros if they cannot be had. */
void carry_payload(const struct flight *flight, uint8_t *to);

/* A request that concerns only its own process: binding a window, invalidating a key. */
int carry_local(struct hca_qp *qp, const struct send_wqe *wqe);

/* The receive that the next message will get: how many segments, how much room. False: none. */
bool carry_look_at_receive(struct queue *queue, uint32_t srqn);
enum transport_status carry_claim_receive(struct queue *queue, uint32_t srqn);

/* The message that was to fill the receive which was claimed will not go on. */
void carry_give_back_receive(struct queue *queue);

bool carry_invalidate(struct queue *queue, uint32_t key);
enum transport_status carry_check_remote(struct queue *queue, enum transport_access access,
                                         uint32_t key, uint64_t address, uint64_t length);
enum transport_status carry_atomic(struct queue *queue, const struct packet *request,
                                   uint64_t *original);

#endif
