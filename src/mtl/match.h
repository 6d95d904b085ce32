/* Which receive takes which message. Receives that wait and messages that nobody has asked for yet
 * are found by hash, wildcards included, so that neither gets slower with their number. Among those
 * that match the oldest counts. No MPI in here, no lock. */
#ifndef MTL_MATCH_H
#define MTL_MATCH_H

#include <stdbool.h>
#include <stdint.h>

/* A source or tag that a receive leaves open. An open tag stands for user tags, which are not
 * negative, only. */
#define MATCH_ANY (-1)

struct match_key {
    uint32_t context;
    int32_t source;
    int32_t tag;
};

struct match_queue;

struct match_link {
    struct match_link *next, *previous;
    struct match_queue *queue; /* NULL: not in any */
};

/* What asks for a message has one link; a message is in the queues of all the keys under which it
 * can be asked for, as far as anybody has ever asked in that way. */
enum { MATCH_EXACT, MATCH_ANY_TAG, MATCH_ANY_SOURCE, MATCH_ANY_BOTH, MATCH_KINDS };

struct match_receive {
    struct match_key key;
    uint64_t order;
    struct match_link link;
};

struct match_message {
    struct match_key key;
    struct match_link age; /* among all messages; in no queue */
    struct match_link link[MATCH_KINDS];
};

struct match_table {
    struct match_queue **buckets;
    uint32_t bucket_count;
    uint32_t queue_count;
};

struct matching {
    struct match_table receives;
    struct match_table messages;
    struct match_queue *spare;
    uint64_t order;
    uint64_t waiting[MATCH_KINDS]; /* receives, by what they leave open */
    uint64_t unexpected;
    struct match_link all; /* messages, oldest first: head of a ring */
    bool indexed[MATCH_KINDS];
};

/* Returns 0 or ENOMEM. */
int matching_init(struct matching *matching);
void matching_free(struct matching *matching);

/* Returns 0 or ENOMEM, and the receive waits for nothing then. */
int match_post(struct matching *matching, struct match_receive *receive);
void match_withdraw(struct matching *matching, struct match_receive *receive);
bool match_is_posted(const struct match_receive *receive);
bool match_is_waiting(const struct matching *matching); /* any receive */

/* A message has come: takes the receive that it is for, or returns NULL. */
struct match_receive *match_arrived(struct matching *matching, const struct match_key *key);

/* Keeps a message that nobody waits for. Returns 0 or ENOMEM. */
int match_keep(struct matching *matching, struct match_message *message);

/* The oldest message for that key, which may leave source and tag open; it stays. */
struct match_message *match_find(struct matching *matching, const struct match_key *key);
void match_take(struct matching *matching, struct match_message *message);

/* Calls for each receive that waits; 'call' may withdraw it. */
void match_each_receive(struct matching *matching,
                        void (*call)(struct match_receive *receive, void *argument),
                        void *argument);

#endif
