/* SPDX-License-Identifier: BSD-2-Clause */
/* The ranks of a schedule as state machines. A rank has one processor (or more, if its operations
 * say so) with a clock. It executes operations whose requirements are met; if there are none, it
 * polls, as the progress function of the MTL does in virtual time: slots in memory first, then the
 * CQ, once after each change, then it sleeps until the next change. */
#ifndef REPLAY_RANK_H
#define REPLAY_RANK_H

#include "mtl/match.h"
#include "mtl/parameter_rows.h"
#include "rails/rails.h"
#include "replay/goal.h"
#include "sim/model/model.h"
#include "sim/model/owned_qp.h"

/* Ranks use the MTL's defaults. */
#define DEFAULT_OF(name, value, ...) DEFAULT_##name = value,
enum mtl_default { MTL_NUMBER_ROWS(DEFAULT_OF) };

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
    uint64_t offset;            /* FIN: of these data, a stripe, in the message */
    uint64_t head;              /* FIN: bytes of the stripe that were sent ahead */
    struct transfer *transfer;  /* if a policy has chosen the rail */
    uint32_t consumed;          /* messages that the sender has consumed from this rail */
    uint32_t send_op, recv_op;
    uint32_t sequence, ack; /* of EAGER and RTS; the next one that the sender expects */
    uint8_t kind;
    uint8_t rail;
    uint8_t stripes; /* FIN: of the whole message */
};

struct message_list {
    struct message *first, *last;
};

/* A message that a policy has planned, until all its stripes have arrived. */
struct transfer {
    uint64_t begun, sharing; /* see struct rails_plan */
    enum rails_class class;
    uint32_t stripes_left;
    bool rated;
};

/* A message in a slot, until it is known to have arrived. */
struct sent {
    struct transfer *transfer;  /* or NULL */
    struct rails_stripe stripe; /* of the transfer */
    uint32_t sequence;          /* EAGER */
    uint32_t op;                /* FIN: the send that it belongs to */
    bool is_fin;
};

/* One end of a rail between two ranks. */
struct peer_rail {
    struct peer *peer; /* whose rail this is */
    struct sim_qp *qp;
    uint32_t order;                            /* of polling, see inbox.c */
    uint32_t posted, completed, peer_consumed; /* messages sent */
    uint32_t reported_to_policy;               /* of them */
    uint32_t consumed, reported;               /* messages received, and known to the other end */
    uint8_t index;                             /* of this rail */
    uint8_t device;
    uint8_t credits_posted;
    struct message_list arrived;
    struct peer_rail *heap_first, *heap_next; /* in an inbox: children, and the next child */
    struct message *head;                     /* FIN: only the head of its data was posted */
    struct sent **sent;                       /* by slot; made for the first one */
};

/* What a connection with several rails has besides. */
struct peer_policy {
    uint32_t next_sequence, expected_sequence;
    uint32_t acked;            /* all messages before this one have arrived */
    struct message *reordered; /* messages that arrived out of order, sorted */
    struct rails_set set;      /* last: it has as many rails as needed */
};

/* One end of the connection between two ranks. */
struct peer {
    struct rank *rank; /* whose end this is */
    struct peer *other;
    struct peer_policy *policy; /* NULL: one rail */
    uint64_t memory;            /* address of credits, and of slots: see rail_ring_offset() */
    uint32_t other_rank;        /* its number */
    uint8_t wireup;             /* enum wireup_state */
    bool connected;             /* this end's QPs */
    bool is_busy;               /* in rank->busy */
    bool is_remote;             /* the ranks are on two nodes, and have rails */
    struct peer *next_busy;
    struct message_list waiting; /* for a free slot */
    struct peer_rail rails[];
};

/* Messages that have arrived. */
struct inbox {
    struct message_list shared;    /* through shared memory: they come first */
    struct peer_rail *now, *later; /* rails with messages, for this pass and the next */
    uint32_t at; /* the order of the rail that this pass has reached; 0: it is over */
};

