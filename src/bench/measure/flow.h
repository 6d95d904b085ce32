/* SPDX-License-Identifier: BSD-2-Clause */
/* A flow: messages between this rank and a peer, prepared before the clock runs. Both sides open it
 * with the same spec. What differs between experiments (the number of queue pairs, the order of
 * buffers, the segments) is in the slots, which are used in turn. The timed loops (pingpong.h,
 * stream.h) are the same for all. */
#ifndef BENCH_MEASURE_FLOW_H
#define BENCH_MEASURE_FLOW_H

#include "bench/completion.h"
#include "bench/endpoint.h"

static inline bool operation_is_atomic(enum operation operation)
{
    return operation == OPERATION_FETCH_ADD || operation == OPERATION_COMPARE_SWAP;
}

/* Whether each message of this operation consumes a receive. */
static inline bool operation_uses_receives(enum operation operation)
{
    return operation == OPERATION_SEND || operation == OPERATION_WRITE_IMM;
}

struct flow_spec {
    enum operation operation;
    enum wait_mode wait;      /* for messages of the peer, or for reads and atomics to complete */
    enum wait_mode send_wait; /* for sends and writes to complete */
    enum transport transport;
    int peer;
    size_t size;
    uint32_t depth;        /* of the queues */
    uint32_t signal;       /* every n-th send of a queue pair is signalled; must be 1 with qp_of */
    uint32_t inline_limit; /* messages up to this size are inline */
    uint32_t mtu;
    uint8_t sl;
    uint8_t port;           /* 0: the adapter's */
    const uint8_t *port_of; /* of each queue pair; NULL: all use the same */
    bool notify;            /* every write is followed by an empty send, to complete a receive */
    bool shared_receives;   /* one receive queue for all queue pairs; always so for XRC */

    unsigned int qps;
    bool cq_per_qp;                    /* a pair of completion queues for each, polled in turn */
    unsigned int slots;                /* 0: one per queue pair */
    const unsigned int *qp_of;         /* of each slot; NULL: in turn */
    const unsigned int *receive_qp_of; /* of each slot's receives; NULL: the same as qp_of */
    const unsigned int *buffer_of;     /* of each slot; NULL: in turn */
    unsigned int buffers;              /* used in turn; 0: one */
    size_t buffer_stride;              /* between buffers; 0: the size, in whole pages */
    size_t offset;                     /* of each message in its buffer */
    bool mr_per_buffer;                /* register each buffer separately, */
    bool relaxed;                      /* for accesses that may pass each other on the bus */

    unsigned int send_segments; /* equal parts of the message; 0: one */
    unsigned int receive_segments;
    size_t send_stride; /* between segments; 0: contiguous */
    size_t receive_stride;
    uint32_t max_segments; /* capability of the queue pairs, if larger */
};

struct slot {
    struct endpoint *endpoint;
    struct endpoint *receiver; /* where its receive is posted */
    struct ibv_send_wr send;
    struct ibv_send_wr notice; /* follows 'send' if the spec says notify */
    struct ibv_recv_wr receive;
    volatile uint8_t *out_last; /* last byte that this side sends */
    volatile uint8_t *in_last;  /* last byte that the peer writes */
};

struct flow {
    struct bench *bench;
    struct flow_spec spec;
    struct completions sends;
    struct completions receives;
    struct endpoint *endpoints;
    struct ibv_xrcd *xrcd;
    struct ibv_srq *srq;
    struct region out;
    struct region in;
    struct ibv_mr **mrs;  /* of each buffer of 'out', then of 'in'; NULL: one MR for all */
    uint32_t *peer_rkeys; /* of each buffer, if they differ */
    unsigned int buffers;
    struct remote peer; /* the peer's 'in' */
    struct slot *slots;
    unsigned int slot_count;
    struct ibv_sge *segments;
    uint64_t sent;      /* posted */
    uint64_t covered;   /* of those, up to the last signalled one */
    uint64_t completed; /* of those, known to have completed */
    uint64_t imms_sent; /* see flow_send_imm() */
    uint64_t imms_completed;
    uint64_t received;
    uint64_t receives_posted;
    uint64_t send_capacity;    /* sends that may be in flight */
    uint64_t receive_capacity; /* receives that may be posted */
};

