/* Processes of the same node, through shared memory. Each has an inbox with a ring for every
 * process that sends to it: cells that hold a short message, and a ring of bytes for the rest. */
#ifndef MTL_SHARED_H
#define MTL_SHARED_H

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

/* Copies out of the other's memory. False if that is not allowed here. */
bool shared_read(struct endpoint *endpoint, void *to, uint64_t from, uint64_t length);

#endif
