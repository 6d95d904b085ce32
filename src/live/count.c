/* SPDX-License-Identifier: BSD-2-Clause */
/* Port counters: the packets and octets that a message would be on a link. Live traffic has no
 * acknowledgements, so none are counted. */
#include "live/live.h"

#include "hca/traffic.h"
#include "transport/opcode.h"

enum { EVERY_PACKET = LRH_BYTES + BTH_BYTES + ICRC_BYTES };

/* Extension headers of the message, and of its response if it has one. */
static const struct {
    uint8_t request;
    uint8_t response;
    bool data_returns; /* the payload is in the response */
} extra[] = {
    [IBV_WR_RDMA_WRITE] = { RETH_BYTES },
    [IBV_WR_RDMA_WRITE_WITH_IMM] = { RETH_BYTES + IMMEDIATE_BYTES },
    [IBV_WR_SEND] = { 0 },
    [IBV_WR_SEND_WITH_IMM] = { IMMEDIATE_BYTES },
    [IBV_WR_SEND_WITH_INV] = { IETH_BYTES },
    [IBV_WR_RDMA_READ] = { RETH_BYTES, AETH_BYTES, true },
    [IBV_WR_ATOMIC_CMP_AND_SWP] = { ATOMIC_BYTES, AETH_BYTES + ATOMIC_ACK_BYTES },
    [IBV_WR_ATOMIC_FETCH_AND_ADD] = { ATOMIC_BYTES, AETH_BYTES + ATOMIC_ACK_BYTES },
    [IBV_WR_ATOMIC_WRITE] = { RETH_BYTES },
};

/* A payload is padded to whole words. */
static uint64_t padded(uint32_t length)
{
    return (length + 3ull) & ~3ull;
}

struct amount {
    uint64_t packets, bytes;
};

static struct amount amount_of(const struct hca_qp *qp, uint32_t payload, unsigned headers)
{
    unsigned shift = 7 + qp->attr.path_mtu; /* enum ibv_mtu: 128 bytes, shifted */
    uint64_t packets = payload ? (payload + (1ull << shift) - 1) >> shift : 1;

    return (struct amount){ packets, padded(payload) + packets * EVERY_PACKET + headers };
}

static void count_request(struct shared_qp *from, struct shared_qp *to, struct amount n)
{
    traffic_add(&from->requests.xmit_packets, n.packets);
    traffic_add(&from->requests.xmit_bytes, n.bytes);
    traffic_add(&to->responses.rcv_packets, n.packets);
    traffic_add(&to->responses.rcv_bytes, n.bytes);
}

void count_short_send(struct hca_qp *qp, struct shared_qp *peer, uint32_t length)
{
    count_request(qp->shared, peer, (struct amount){ 1, padded(length) + EVERY_PACKET });
}

void count_short_write(struct hca_qp *qp, struct shared_qp *peer, uint32_t length)
{
    count_request(qp->shared, peer, (struct amount){ 1, padded(length) + EVERY_PACKET + RETH_BYTES });
}

void count_message(struct hca_qp *qp, struct shared_qp *peer, const struct send_wqe *w,
                   uint32_t byte_len)
{
    unsigned xrceth = qp->ibv.qp_type == IBV_QPT_XRC_SEND ? XRCETH_BYTES : 0;

    if (!extra[w->opcode].response) {
        count_request(qp->shared, peer, amount_of(qp, byte_len, extra[w->opcode].request + xrceth));
        return;
    }
    struct amount back =
        amount_of(qp, extra[w->opcode].data_returns ? byte_len : 0, extra[w->opcode].response);
    count_request(qp->shared, peer, amount_of(qp, 0, extra[w->opcode].request + xrceth));
    traffic_add(&qp->shared->requests.rcv_packets, back.packets);
    traffic_add(&qp->shared->requests.rcv_bytes, back.bytes);
    traffic_add(&peer->responses.xmit_packets, back.packets);
    traffic_add(&peer->responses.xmit_bytes, back.bytes);
}

static uint64_t datagram_bytes(const struct send_wqe *w, uint32_t length)
{
    return padded(length) + EVERY_PACKET + DETH_BYTES + (w->has_grh ? GRH_BYTES : 0) +
           extra[w->opcode].request;
}

void count_datagram_sent(struct hca_qp *qp, const struct send_wqe *w, uint32_t length)
{
    traffic_add(&qp->shared->requests.xmit_packets, 1);
    traffic_add(&qp->shared->requests.xmit_bytes, datagram_bytes(w, length));
}

/* Any number of senders reach the QP at the same time. */
void count_datagram_received(struct shared_qp *peer, const struct send_wqe *w, uint32_t length)
{
    atomic_fetch_add_explicit(&peer->responses.rcv_packets, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&peer->responses.rcv_bytes, datagram_bytes(w, length),
                              memory_order_relaxed);
}