/* Fills in what the user's settings say; the experiment then changes what it varies. */
void flow_defaults(const struct bench *bench, int peer, struct flow_spec *spec);

/* Collective. */
int flow_open(struct bench *bench, const struct flow_spec *spec, struct flow *out);
void flow_close(struct flow *flow);

/* Why the device or the transport cannot do this operation, or NULL. */
const char *flow_operation_refusal(const struct bench *bench, enum operation operation,
                                   enum transport transport);

/* Whether the user chose this operation and it is possible; if it is not possible, notes why. */
bool flow_operation_chosen(struct bench *bench, enum operation operation);

/* Drops unsignalled sends, which never complete visibly, from the counts before a new stream. */
void flow_forget_unsignalled(struct flow *flow);

/* Posts receives until the queue holds 'ahead' of them. */
int flow_post_receives(struct flow *flow, uint64_t ahead);

int flow_post_failed(struct flow *flow, const char *call, int error);

/* Polls completions of sends; with 'wait', until there is one. */
int flow_reap(struct flow *flow, bool wait);

/* Waits until every signalled send has completed. */
int flow_settle(struct flow *flow);

/* Sends an empty message with immediate data through the queue pair of the first slot. It consumes
 * a receive of the peer. */
int flow_send_imm(struct flow *flow, uint32_t imm);

static inline struct slot *flow_slot(struct flow *flow, uint64_t message)
{
    return &flow->slots[flow->slot_count == 1 ? 0 : message % flow->slot_count];
}

/* Posts the next message. The caller has called flow_wait_for_capacity(). */
static inline int flow_send(struct flow *flow)
{
    struct slot *slot = flow_slot(flow, flow->sent);
    struct ibv_send_wr *bad;
    int error;

    slot->send.wr_id = ++flow->sent;
    if (++slot->endpoint->unsignalled < flow->spec.signal) {
        slot->send.send_flags &= ~IBV_SEND_SIGNALED;
    } else {
        slot->send.send_flags |= IBV_SEND_SIGNALED;
        slot->endpoint->unsignalled = 0;
        flow->covered += flow->spec.signal;
    }
    error = ibv_post_send(slot->endpoint->qp, &slot->send, &bad);
    return __builtin_expect(error, 0) ? flow_post_failed(flow, "ibv_post_send", error) : 0;
}

static inline int flow_wait_for_capacity(struct flow *flow)
{
    if (__builtin_expect(flow->sent - flow->completed < flow->send_capacity, 1))
        return 0;
    return flow_reap(flow, true);
}

static inline int flow_post_receive_of(struct flow *flow, struct slot *slot)
{
    int error = endpoint_post_receive(slot->receiver, &slot->receive);

    flow->receives_posted++;
    return __builtin_expect(error, 0) ? flow_post_failed(flow, "ibv_post_recv", error) : 0;
}

/* Posts the receive of the next slot. */
static inline int flow_post_receive(struct flow *flow)
{
    return flow_post_receive_of(flow, flow_slot(flow, flow->receives_posted));
}

/* Posts the receive that has just completed. If queue pairs receive different numbers of messages,
 * only this keeps all of them supplied. */
static inline int flow_post_receive_again(struct flow *flow, const struct ibv_wc *wc)
{
    return flow_post_receive_of(flow, &flow->slots[wc->wr_id]);
}

/* The start of the message received in this slot. */
static inline const void *flow_payload(const struct flow *flow, const struct slot *slot)
{
    size_t lead = flow->spec.transport == TRANSPORT_UD ? GRH_BYTES : 0;

    return (const char *)(uintptr_t)slot->receive.sg_list[0].addr + lead;
}

/* --verify: writes the pattern of a message, and checks that it arrived. A stream fills every slot
 * once, with the pattern of message 0, and checks the slot that a completion names. */
void flow_fill(struct flow *flow, uint64_t message);
int flow_check(struct flow *flow, uint64_t message);
void flow_fill_all(struct flow *flow);
int flow_check_slot(struct flow *flow, unsigned int slot);

#endif
