/* Which bytes of a message go over which rail. A rail is a queue pair on a port of an adapter; a
 * set is the rails to one peer. Pure bookkeeping: no verbs, no MPI, no clock, no allocation; times
 * are passed in, in nanoseconds, and the same calls give the same plans. Nothing here locks:
 * whoever shares a set or a traffic between threads holds a lock of their own around each call. */
#ifndef RAILS_RAILS_H
#define RAILS_RAILS_H

#include <stdbool.h>
#include <stdint.h>

#define RAILS_MAX 32

/* What kind of communication a message belongs to, as far as the sender can tell. */
enum rails_class {
    RAILS_BLOCKING,
    RAILS_NONBLOCKING,
    RAILS_PERSISTENT,
    RAILS_COLLECTIVE,
    RAILS_CLASSES,
};

extern const char *const rails_class_names[RAILS_CLASSES];

struct rail {
    uint32_t adapter;
    uint32_t port;
    uint32_t qp;   /* which of the queue pairs on that port */
    uint32_t load; /* index of the port in rails_traffic */
    bool up;
    uint32_t messages; /* given to it and not completed */
    uint32_t rated;    /* of them, those of long messages: the end of others is often heard late */
    uint64_t bytes;    /* of those */
    bool warm;         /* has been measured once, which says little */
    double rate;       /* measured since, bytes per nanosecond; 0 until something was */
    uint64_t since_ns; /* begin of what is being measured now */
    uint64_t served;   /* bytes of long messages completed since then */
};

/* What all rails of a process on one port have to carry of long messages. */
struct rails_port {
    uint32_t adapter;
    uint32_t port;
    uint64_t bytes;
};

struct rails_policy;

struct rails_limits {
    uint64_t stripe_threshold; /* shorter messages are never cut */
    uint64_t minimum_stripe;   /* no piece is shorter, unless it is the whole message */
    uint64_t alignment;        /* every piece but the last starts and ends at a multiple of it */
    uint64_t stripe_cost_ns;   /* what one more piece costs an adapter, for 'adaptive' */
    uint32_t bound;            /* the rail of 'binding', modulo those that are up */
};

/* What all sets of a process have in common: how they are scheduled, and how many messages are
 * under way at a time, which is what 'adaptive' learns from. */
struct rails_traffic {
    const struct rails_policy *policy;
    struct rails_limits limits;
    uint64_t begun; /* messages long enough to be cut: short ones are often known to have ended */
    uint64_t ended; /* only long after */
    double overlap[RAILS_CLASSES]; /* how many others of them share the life of one, on average */
    uint32_t sets;
    uint32_t port_count;
    struct rails_port port[RAILS_MAX];
};

struct rails_set {
    struct rails_traffic *traffic;
    uint32_t count;
    uint32_t next; /* where round robin goes on */
    uint32_t home; /* where messages go that are alone, modulo those that are up */
    struct rail rail[RAILS_MAX];
};

struct rails_piece {
    uint64_t offset;
    uint64_t length;
    uint32_t rail;
    bool rated; /* of a long message: not shorter than the striping threshold */
};

/* A message under way. Pieces are in the order of their offsets; a message of no bytes has one
 * piece of no bytes. */
struct rails_plan {
    enum rails_class class;
    uint32_t count;
    uint64_t begun;   /* long messages of the process before this one */
    uint64_t sharing; /* of them, those still under way */
    struct rails_piece piece[RAILS_MAX];
};

struct rails_message {
    enum rails_class class;
    uint64_t size;
};

struct rails_policy {
    const char *name;
    const char *summary;
    /* At least one rail is up. Fills plan->piece and plan->count. */
    void (*plan)(struct rails_set *set, const struct rails_message *message,
                 struct rails_plan *plan);
};

/* Every policy, ends with NULL; and their names as an option lists them. */
extern const struct rails_policy *const rails_policies[];
#define RAILS_POLICY_NAMES   "binding round-robin striping weighted epc adaptive"
#define RAILS_DEFAULT_POLICY "epc"

const struct rails_policy *rails_policy_find(const char *name);

/* Limits that suit adapters at large: what holds when nothing else is asked for. */
#define RAILS_STRIPE_THRESHOLD (16 << 10)
#define RAILS_MINIMUM_STRIPE   (8 << 10)
#define RAILS_STRIPE_COST_NS   1000
extern const struct rails_limits rails_default_limits;

void rails_traffic_init(struct rails_traffic *traffic, const struct rails_policy *policy,
                        const struct rails_limits *limits);
void rails_set_init(struct rails_set *set, struct rails_traffic *traffic);

/* Returns the number of the new rail, which is up, or -1 if the set is full. */
int rails_add(struct rails_set *set, uint32_t adapter, uint32_t port, uint32_t qp);

/* Once per message, short ones too. False if no rail is up. */
bool rails_plan(struct rails_set *set, const struct rails_message *message,
                struct rails_plan *plan);

/* A plan for bytes whose rail failed: like rails_plan(), but the message is not a new one. */
bool rails_replan(struct rails_set *set, const struct rails_message *message,
                  struct rails_plan *plan);

/* A rail has each piece from the time that it is given to it, though it may wait to be posted,
 * until it is completed; one that failed is completed, too, with 'ok' false. */
void rails_given(struct rails_set *set, const struct rails_piece *piece, uint64_t now_ns);
void rails_completed(struct rails_set *set, const struct rails_piece *piece, bool ok,
                     uint64_t now_ns);

/* Once per message that rails_plan() began, when all its pieces are complete. */
void rails_ended(struct rails_set *set, const struct rails_plan *plan);

/* The rail is not used again until rails_restored(). What was outstanding on it is forgotten: no
 * rails_completed() follows for it. */
void rails_failed(struct rails_set *set, uint32_t rail);
void rails_restored(struct rails_set *set, uint32_t rail);

uint32_t rails_up(const struct rails_set *set);

#endif
