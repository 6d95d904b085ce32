/* SPDX-License-Identifier: BSD-2-Clause */
/* The rails to one process: RC queue pairs, brought up when the first message is sent.
 *
 * A rail carries messages through a window of slots. The sender reuses a slot only after the
 * receiver has reported that it has consumed the message: in the header of every message that goes
 * back, or by writing the count into a credit word of the sender. Slots are never overrun, and
 * memory per process is bounded. */
#ifndef MTL_CONNECTION_H
#define MTL_CONNECTION_H

#include "mtl/endpoint.h"

struct stripe;

enum work_kind {
    WORK_MESSAGE,
    WORK_RECEIVE,
    WORK_CREDIT,
    WORK_READ,
    WORK_HEAD,
    WORK_RMA,
    WORK_WIREUP_RECV,
    WORK_WIREUP_SEND
};

/* What the wr_id of a completion points at. */
struct work {
    enum work_kind kind;
    uint32_t index;
    struct rail_link *link;
};

/* A message in a slot, until it is known to have arrived. */
struct sent {
    struct stripe *stripe; /* the data written before it, if it is a FIN */
    bool in_cell;
    bool planned;        /* the policy chose the rail, and must be told when the message is done */
    enum rails_class class;
    uint32_t sequence; /* if planned */
    uint64_t begun, sharing;
    struct rails_stripe rails;
};

struct rail_link {
    struct connection *connection;
    const struct path *path;
    struct ibv_qp *qp;
    uint32_t index;
    bool connected;    /* the queue pair can receive */
    bool up;           /* and may send: the peer's queue pair is connected, too */
    bool peer_drained; /* the peer has consumed everything that arrived on the failed rail */
    bool drained;      /* so has this side, and has said so */

    uint32_t generation; /* incremented by each reconnect; messages about others are stale */
    bool req_sent;       /* a WIRE_RAIL_REQ has not been answered yet */
    uint64_t up_since_ns, retry_at_ns, retry_ns;

    uint32_t posted, completed, peer_consumed; /* messages sent, so far */
    uint32_t arrived; /* of them, those that the policy has been told about */
    uint32_t unsignaled; /* messages since the last one whose turn it was to be signaled */
    uint32_t credits_posted;
    uint32_t reads;
    char *staging, *staging_cells;
    struct sent *sent;
    struct work *sends;
    struct work credit_work;
    struct work head_work;
    struct stripe *head_stripe; /* only its head has been posted */
    _Atomic uint32_t *credit; /* the peer writes here how many messages it has consumed */

    uint32_t consumed, reported; /* messages received, and how many of them the peer knows of */
    char *ring, *cells;
    struct work *receives;

    uint64_t remote_ring, remote_cells, remote_credit;
    uint32_t remote_rkey;
    struct ibv_send_wr message; /* what is the same for all messages */
    struct ibv_sge message_sge;
};

enum connection_state { CONNECTION_NEW, CONNECTION_WIREUP, CONNECTION_READY };

struct connection {
    struct endpoint *endpoint;
    struct connection *next, *next_polled;
    enum connection_state state;
    bool connected; /* our queue pairs are */
    uint64_t next_wireup_ns;
    struct ibv_ah *ud_ah;
    uint32_t window, slot_size, signal_interval;
    uint32_t window_mask; /* if the window is a power of two; else 0 */
    bool peer_polls_slots, polls_slots;
    bool has_cells, peer_polls_cells; /* for short messages */
    uint32_t rail_count;
    struct rails_set set;
    struct rail_link *rails;
    char *memory;
    size_t memory_size;
    struct ibv_mr *regions[DEVICES_MAX];
    struct sent next_sent; /* the next message, if its rail has been planned already */
    uint32_t next_sequence, expected_sequence;
    uint16_t acked_sequence; /* low bits of the next sequence number that the peer expects */
    struct reordered *reordered; /* messages that arrived out of order, sorted */
};

/* ---- connection.c ---- */

struct connection *connection_new(struct endpoint *endpoint);
void connections_free(void);

/* All connections; and those whose messages are written into slots here, up to polled_peers. */
extern struct connection *connections, *connections_polled;
/* Some peers send their messages, instead of writing them into slots. */
bool connections_received_from_cqs(void);

/* Starts to connect; messages are queued meanwhile. */
void connection_start_wireup(struct connection *connection);

bool connection_send(struct connection *connection, struct message *message,
                     enum rails_class class);
bool connection_resend(struct connection *connection, struct message *message);

/* Handles a message. Eager and RTS messages are passed on in the order of their sequence numbers,
 * once each. */
void connection_arrived(struct connection *connection, const struct wire_header *header,
                        const void *body);

/* Wireup messages are repeated until the peer answers. */
bool connections_in_wireup(void);
void connections_retry_wireup(void);
uint64_t connections_next_wireup(void);

/* ---- wireup.c: exchanges queue pair numbers over a UD endpoint ---- */

int wireup_open(uint32_t *qp_num);
void wireup_close(void);
bool wireup_send(struct connection *connection, const struct wireup_message *message);
void wireup_completed(const struct ibv_wc *completion, const struct work *work);
void connection_wireup_arrived(const struct wireup_message *message);

/* ---- rail.c ---- */

int rail_create(struct rail_link *link);
int rail_connect(struct rail_link *link, uint32_t qp_num);
void rail_destroy(struct rail_link *link);

/* Replaces a queue pair that has failed by a new one, and resets all counters. */
int rail_renew(struct rail_link *link);

bool rail_can_send(struct rail_link *link);
/* 'sent' is NULL if there is nothing to remember. */
void rail_send(struct rail_link *link, struct message *message, const struct sent *sent);

/* An RDMA write or read. A write is followed by a message on the same rail, and has arrived when
 * that message has. */
struct remote_copy {
    uint64_t local, remote;
    uint64_t length;
    uint32_t lkey, rkey;
};

void rail_write(struct rail_link *link, const struct remote_copy *copy);
/* Writes the head of a stripe; calls rendezvous_head_done() when half of it has arrived. */
void rail_write_head(struct rail_link *link, const struct remote_copy *copy, struct stripe *stripe);
bool rail_can_read(const struct rail_link *link);
void rail_read(struct rail_link *link, const struct remote_copy *copy, struct work *work);

/* Handle all messages in the slots of all rails; handle completions. Both return how many. */
int rails_poll_slots(void);
int rails_poll_cqs(void);

/* Tries all idle rails, so that failures are noticed. Called now and then by an idle process. */
void rails_probe(void);

/* Stops using the rail, and tells the peer. */
void rail_fail(struct rail_link *link, const char *reason);

/* The peer has stopped using the rail; the peer has consumed everything that arrived on it. */
void rail_peer_down(struct rail_link *link);
void rail_peer_drained(struct rail_link *link);

/* ---- rail_recovery.c: reconnecting failed rails ---- */

/* Sets the time of the next attempt. */
void rail_schedule_retry(struct rail_link *link);

/* Sends a WIRE_RAIL_REQ for each failed rail that is due. */
void rails_recover(void);

/* Handles and sends WIRE_RAIL_* messages. */
void rail_control_arrived(struct connection *connection, enum wire_type type,
                          const struct wire_rail *body);
void rail_send_control(struct rail_link *link, enum wire_type type);

/* The peer's queue pair is connected: the rail may be used. */
void rail_peer_connected(struct rail_link *link);

#endif
