/* SPDX-License-Identifier: BSD-2-Clause */
/* The shared-memory transport within a node. Each process has an inbox with a ring for every
 * sender: cells for short messages, and a data ring for longer ones. */
#ifndef MTL_SHARED_H
#define MTL_SHARED_H

#include "mtl/coop_copy.h"
#include "mtl/endpoint.h"

/* Creates the inbox of this process; returns its file descriptor, or -1. */
int shared_open(void);
void shared_close(void);

/* Handles all messages in the inbox. Returns how many. */
int shared_poll(void);

/* The next message of this peer has arrived. */
bool shared_has_more(const struct shared_peer *peer);

/* NULL if the peer's inbox cannot be mapped. */
struct shared_peer *shared_attach(const struct address *address);
void shared_detach(struct shared_peer *peer);

/* Whether a message of this size is faster through the ring than by a rendezvous, as far as its last
 * messages tell. */
bool shared_prefers_ring(struct shared_peer *peer, uint64_t size);

/* Asks the peer to offer long messages by rendezvous, or no longer. */
void shared_set_crowded(struct shared_peer *peer, bool crowded);

/* Whether all pieces of a message can be sent now. */
bool shared_has_room(struct shared_peer *peer, uint64_t size);

/* False if the ring is full. */
bool shared_send(struct shared_peer *peer, struct message *message);

/* Asks senders to wake the progress thread with the next message that wants an answer. */
void shared_arm(void);

/* A copy between this process and a peer. */
struct shared_copy {
    void *local;
    uint64_t remote;
    uint64_t length;
};

/* False if the kernel refuses. */
bool shared_read(struct shared_peer *peer, const struct shared_copy *copy);
bool shared_may_write(void);
bool shared_write(struct shared_peer *peer, const struct shared_copy *copy);

/* The coop_word for messages from the peer (NULL unless its memory has been read before), and for
 * messages to it. */
coop_word *shared_coop_recv_word(struct shared_peer *peer);
coop_word *shared_coop_send_word(struct shared_peer *peer);

#endif
