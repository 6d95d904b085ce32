/* The modelled world: clocks, events, adapters, links, in the fabric's segment, which every process
 * of a modelled fabric maps at the same address. Only the thread that has the turn (turn.h) touches
 * it, so there is no lock in here. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "hca/layout.h"
#include "sim/explain.h"
#include "sim/faults.h"
#include "sim/inside.h"
#include "sim/parameters.h"
#include "sim/stats.h"

/* Far from where programs, sanitizers and the kernel put things. */
#define SIM_BASE_ADDRESS 0x200000000000ull

#define ENTITIES_MAX 1024
#define BLOCK_CLASSES 40

enum event_kind {
    EVENT_DOORBELL,         /* queue: a request was posted */
    EVENT_REQUEST_FETCHED,  /* queue: the adapter has it */
    EVENT_ENGINE,           /* engine: goes on with its message */
    EVENT_PACKET_READ,      /* flight: host memory begins to answer */
    EVENT_PACKET_READY,     /* flight: its payload is on the adapter */
    EVENT_PACKET_LEFT,      /* flight: its last bit is on the cable */
    EVENT_PACKET_AT_SWITCH, /* flight: its head has */
    EVENT_CABLE_FREE,       /* cable: a packet has left the switch by it */
    EVENT_PACKET_ARRIVED,   /* flight: argument is the stage of receiving */
    EVENT_PACKET_TAKEN,     /* flight: the receiver has looked at it */
    EVENT_DELIVER,          /* flight: the message is visible in memory */
    EVENT_COMPLETE,         /* message: its completion is visible */
    EVENT_RESPOND,          /* queue: the answer to a read is due */
    EVENT_ACK_WAITED,       /* queue: may send again */
    EVENT_TIMEOUT,          /* queue */
    EVENT_KINDS,
};

struct event {
    uint64_t time;
    uint64_t order; /* of creation: decides between equal times */
    void *object;
    uint32_t argument;
    uint32_t kind;
};

struct event_queue {
    struct event *heap;
    uint32_t count;
    uint32_t room;
    uint64_t next_order;
};

enum entity_state {
    ENTITY_FREE,
    ENTITY_RUNNING,
    ENTITY_READY,   /* has something to do at its clock */
    ENTITY_PARKED,  /* until something of its process changes */
    ENTITY_BLOCKED, /* the same, and waking it takes an interrupt */
    ENTITY_TOGETHER, /* waits for others outside the modelled world */
    ENTITY_WAITING, /* until its deadline, or something that its 'waits_for' names */
    ENTITY_OUT,     /* sleeps in the kernel, for what nobody knows here, and has lost the turn */
};

/* A thread that takes part. */
struct entity {
    _Atomic uint32_t state;
    _Atomic uint32_t wake; /* futex */
    atomic_bool awaits_turn; /* asleep on it, or about to be */
    uint32_t proc;         /* slot in the segment */
    uint32_t process;      /* proc_word() of it */
    uint32_t order;        /* decides between equal clocks */
    uint32_t quiet_polls;  /* empty ones in a row, with no change of its process meanwhile */
    uint32_t changes;      /* of its process, so far */
    bool woken;            /* not only tired of waiting */
    bool spins;      /* looks at memory, too */
    bool only_polls; /* rests until there is a completion: memory alone does not matter to it */
    uint32_t round;        /* of waiting together */
    uint64_t clock;
    uint64_t rested_at;
    uint64_t period; /* between two looks of a parked one; what waking a blocked one takes */

    bool watched; /* may sleep in ways that are not seen */

    /* of a program that knows nothing of all this */
    bool guest;
    bool known_by_pid; /* it has no slot in the segment, not yet or no longer */
    int32_t pid, tid;
    uint32_t number;    /* no other guest has it, and it has the same in every run */
    uint32_t waits_for; /* bits of enum turn_stir */
    uint64_t deadline;
    uint64_t calls;
    uint64_t acted_at; /* its last call that others could notice, or that could notice others */
    uint64_t shown_at; /* its last hand-over */
};

/* All threads of a group wait for each other by other means, and go on at the same time. */
struct together {
    uint32_t wanted;
    uint32_t arrived;
    uint32_t ended;
    uint32_t round;
    uint64_t latest;
};

/* A send completion on its way into the memory of its process. */
struct note {
    struct note *next;
    uint64_t qp; /* hca_qp in the address space of its process */
    uint64_t wr_id;
    uint32_t sq_index;
    uint32_t byte_len;
    uint16_t flags;
    uint8_t opcode;
    uint8_t status;
};

struct inbox {
    struct note *first;
    struct note *last;
};

/* Free blocks of one size, for what comes and goes. */
struct pool {
    void *free;
    uint32_t size;
    uint64_t used;
};

struct port;          /* models/hca.h */
struct fabric_switch; /* models/switch.c */

struct fabric {
    uint32_t leaves, spines;
    struct fabric_switch *switches; /* leaves first */
};

struct queue; /* sim/queue.h */

struct world {
    struct parameters parameters;
    struct faults faults;
    struct explain explain;
    struct stats stats;
    struct inside inside;
    uint64_t trace_count; /* messages and packets in the trace */
    struct event_queue events;
    uint64_t now;
    uint64_t events_run;
    _Atomic uint32_t turn; /* entity + 1, 0: nobody's */
    struct shm_lock join_lock;
    uint32_t entity_high;
    bool woken; /* somebody, by the event that runs */
    uint32_t guest_count; /* so far */
    int32_t guest_core;   /* all of them run there; -1: not decided */
    struct entity entities[ENTITIES_MAX];
    struct together together;
    struct inbox inboxes[MAX_PROCS];
    struct pool notes, flights, messages, queues;
    struct pool blocks[BLOCK_CLASSES]; /* of powers of two, for payloads */
    char *fresh; /* memory not yet given to a pool */
    uint64_t fresh_left;
    uint32_t port_count;
    struct port *ports; /* by LID, from 1 */
    struct fabric fabric;
    uint32_t lane_weights[LANES_MAX];
    struct queue **queue_table; /* by index of the QP number */
};

extern struct world *world;

/* Finds the world of the segment we are attached to, or makes it. Returns 0 or an errno value with
 * the reason logged. */
int world_attach(void);

/* Zeroed memory that lives as long as the fabric. */
void *world_alloc(uint64_t size);

void *pool_take(struct pool *pool);
void pool_give(struct pool *pool, void *block);

/* Blocks of any size. */
void *block_take(uint64_t size);
void block_give(void *block, uint64_t size);

/* Puts an event into the queue. */
void event_at(uint64_t time, enum event_kind kind, void *object, uint32_t argument);
bool event_next_time(uint64_t *time);
/* Takes the first one out. */
void event_pop(struct event *event);
void event_dispatch(const struct event *event);

#endif
