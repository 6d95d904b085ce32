#ifndef CM_WIRE_H
#define CM_WIRE_H

/*
 * What the connection managers of a fabric share: who is bound where, and a mailbox per process.
 *
 * One lock guards it all. Whoever sends has emptied its own mailbox under the same lock, so two
 * messages of one connection never cross; and the receiver's descriptor is raised under it too.
 * So a descriptor polls as readable exactly while there is an event to be had.
 */

#include "cm/address.h"

#include <infiniband/verbs.h>

#define WIRE_PRIVATE_MAX 216

enum wire_type {
    WIRE_REQUEST,
    WIRE_REPLY,
    WIRE_READY,
    WIRE_REJECT,
    WIRE_DISCONNECT,
    WIRE_LOOKUP,       /* datagram service */
    WIRE_LOOKUP_REPLY, /* reason 0: found */
    WIRE_MOVED,        /* the sender's id has another event channel now */
    WIRE_ESTABLISHED,  /* the passive side knows that it is connected: no WIRE_READY is needed */
};

/* One end of a connection: an id of a process, and the descriptor that wakes it. */
struct wire_peer {
    uint32_t proc;
    uint32_t generation;
    uint64_t id; /* 0: not known yet */
    int32_t fd;
    uint32_t notify;
};

struct wire_message {
    uint32_t type;
    uint32_t reason;
    struct wire_peer from;
    uint64_t to; /* 0: the id that came of the sender's request */
    struct cm_address src, dst;
    uint32_t qpn, psn, qkey;
    uint16_t lid;
    uint8_t rail;
    uint8_t responder_resources, initiator_depth;
    uint8_t flow_control, retry_count, rnr_retry_count;
    uint8_t srq;
    struct ibv_ece ece;
    uint8_t private_data[WIRE_PRIVATE_MAX];
};

enum binding_state { BINDING_FREE, BINDING_BOUND, BINDING_LISTENING };

struct wire_binding {
    uint32_t state;
    uint32_t node;
    struct wire_peer owner;
    struct cm_address address;
    uint16_t port_space;
    uint8_t reuse;
    uint8_t v6_only;
    int32_t backlog;
    int32_t pending; /* requests sent and not yet taken by rdma_get_cm_event */
};

/* Returns 0 or an errno value. To be called before anything below, and again after a fork. */
int wire_attach(void);
void wire_forget(void);

void wire_lock(void);
void wire_unlock(void);

/* All below: with the lock held. */

bool wire_peer_alive(const struct wire_peer *peer);
void wire_self(struct wire_peer *self);

/* Returns 0, ESRCH when the peer is gone, ENOMEM. */
int wire_send(const struct wire_peer *to, const struct wire_message *message, bool wake);
bool wire_receive(struct wire_message *message);

/* Finds a free port when none is asked for. Returns 0, EADDRINUSE, EADDRNOTAVAIL or ENOMEM. */
int wire_bind(struct wire_binding *wanted, unsigned *index);
void wire_unbind(unsigned index);
int wire_listen(unsigned index, int backlog);
struct wire_binding *wire_binding(unsigned index);

/* The listener that a request to `to` reaches, or NULL. */
struct wire_binding *wire_find_listener(uint16_t port_space, const struct cm_address *to,
                                        const struct cm_place *place);

#endif