/* A completion in the CQ of a rank. */
struct rank_cqe {
    struct rank_cqe *next;
    struct peer_rail *rail;
    uint32_t index;
    uint8_t work;
};

struct rank_cq {
    struct rank_cqe *first, *last;
};

/* What a WQE and its completion are for. */
enum work { WORK_MESSAGE, WORK_CREDIT, WORK_HEAD, WORK_DATA, WORK_WIREUP, WORK_WIREUP_RECV };

enum wireup_state { WIREUP_NEW, WIREUP_OPEN, WIREUP_STARTED, WIREUP_READY };

struct cpu {
    struct rank *rank;
    uint64_t clock;
    uint32_t ready_first, ready_last; /* operations, GOAL_NONE: none */
    uint32_t finishing;               /* operation that is over at 'clock', or GOAL_NONE */
    bool asleep;
    bool polls;         /* is going through the inbox */
    uint8_t device;     /* whose CQ is polled next; not 0: is going through the CQs */
    bool completed;     /* something, while it went through the CQs */
    bool found;         /* a message in it */
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
    struct inbox inbox;
    struct rank_cq *cqs;           /* one for each device */
    struct rails_traffic *traffic; /* NULL: one rail */
    struct peer *busy, *last_busy; /* with messages that wait for a slot */
    struct message_list deferred;  /* FINs whose data wait for a slot */
    struct peer **peers;           /* open hash table */
    struct sim_qp *datagrams;      /* for wireup; NULL: ranks are connected from the beginning */
    uint32_t peer_mask, peer_count;
    uint32_t last_number; /* of a connection */
};

struct receive {
    struct match_receive match;
    uint32_t op;
};

/* ---- rank.c ---- */

int rank_init(struct rank *rank);
void rank_free(struct rank *rank);
void rank_run_cpu(struct cpu *cpu);
/* Brings what the processor will do next into the caches. */
void rank_prefetch_work(const struct cpu *cpu);

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

/* ---- peer.c: connections, and messages that wait ---- */

/* The end of the connection from 'rank' to the rank with that number, which is connected on first
 * use. NULL if out of memory. */
struct peer *peer_get(struct rank *rank, uint32_t number);

/* Brings what sending to that rank needs into the caches. */
void peer_prefetch(const struct rank *rank, uint32_t number);

/* The longest message that is sent at once. */
uint64_t peer_eager_limit(const struct peer *peer);

/* Sends the message, or queues it until there is a free slot. */
void peer_send(struct cpu *cpu, struct peer *peer, struct message *message);

/* The receiver has answered: writes the data of a long message, and FINs behind its stripes; or
 * defers what finds no slot. */
void peer_send_data(struct cpu *cpu, struct peer *peer, struct message *cts);

/* Sends what has waited for free slots. Returns how many messages. */
int peer_flush(struct cpu *cpu);

/* A message has arrived in shared memory. */
void peer_shared_arrived(struct message *message);

/* This connection is the newest of its rank. */
void peer_set_order(struct peer *peer);

/* The port that a rail uses. */
struct sim_port *peer_port(const struct rank *rank, uint32_t rail);

/* ---- peer_rail.c: slots, data and completions ---- */

extern const struct sim_qp_owner peer_rail_owner;

void peer_rail_post(struct cpu *cpu, struct sim_qp *qp, const struct owned_qp_write *write);

/* Bytes of the memory of a connection. */
uint64_t peer_rail_memory(void);

static inline bool peer_rail_can_send(const struct peer_rail *rail)
{
    return rail->posted - rail->completed < DEFAULT_window &&
           rail->posted - rail->peer_consumed < DEFAULT_window;
}

/* Writes the message into a slot of the other end; there is one. */
void peer_rail_write(struct cpu *cpu, struct peer_rail *rail, struct message *message);

/* Writes a stripe and its FIN, or defers them. */
void peer_rail_send_stripe(struct cpu *cpu, struct message *fin);
/* Returns false if there is no slot. */
bool peer_rail_try_stripe(struct cpu *cpu, struct message *fin);

