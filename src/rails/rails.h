/* SPDX-License-Identifier: BSD-2-Clause */
/* Rail scheduling: which bytes of a message go over which rail. A rail is a queue pair on a port of
 * an adapter; a set holds the rails to one peer. Pure bookkeeping: no verbs, no MPI, no clock, no
 * allocation. Times are passed in, in nanoseconds, so equal calls give equal plans. No locks:
 * callers that share a set or a traffic between threads serialize their calls. */
#ifndef RAILS_RAILS_H
#define RAILS_RAILS_H

#include <stdbool.h>
#include <stdint.h>

#define RAILS_MAX 32

/* The kind of communication that a message belongs to. */
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
    uint32_t messages; /* assigned to it and not completed */
    uint32_t rated;    /* of them, long ones: completions of short ones are often seen late */
    uint64_t bytes;    /* of the long ones */
    bool warm;         /* measured once; the first rate is discarded */
    double rate;       /* bytes per nanosecond; 0 until measured */
    uint64_t since_ns; /* start of the current measurement */
    uint64_t served;   /* bytes of long messages completed since then */
};

/* Outstanding bytes of long messages on one port, of all rails of the process. */
struct rails_port {
    uint32_t adapter;
    uint32_t port;
    uint64_t bytes;
};

struct rails_policy;

struct rails_limits {
    uint64_t stripe_threshold; /* shorter messages are never striped */
    uint64_t minimum_stripe;   /* no stripe is shorter, unless it is the whole message */
    uint64_t alignment;        /* every stripe starts at a multiple of it */
    uint64_t stripe_cost_ns;   /* cost of one more stripe for an adapter, for 'adaptive' */
    uint32_t bound;            /* the rail of 'binding', modulo the number of rails up */
};

/* Shared by all sets of a process: the policy, and how many messages are in flight at a time, from
 * which 'adaptive' learns. */
struct rails_traffic {
    const struct rails_policy *policy;
    struct rails_limits limits;
    uint64_t begun; /* long messages only: completions of short ones are often seen late */
    uint64_t ended;
    double overlap[RAILS_CLASSES]; /* long messages in flight beside one, on average */
    uint32_t sets;
    uint32_t port_count;
    struct rails_port port[RAILS_MAX];
};

struct rails_set {
    struct rails_traffic *traffic;
    uint32_t count;
    uint32_t next; /* where round robin continues */
    uint32_t home; /* the rail of a message that is alone, modulo the number of rails up */
    struct rail rail[RAILS_MAX]; /* last: memory may end behind the 'count' rails that are used */
};

struct rails_stripe {
    uint64_t offset;
    uint64_t length;
    uint32_t rail;
    bool rated; /* belongs to a long message: at least the striping threshold */
};

/* A message in flight. Stripes are sorted by offset; an empty message has one empty stripe. */
struct rails_plan {
    enum rails_class class;
    uint32_t count;
    uint64_t begun;   /* long messages of the process before this one */
    uint64_t sharing; /* of them, those still in flight */
    struct rails_stripe stripe[RAILS_MAX];
};

struct rails_message {
    enum rails_class class;
    uint64_t size;
};

struct rails_policy {
    const char *name;
    const char *summary;
    /* At least one rail is up. Fills plan->stripe and plan->count. */
    void (*plan)(struct rails_set *set, const struct rails_message *message,
                 struct rails_plan *plan);
};

/* All policies, terminated by NULL; and their names, as an option lists them. */
extern const struct rails_policy *const rails_policies[];
#define RAILS_POLICY_NAMES   "binding round-robin striping weighted epc adaptive"
#define RAILS_DEFAULT_POLICY "epc"

const struct rails_policy *rails_policy_find(const char *name);

/* Default limits. */
#define RAILS_STRIPE_THRESHOLD (16 << 10)
#define RAILS_MINIMUM_STRIPE   (8 << 10)
#define RAILS_STRIPE_COST_NS   1000
extern const struct rails_limits rails_default_limits;

void rails_traffic_init(struct rails_traffic *traffic, const struct rails_policy *policy,
                        const struct rails_limits *limits);
void rails_set_init(struct rails_set *set, struct rails_traffic *traffic);

/* Returns the index of the new rail, which is up, or -1 if the set is full. */
int rails_add(struct rails_set *set, uint32_t adapter, uint32_t port, uint32_t qp);

/* Called once for each message, short ones included. False if no rail is up. */
bool rails_plan(struct rails_set *set, const struct rails_message *message,
                struct rails_plan *plan);

/* Plans bytes again whose rail has failed: like rails_plan(), but does not count a new message. */
bool rails_replan(struct rails_set *set, const struct rails_message *message,
                  struct rails_plan *plan);

/* A stripe loads its rail from its assignment, even if it is posted later, until its completion. A
 * stripe that failed is completed with 'ok' false. */
void rails_given(struct rails_set *set, const struct rails_stripe *stripe, uint64_t now_ns);
void rails_completed(struct rails_set *set, const struct rails_stripe *stripe, bool ok,
                     uint64_t now_ns);

/* Called once for each rails_plan(), when all its stripes are complete. */
void rails_ended(struct rails_set *set, const struct rails_plan *plan);

/* The rail is not used again until rails_restored(). Its outstanding stripes are forgotten: no
 * rails_completed() may follow for them. */
void rails_failed(struct rails_set *set, uint32_t rail);
void rails_restored(struct rails_set *set, uint32_t rail);

uint32_t rails_up(const struct rails_set *set);

#endif
