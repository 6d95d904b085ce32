/* The modelled world: clocks, events, adapters, links, in the fabric's segment, which every process
 * of a modelled fabric maps at the same address. Only the thread that has the turn (turn.h) touches
 * it, so there is no lock in here. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "hca/layout.h"
#include "sim/observe/explain.h"
#include "sim/adapter/faults.h"
#include "sim/observe/observe.h"
#include "sim/adapter/parameters.h"
#include "sim/observe/stats.h"

/* Far from where programs, sanitizers and the kernel put things. */
#define SIM_BASE_ADDRESS 0x200000000000ull

#define VTHREADS_MAX 1024
#define BLOCK_CLASSES 40

enum event_kind {
    EVENT_DOORBELL,         /* queue: a request was posted */
    EVENT_WQE_FETCHED,  /* queue: the adapter has it */
    EVENT_ENGINE,           /* engine: goes on with its message */
    EVENT_PACKET_READ,      /* flight: host memory begins to answer */
    EVENT_PACKET_READY,     /* flight: its payload is on the adapter */
    EVENT_PACKET_LEFT,      /* flight: its last bit is on the link */
    EVENT_PACKET_AT_SWITCH, /* flight: its head has */
    EVENT_LINK_FREE,       /* link: a packet has left the switch by it */
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

enum vthread_state {
    VTHREAD_FREE,
    VTHREAD_RUNNING,
    VTHREAD_READY,   /* has something to do at its clock */
    VTHREAD_POLLING,  /* until something of its process changes */
    VTHREAD_BLOCKED, /* the same, and waking it takes an interrupt */
    VTHREAD_IN_BARRIER, /* waits for others outside the modelled world */
    VTHREAD_WAITING, /* until its deadline, or something that its 'waits_for' names */
    VTHREAD_OUTSIDE,     /* sleeps in the kernel, for what nobody knows here, and has lost the turn */
};

/* A thread that takes part. */
struct vthread {
    _Atomic uint32_t state;
    _Atomic uint32_t wake; /* futex */
    atomic_bool waits_to_run; /* asleep on it, or about to be */
    uint32_t proc;         /* slot in the segment */
    uint32_t process;      /* proc_word() of it */
    uint32_t order;        /* decides between equal clocks */
    uint32_t empty_polls;  /* empty ones in a row, with no change of its process meanwhile */
    uint32_t changes;      /* of its process, so far */
    bool woken;            /* not only tired of waiting */
    bool spins;      /* looks at memory, too */
    bool only_polls; /* rests until there is a completion: memory alone does not matter to it */
    uint32_t round;        /* of waiting barrier */
    uint64_t clock;
    uint64_t idle_since;
    uint64_t period; /* between two looks of a parked one; what waking a blocked one takes */

    bool watched; /* may sleep in ways that are not seen */

    /* of a program that knows nothing of all this */
    bool guest;
    bool known_by_pid; /* it has no slot in the segment, not yet or no longer */
    int32_t pid, tid;
    uint32_t number;    /* no other guest has it, and it has the same in every run */
    uint32_t waits_for; /* bits of enum sched_notify */
    uint64_t deadline;
    uint64_t calls;
    uint64_t acted_at; /* its last call that others could notice, or that could notice others */
    uint64_t shown_at; /* its last hand-over */
};

/* All threads of a group wait for each other by other means, and go on at the same time. */
struct vthread_barrier {
    uint32_t wanted;
    uint32_t arrived;
    uint32_t ended;
    uint32_t round;
    uint64_t latest;
};

/* A send completion on its way into the memory of its process. */
struct sim_cqe {
    struct sim_cqe *next;
    uint64_t hca_qp; /* hca_qp in the address space of its process */
    uint64_t wr_id;
    uint32_t sq_index;
    uint32_t byte_len;
    uint16_t flags;
    uint8_t opcode;
    uint8_t status;
};

struct sim_cqe_list {
    struct sim_cqe *first;
    struct sim_cqe *last;
};

/* Free blocks of one size, for what comes and goes. */
struct pool {
    void *free;
    uint32_t size;
    uint64_t used;
};

struct sim_port;          /* models/hca.h */
struct fabric_switch; /* models/switch.c */

struct fabric {
    uint32_t leaves, spines;
    struct fabric_switch *switches; /* leaves first */
};

struct sim_qp; /* sim/queue.h */

struct world {
    struct parameters parameters;
    struct faults faults;
    struct explain explain;
    struct stats stats;
    struct observe inside;
    uint64_t trace_count; /* messages and packets in the trace */
    struct event_queue events;
    uint64_t now;
    uint64_t events_run;
    _Atomic uint32_t turn; /* vthread + 1, 0: nobody's */
    struct shm_lock join_lock;
    uint32_t vthread_high;
    bool woken; /* somebody, by the event that runs */
    uint32_t guest_count; /* so far */
    int32_t guest_core;   /* all of them run there; -1: not decided */
    struct vthread vthreads[VTHREADS_MAX];
    struct vthread_barrier barrier;
    struct sim_cqe_list inboxes[MAX_PROCS];
    struct pool notes, packets, messages, queues;
    struct pool blocks[BLOCK_CLASSES]; /* of powers of two, for payloads */
    char *fresh; /* memory not yet given to a pool */
    uint64_t fresh_left;
    uint32_t port_count;
    struct sim_port *ports; /* by LID, from 1 */
    struct fabric fabric;
    uint32_t vl_weights[VLS_MAX];
    struct sim_qp **qp_table; /* by index of the QP number */
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