/* A message from a slot has been consumed. */
void peer_rail_consumed(struct cpu *cpu, struct peer_rail *rail);

/* Handles a batch of completions after charging for the poll. Returns how many. */
int peer_rail_poll_cq(struct cpu *cpu, uint32_t device);

/* ---- peer_policy.c: connections with several rails ---- */

/* Both return NULL if out of memory. */
struct rails_traffic *peer_policy_traffic(const struct rank *rank);
struct peer_policy *peer_policy_new(void);

/* This end can be used. Its rails begin where those of the rank's earlier connections do not. */
void peer_policy_open(struct peer *peer);

/* The rail of a message, which keeps it while it waits for a slot. */
uint32_t peer_policy_rail(struct peer *peer, struct message *message);

/* Plans the stripes of a message: 'fin' and more messages. Returns how many, 0 if out of memory. */
uint32_t peer_policy_stripes(struct cpu *cpu, struct peer *peer, struct message *fin,
                             struct message *stripes[RAILS_MAX]);

/* The other end has received all messages before 'ack'. */
void peer_policy_acked(struct cpu *cpu, struct peer *peer, uint32_t ack);
/* All messages of the rail before 'end' have arrived. */
void peer_policy_arrived(struct cpu *cpu, struct peer_rail *rail, uint32_t end);
/* One stripe of the transfer has arrived. Returns whether it was the last one. */
bool peer_policy_stripe_done(struct cpu *cpu, struct peer *peer, const struct sent *sent);

/* Keeps a message that comes too early: returns false. */
bool peer_policy_in_order(struct peer *peer, struct message *message);
/* The next message in order that has been kept, or NULL. */
struct message *peer_policy_next(struct peer *peer);

/* ---- wireup.c: how ranks connect, if the schedule says that they do so on first use ---- */

/* Creates a rank's QP for wireup. Returns false if out of memory. */
bool wireup_init(struct rank *rank);
/* Creates what this end needs, unless it has been done. */
void wireup_open(struct cpu *cpu, struct peer *peer);
/* There is a message for an end that is not ready. */
void wireup_start(struct cpu *cpu, struct peer *peer);
/* A wireup message has arrived; 'what' is what the other end has sent. */
void wireup_arrived(struct cpu *cpu, struct peer *peer, uint32_t what);

/* ---- inbox.c ---- */

void inbox_add(struct message *message);
/* A pass through the inbox; the end of it is when there is no message to take. */
void inbox_begin(struct inbox *inbox);
struct message *inbox_take(struct inbox *inbox);

/* ---- protocol.c: eager and rendezvous messages ---- */

void protocol_send(struct cpu *cpu, uint32_t op);
void protocol_receive(struct cpu *cpu, uint32_t op);
/* Handles a message from the inbox. */
void protocol_arrived(struct cpu *cpu, struct message *message);
/* A rendezvous is over. */
void protocol_release_memory(struct cpu *cpu, uint32_t op);
/* The message is in a slot of its receiver. */
void protocol_sent(struct cpu *cpu, const struct message *message);

struct message *protocol_new_message(struct peer *from, enum message_kind kind);
void protocol_free_message(struct message *message);

/* ---- what they share ---- */

struct replay_state {
    struct goal *goal;
    struct rank *ranks;
    uint32_t ranks_per_node;
    uint64_t eager_limit; /* between nodes */
    uint32_t devices;     /* of a node */
    uint32_t ports;       /* of a device */
    uint32_t paths;       /* ports of a node */
    uint32_t rails;       /* of a connection */
    const struct rails_policy *policy;
    uint64_t unfinished; /* ranks */
    uint64_t ops_left;
    uint64_t unmatched; /* messages that have been sent and have not met a receive */
    uint64_t connections;
    uint32_t next_qpn;
    struct pool messages, cqes, receives, peers, transfers, sents;
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
