/* SPDX-License-Identifier: BSD-2-Clause */
/* The ranks of a schedule as state machines. A rank has one processor (or more, if its operations
 * say so) with a clock. It executes operations whose requirements are met; if there are none, it
 * polls, as the progress function of the MTL does in virtual time: slots in memory first, then the
 * CQ, once after each change, then it sleeps until the next change. */
#ifndef REPLAY_RANK_H
#define REPLAY_RANK_H

#include "mtl/match.h"
#include "replay/goal.h"
#include "sim/model/model.h"
#include "sim/model/owned_qp.h"

enum replay_event {
    EVENT_CPU = EVENT_KINDS, /* cpu: continues at this time */
    EVENT_SHARED,            /* message: is in the shared memory of its receiver */
};

enum op_state {
    OP_WAITS, /* for operations that it requires */
    OP_READY,
    OP_POSTED,  /* a receive without a message */
    OP_QUEUED,  /* a send that waits for a free slot */
    OP_OFFERED, /* a long send whose receiver has not answered */
    OP_ACTIVE,  /* its data are on their way */
    OP_DONE,
};

enum message_kind { MESSAGE_EAGER, MESSAGE_RTS, MESSAGE_CTS, MESSAGE_FIN, MESSAGE_ACK };

struct message {
    struct match_message match; /* while it is unexpected */
    struct message *next;       /* in an inbox or a list of waiting messages */
    struct peer *to;            /* the end of the connection that receives it */
    uint64_t size;              /* of the data that it carries or stands for */
    uint64_t head;              /* FIN: bytes that were sent ahead */
    uint32_t consumed;          /* messages that the sender has consumed from this connection */
    uint32_t send_op, recv_op;
    uint8_t kind;
};

struct message_list {
    struct message *first, *last;
};

/* One end of the connection between two ranks. */
struct peer {
    struct rank *rank; /* whose end this is */
    struct peer *other;
    struct sim_qp *qp; /* NULL: both ranks are on one node */
    uint64_t slots;    /* address of the slots into which the other end writes; its own follow */
    uint32_t posted, completed, peer_consumed; /* messages sent */
    uint32_t consumed, reported;               /* messages received, and known to the other end */
    uint32_t credits_posted;
    bool is_busy; /* in rank->busy */
    struct peer *next_busy;
    struct message_list waiting; /* for a free slot */
    struct message *head;        /* FIN: only the head of its data was posted */
    uint32_t *fins;              /* by slot: the send that is done when this message has arrived */
};

/* A completion in the CQ of a rank. */
struct rank_cqe {
    struct rank_cqe *next;
    struct peer *peer;
    uint32_t index;
    uint8_t work;
};

struct cpu {
    struct rank *rank;
    uint64_t clock;
    uint32_t ready_first, ready_last; /* operations, GOAL_NONE: none */
    uint32_t finishing;               /* operation that is over at 'clock', or GOAL_NONE */
    bool asleep;
    bool changed;       /* since the CQ was found empty */
    uint32_t polled_at; /* rank->changes at that time */
};

struct rank {
    uint32_t number;
    uint32_t node;
    struct goal_rank *schedule;
    struct cpu *cpus;
    uint32_t left; /* operations that are not done */
    uint32_t changes;
    uint64_t finished_at;
    uint64_t sent, sent_bytes, received;
    struct matching matching;
    struct message_list inbox;
    struct rank_cqe *cq_first, *cq_last;
    struct peer *busy, *last_busy; /* with messages that wait for a slot */
    struct message_list deferred;  /* FINs whose data wait for a slot */
    struct peer **peers;           /* open hash table */
    uint32_t peer_mask, peer_count;
};

struct receive {
    struct match_receive match;
    uint32_t op;
    struct receive *next_free;
};

/* ---- rank.c ---- */

int rank_init(struct rank *rank);
void rank_free(struct rank *rank);
void rank_run_cpu(struct cpu *cpu);

/* Something in the memory of the rank has changed, now. */
void rank_changed(struct rank *rank);

static inline struct goal_op *rank_op(const struct rank *rank, uint32_t op)
{
    return &rank->schedule->ops[op];
}

/* The operation requires nothing any more. 'from' is the processor that has met its last
 * requirement. */
void rank_make_ready(struct cpu *from, uint32_t op);

/* The operation is over; those that required it may begin. */
void rank_op_done(struct cpu *cpu, uint32_t op);

static inline void cpu_charge(struct cpu *cpu, double ns)
{
    cpu->clock += (uint64_t)(ns + 0.5);
}

void rank_charge_copy(struct cpu *cpu, uint64_t bytes);

/* ---- peer.c: connections, slots and completions ---- */

extern const struct sim_qp_owner peer_owner;

/* The end of the connection from 'rank' to the rank with that number, which is connected on first
 * use. NULL if out of memory. */
struct peer *peer_get(struct rank *rank, uint32_t number);

/* Sends the message, or queues it until there is a free slot. */
void peer_send(struct cpu *cpu, struct peer *peer, struct message *message);

/* Writes the data of a long message, and then the FIN; or defers both. */
void peer_send_data(struct cpu *cpu, struct peer *peer, struct message *fin);

/* A message from a slot has been consumed. */
void peer_consumed(struct cpu *cpu, struct peer *peer);

/* Sends what has waited for free slots. Returns how many messages. */
int peer_flush(struct cpu *cpu);

/* Takes up to 'most' completions from the CQ; handles them after charging for the poll. */
int peer_poll_cq(struct cpu *cpu);

/* A message has arrived in shared memory. */
void peer_shared_arrived(struct message *message);

/* ---- protocol.c: eager and rendezvous messages ---- */

void protocol_send(struct cpu *cpu, uint32_t op);
void protocol_receive(struct cpu *cpu, uint32_t op);
/* Handles a message from the inbox. */
void protocol_arrived(struct cpu *cpu, struct message *message);
/* The message is in a slot of its receiver. */
void protocol_sent(struct cpu *cpu, const struct message *message);

struct message *protocol_new_message(struct peer *from, enum message_kind kind);
void protocol_free_message(struct message *message);

/* ---- what they share ---- */

struct replay_state {
    struct goal *goal;
    struct rank *ranks;
    uint32_t ranks_per_node;
    uint64_t eager_limit;
    uint64_t unfinished; /* ranks */
    uint64_t ops_left;
    uint64_t unmatched; /* messages that have been sent and have not met a receive */
    uint64_t connections;
    uint32_t next_qpn;
    struct pool messages, cqes, receives, peers;
    bool out_of_memory;
    char failure[256]; /* of a QP; empty: none */
};

extern struct replay_state replay_state;

static inline void message_append(struct message_list *list, struct message *message)
{
    message->next = NULL;
    if (list->last)
        list->last->next = message;
    else
        list->first = message;
    list->last = message;
}

static inline struct message *message_pop(struct message_list *list)
{
    struct message *message = list->first;

    if (message) {
        list->first = message->next;
        if (!list->first)
            list->last = NULL;
    }
    return message;
}

#endif
