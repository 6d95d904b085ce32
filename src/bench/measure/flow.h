/* SPDX-License-Identifier: BSD-2-Clause */
/* A flow: messages between this rank and a peer, prepared before the clock runs. Both sides open it
 * with the same spec. What differs between experiments - how many queue pairs, which buffers in
 * which order, how many segments - is in the slots, which are used in turn; the timed loops
 * (pingpong.h, stream.h) are the same for all. */
#ifndef BENCH_MEASURE_FLOW_H
#define BENCH_MEASURE_FLOW_H

#include "bench/completion.h"
#include "bench/endpoint.h"

struct flow_spec {
    enum operation operation;
    enum wait_mode wait;      /* for the peer's messages, or for reads and atomics to complete */
    enum wait_mode send_wait; /* for sends and writes to complete */
    enum transport transport;
    int peer;
    size_t size;
    uint32_t depth;        /* of the queues */
    uint32_t signal;       /* every n-th send of a queue pair is signalled; 1 with qp_of */
    uint32_t inline_limit; /* messages up to this size are inline */
    uint32_t mtu;
    uint8_t sl;
    uint8_t port;           /* 0: the adapter's */
    const uint8_t *port_of; /* of each queue pair; NULL: all use the same */
    bool notify;          /* every write is followed by an empty send, which tells the peer of it */
    bool shared_receives; /* one queue for all queue pairs; XRC knows nothing else */

    unsigned int qps;
    bool cq_per_qp;            /* completion queues of its own for each, looked at in turn */
    unsigned int slots;        /* 0: as many as queue pairs */
    const unsigned int *qp_of; /* of each slot; NULL: in turn */
    const unsigned int *receive_qp_of; /* where it receives, if that is another one */
    const unsigned int *buffer_of;     /* of each slot; NULL: in turn */
    unsigned int buffers;              /* that are used in turn; 0: one */
    size_t buffer_stride;              /* distance of buffers; 0: the size, in whole pages */
    size_t offset;                     /* of every message from the start of its buffer */
    bool mr_per_buffer;                /* each is registered by itself */

    unsigned int send_segments; /* equal parts of the message; 0: one */
    unsigned int receive_segments;
    size_t send_stride; /* distance of the segments; 0: contiguous */
    size_t receive_stride;
    uint32_t max_segments; /* asked for in the queue pair, if more */
};

struct slot {
    struct endpoint *endpoint;
    struct endpoint *receiver; /* where its receive is posted */
    struct ibv_send_wr send;
    struct ibv_send_wr notice; /* follows it, if the flow notifies */
    struct ibv_recv_wr receive;
    volatile uint8_t *out_last; /* last byte of what this side sends */
    volatile uint8_t *in_last;  /* last byte of what the peer writes */
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
    struct ibv_mr **mrs;  /* of each buffer of 'out', then of 'in'; NULL: one for all */
    uint32_t *peer_rkeys; /* of each buffer, if they differ */
    unsigned int buffers;
    struct remote peer; /* its 'in' */
    struct slot *slots;
    unsigned int slot_count;
    struct ibv_sge *segments;
    uint64_t sent;       /* posted */
    uint64_t covered;    /* of those, done when every signalled one has completed */
    uint64_t completed;  /* of those, known to be done */
    uint64_t words_sent; /* see flow_signal_peer() */
    uint64_t words_completed;
    uint64_t received;
    uint64_t receives_posted;
    uint64_t send_room;    /* sends that may be under way */
    uint64_t receive_room; /* receives that may be posted */
};

/* Sets what the user's settings say about any flow; the experiment changes what it varies. */
void flow_defaults(const struct bench *bench, int peer, struct flow_spec *spec);

/* Collective. */
int flow_open(struct bench *bench, const struct flow_spec *spec, struct flow *out);
void flow_close(struct flow *flow);

/* Whether the device and the transport can do this operation; else why not. */
const char *operation_refusal(const struct bench *bench, enum operation operation,
                              enum transport transport);

/* Whether the user has asked for it and it can be done; a note tells why if it cannot. */
bool operation_chosen(struct bench *bench, enum operation operation);

/* Forgets sends that no completion will be seen for, before a new count begins. */
void flow_forget_unsignalled(struct flow *flow);

/* Posts receives for the next messages until 'ahead' of them are posted. */
int flow_post_receives(struct flow *flow, uint64_t ahead);

int flow_complain_post(struct flow *flow, const char *call, int error);

/* Takes completions of sends. */
int flow_reap(struct flow *flow, bool wait);

/* Waits until every signalled send has completed. */
int flow_settle(struct flow *flow);

/* An empty message beside the data, by the first slot's queue pair: it arrives with 'word' as
 * immediate data and takes a receive. */
int flow_signal_peer(struct flow *flow, uint32_t word);

static inline struct slot *flow_slot(struct flow *flow, uint64_t message)
{
    return &flow->slots[flow->slot_count == 1 ? 0 : message % flow->slot_count];
}

/* Posts the next message. There must be room: see flow_make_room(). */
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
    return __builtin_expect(error, 0) ? flow_complain_post(flow, "ibv_post_send", error) : 0;
}

static inline int flow_make_room(struct flow *flow)
{
    if (__builtin_expect(flow->sent - flow->completed < flow->send_room, 1))
        return 0;
    return flow_reap(flow, true);
}

static inline int flow_post_receive_of(struct flow *flow, struct slot *slot)
{
    int error = endpoint_post_receive(slot->receiver, &slot->receive);

    flow->receives_posted++;
    return __builtin_expect(error, 0) ? flow_complain_post(flow, "ibv_post_recv", error) : 0;
}

/* The receive of the next slot, or the one that has just completed: where queue pairs do not
 * receive equally many messages, only the latter keeps all of them supplied. */
static inline int flow_post_receive(struct flow *flow)
{
    return flow_post_receive_of(flow, flow_slot(flow, flow->receives_posted));
}

static inline int flow_post_receive_again(struct flow *flow, const struct ibv_wc *wc)
{
    return flow_post_receive_of(flow, &flow->slots[wc->wr_id]);
}

/* Where the message begins that was received in this slot. */
static inline const void *flow_payload(const struct flow *flow, const struct slot *slot)
{
    size_t lead = flow->spec.transport == TRANSPORT_UD ? GRH_BYTES : 0;

    return (const char *)(uintptr_t)slot->receive.sg_list[0].addr + lead;
}

/* --verify: what message number n carries, and whether it arrived. A stream fills every slot once,
 * with the pattern of message 0, and looks at the receive that a completion names. */
void flow_fill(struct flow *flow, uint64_t message);
int flow_check(struct flow *flow, uint64_t message);
void flow_fill_all(struct flow *flow);
int flow_check_slot(struct flow *flow, unsigned int slot);

#endif
