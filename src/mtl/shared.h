/* Processes of the same node, through shared memory. Each has an inbox with a ring for every
 * process that sends to it: cells that hold a short message, and a ring of bytes for the rest. */
#ifndef MTL_SHARED_H
#define MTL_SHARED_H

#include "mtl/claims.h"
#include "mtl/endpoint.h"

/* Makes the inbox of this process; returns its descriptor, or -1 if there cannot be one. */
int inbox_open(void);
void inbox_close(void);

/* Takes messages out. Returns how many. */
int inbox_look(void);

/* NULL if the other's inbox cannot be reached. */
struct shared_peer *shared_attach(const struct address *address);
void shared_detach(struct shared_peer *peer);

/* False if there is no room. */
bool shared_send(struct shared_peer *peer, struct message *message);

/* Copy out of the other's memory, and into it. False if that is not allowed here. */
struct memory_pair {
    void *here;
    uint64_t there;
    uint64_t length;
};

bool shared_read(struct shared_peer *peer, const struct memory_pair *pair);
bool shared_may_write(void);
bool shared_write(struct shared_peer *peer, const struct memory_pair *pair);

/* For the message that comes from there and that both copy; NULL unless its memory has been read
 * before. For one that goes there. */
claims_word *shared_claims_in(struct shared_peer *peer);
claims_word *shared_claims_out(struct shared_peer *peer);

#endif
