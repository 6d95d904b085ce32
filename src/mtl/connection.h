/* The rails to one process: reliable queue pairs, brought up when the first message is to go.
 *
 * Each rail carries messages through a window of slots. A slot at the receiver is used again only
 * after the receiver has said how many messages it has taken out (in every message that goes back,
 * or by writing the number into a word of the sender), so that nothing is ever overrun, and memory
 * per process is bounded. */
#ifndef MTL_CONNECTION_H
#define MTL_CONNECTION_H

#include "mtl/endpoint.h"

struct piece;

enum work_kind {
    WORK_MESSAGE,
    WORK_RECEIVE,
    WORK_CREDIT,
    WORK_READ,
    WORK_LEAD,
    WORK_GREETING_IN,
    WORK_GREETING_OUT
};

/* What a completion is for. */
struct work {
    enum work_kind kind;
    uint32_t index;
    struct rail_link *link;
};

/* A message in a slot, until it is known to have arrived. */
struct sent {
    struct piece *piece; /* the data that went before it, if any */
    bool planned;        /* the policy has chosen the rail, and is told when it is over */
    enum rails_class class;
    uint32_t sequence; /* if planned */
    uint64_t begun, sharing;
    struct rails_piece rails;
};

struct rail_link {
    struct connection *connection;
    const struct path *path;
    struct ibv_qp *qp;
    uint32_t index;
    bool open;       /* its queue pair is connected: messages may come */
    bool up;         /* and go */
    bool shut_there; /* the other side has taken out all it ever will */
    bool shut_here;  /* so has this one, and has said so */

    uint32_t life; /* how often it was brought up again; what concerns another one is out of date */
    bool asked;    /* the other side for a queue pair, and not answered yet */
    uint64_t since, next_try, patience;

    uint32_t posted, completed, freed; /* messages sent, so far */
    uint32_t arrived;                  /* of them, so that the policy has been told */
    uint32_t credits_posted;
    uint32_t reads;
    char *staging;
    struct sent *sent;
    struct work *sends;
    struct work credit_work;
    struct work lead_work;
    struct piece *leading; /* only its beginning is under way */
    _Atomic uint32_t *credit; /* what the other side has taken out; it writes here */

    uint32_t consumed, told; /* messages received */
    char *ring;
    struct work *receives;

    uint64_t remote_ring, remote_credit;
    uint32_t remote_rkey;
};

enum connection_state { CONNECTION_NEW, CONNECTION_GREETING, CONNECTION_READY };

struct connection {
    struct endpoint *endpoint;
    struct connection *next;
    enum connection_state state;
    bool heard; /* the queue pairs know their peers */
    uint64_t next_greeting;
    struct ibv_ah *greeter;
    uint32_t window, slot_size, signal_interval;
    bool write_theirs, written_ours;
    uint32_t rail_count;
    struct rails_set set;
    struct rail_link *rails;
    char *memory;
    size_t memory_size;
    struct ibv_mr *regions[DEVICES_MAX];
    struct sent next_sent; /* its rail has been chosen, if 'planned' */
    uint32_t next_sequence, expected_sequence;
    uint16_t other_heard; /* what the other side said last of 'next_sequence' */
    struct held *held;    /* messages that came before their turn, in order */
};

/* ---- connection.c ---- */

struct connection *connection_new(struct endpoint *endpoint);
void connection_free(struct connection *connection);

/* All there are. */
extern struct connection *connections;

/* Brings it up; messages wait meanwhile. */
void connection_begin(struct connection *connection);

bool connection_send(struct connection *connection, struct message *message,
                     enum rails_class class);
bool connection_send_again(struct connection *connection, struct message *message);

/* A message came in. Those to be matched go on in the order in which they were sent, once each. */
void connection_arrived(struct connection *connection, const struct wire_header *header,
                        const void *body);

/* ---- greeting.c: how queue pairs learn of each other, by datagrams ---- */

struct greeting {
    uint64_t name;
    uint32_t heard; /* this side's queue pairs know their peers */
    uint32_t ready; /* and it knows that the other side's do */
    uint32_t rail_count;
    uint32_t unused;
    uint64_t memory;
    uint32_t rkeys[DEVICES_MAX];
    uint32_t qps[RAILS_MAX];
};

int greeter_open(uint32_t *number);
void greeter_close(void);
bool greeter_send(struct connection *connection, const struct greeting *greeting);
void greeter_completed(const struct ibv_wc *completion, const struct work *work);

/* Says it again to those who have not answered. */
void connections_greet_again(void);
uint64_t connections_next_greeting(void);
void connection_greeted(const struct greeting *greeting);

/* ---- rail.c ---- */

int rail_create(struct rail_link *link);
int rail_connect(struct rail_link *link, uint32_t number);
void rail_destroy(struct rail_link *link);

/* A new queue pair in place of the one that has failed; nothing has been sent or received on it. */
int rail_renew(struct rail_link *link);

bool rail_has_room(struct rail_link *link);
void rail_send(struct rail_link *link, struct message *message, const struct sent *sent);

/* Data, from one memory to the other. Writes are followed by a message on the same rail, and have
 * arrived when that has. */
struct remote_copy {
    uint64_t here, there;
    uint64_t length;
    uint32_t lkey, rkey;
};

void rail_write(struct rail_link *link, const struct remote_copy *copy);
/* The beginning of a piece; piece_led() is called when half of it has arrived. */
void rail_lead(struct rail_link *link, const struct remote_copy *copy, struct piece *piece);
bool rail_can_read(const struct rail_link *link);
void rail_read(struct rail_link *link, const struct remote_copy *copy, struct work *work);

/* Takes messages out of the slots of all rails. Returns how many. */
int rails_look(void);

/* Takes completions. Returns how many. */
int rails_poll(void);

/* Makes sure that failures are noticed; called now and then while there is nothing to do. */
void rails_probe(void);

/* Not used from here on; what is known not to have arrived goes over others. */
void rail_fail(struct rail_link *link, const char *reason);

/* ---- revival.c: rails that come back ---- */

/* It has failed, and is tried again later. */
void rail_await(struct rail_link *link);

/* Asks for those that could be up again. */
void rails_revive(void);

/* The other side speaks of a rail. */
void rail_arrived(struct connection *connection, enum wire_type type, const struct wire_rail *body);
void rail_tell(struct rail_link *link, enum wire_type type);

/* Something came over it, so the other side is connected. */
void rail_heard(struct rail_link *link);

/* ---- rail.c: what it says of one that has failed ---- */

void rail_down(struct rail_link *link);
void rail_shut(struct rail_link *link);

#endif
