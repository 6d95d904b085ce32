/* SPDX-License-Identifier: BSD-2-Clause */
/* Message matching. Posted receives and unexpected messages are found by hash, wildcards included,
 * in a time that does not depend on their number. The oldest match wins. No MPI calls, no lock. */
#ifndef MTL_MATCH_H
#define MTL_MATCH_H

#include <stdbool.h>
#include <stdint.h>

/* A wildcard source or tag. A wildcard tag matches user tags only, which are not negative. */
#define MATCH_ANY (-1)

struct match_key {
    uint32_t context;
    int32_t source;
    int32_t tag;
};

struct match_queue;

struct match_link {
    struct match_link *next, *previous;
    struct match_queue *queue; /* NULL: in none */
};

/* A receive is in one queue. A message is in a queue for each kind of key, exact or with wildcards,
 * that the program has used so far. */
enum { MATCH_EXACT, MATCH_ANY_TAG, MATCH_ANY_SOURCE, MATCH_ANY_BOTH, MATCH_KINDS };

struct match_receive {
    struct match_key key;
    uint64_t order;
    struct match_link link;
};

struct match_message {
    struct match_key key;
    uint32_t kinds;        /* a bit for each queue that the message is in */
    struct match_link age; /* in the list of all messages */
    struct match_link link[MATCH_KINDS];
};

struct match_table {
    struct match_queue **buckets;
    uint32_t bucket_count;
    uint32_t queue_count;
    struct match_queue *recent; /* that was looked for last; NULL if there is none, or it is gone */
};

struct matching {
    struct match_table receives;
    struct match_table messages;
    struct match_queue *spare;
    uint64_t order;
    uint64_t waiting[MATCH_KINDS]; /* posted receives of each kind */
    uint64_t unexpected;
    struct match_link all; /* all messages, oldest first: head of a ring */
    bool indexed[MATCH_KINDS];
};

/* Returns 0 or ENOMEM. */
int match_init(struct matching *matching);
void match_free(struct matching *matching);

/* Returns 0, or ENOMEM without posting the receive. */
int match_post(struct matching *matching, struct match_receive *receive);
void match_withdraw(struct matching *matching, struct match_receive *receive);
bool match_is_posted(const struct match_receive *receive);
bool match_any_posted(const struct matching *matching);

/* Removes and returns the receive that matches a message, or returns NULL. */
struct match_receive *match_arrived(struct matching *matching, const struct match_key *key);

/* Adds an unexpected message. Returns 0 or ENOMEM. */
int match_keep(struct matching *matching, struct match_message *message);

/* The oldest unexpected message that matches the key, which may have wildcards; it stays. */
struct match_message *match_find(struct matching *matching, const struct match_key *key);
void match_take(struct matching *matching, struct match_message *message);

/* Calls 'call' for each posted receive; it may withdraw the receive. */
void match_each_receive(struct matching *matching,
                        void (*call)(struct match_receive *receive, void *argument),
                        void *argument);

#endif
