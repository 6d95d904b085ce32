/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TRANSPORT_VERBS_WORK_H
#define TRANSPORT_VERBS_WORK_H

/* QPs, work requests and their outcomes in the terms of the transport, for the engines that send
 * packets. */

#include "hca/objects.h"
#include "hca/responder.h"
#include "transport/transport.h"

/* What a QP's attributes say; the engine sets window and acknowledgement interval. `link_mtu`
 * bounds the path MTU. */
struct transport_attributes work_attributes(const struct hca_qp *qp, uint32_t link_mtu);

/* A request of `length` bytes. The engine sets data and route. */
struct transport_wqe work_request(const struct send_wqe *wqe, uint32_t length);

/* Whether the request reads its SGEs, rather than writing to them. */
bool work_reads_memory(const struct send_wqe *wqe);

enum ibv_wc_status work_status(enum transport_status status);

/* ---- the responder; inside an epoch ---- */

/* Checks a request for remote access, and finds its memory. */
enum transport_status work_check_remote(struct shared_qp *qp, uint32_t srqn,
                                        enum transport_access access, uint32_t rkey,
                                        uint64_t address, uint64_t length, struct mem_ref *ref);
/* Finds the memory of a request that was checked; false: its key is no longer valid. */
bool work_translate(const struct shared_qp *qp, uint32_t srqn, enum transport_access access,
                    uint32_t rkey, uint64_t address, uint64_t length, struct mem_ref *ref);
/* Checks that the first `length` bytes of a message fit into the receive. */
enum transport_status work_check_receive(struct rq_capacity receive, uint64_t length);
/* Fails the QP whose peer sent a bad request. */
void work_fail_responder(struct shared_qp *qp, enum transport_status why);

#endif
