/* What is said, and what follows from it: short messages at once, long ones after they have been
 * matched (rendezvous.h). */
#ifndef MTL_PROTOCOL_H
#define MTL_PROTOCOL_H

#include "mtl/endpoint.h"

/* A message that nobody has asked for yet. */
struct unexpected {
    struct match_message match;
    struct endpoint *endpoint;
    uint64_t size;
    struct mtl_request *own; /* sent by this process to itself, and not copied */
    struct wire_offer offer; /* if 'offered', else data follow */
    bool offered;
    bool synchronous;
    uint64_t cookie;
    char data[];
};

int protocol_init(void);
void protocol_free(void);

/* Begins a send. */
void protocol_send(struct mtl_request *request);

/* Sends the message of a request that had to wait; false if there still is no room. */
bool protocol_send_waiting(struct mtl_request *request);

/* Begins a receive. */
void protocol_receive(struct mtl_request *request);

/* The same, of a message that has been taken out. */
void protocol_receive_matched(struct mtl_request *request, struct unexpected *message);

/* Something came from another process. */
void protocol_arrived(struct endpoint *endpoint, const struct wire_header *header,
                      const void *body);

/* Facts about this process. */
uint32_t protocol_slot_size(void);
bool protocol_slots_are_written(void);
uint64_t protocol_own_name(void);

/* So many connections more (or less) are being brought up. */
void protocol_greeting(int change);
bool protocol_is_greeting(void);

#endif
