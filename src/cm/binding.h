/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CM_BINDING_H
#define CM_BINDING_H

/* Port bindings: which id of which process is bound to an address. Callers hold shared_lock(). */

#include "cm/mailbox.h"

#define BINDINGS_PER_CHUNK 512
#define BINDING_CHUNKS     128

enum binding_state { BINDING_FREE, BINDING_BOUND, BINDING_LISTENING };

struct cm_binding {
    uint32_t state;
    uint32_t node;
    struct cm_peer owner;
    struct cm_address address;
    uint16_t port_space;
    uint8_t reuse;
    uint8_t v6_only;
    int32_t backlog;
    int32_t pending; /* REQs that rdma_get_cm_event has not returned yet */
};

struct binding_table {
    _Atomic uint32_t high; /* every index in use is below */
    _Atomic uint64_t chunks[BINDING_CHUNKS];
};

/* Picks a free port if `wanted` has port 0. Returns 0, EADDRINUSE, EADDRNOTAVAIL or ENOMEM. */
int binding_add(struct cm_binding *wanted, unsigned *index);
void binding_remove(unsigned index);
int binding_listen(unsigned index, int backlog);
struct cm_binding *binding_at(unsigned index);

/* The listener that a REQ to `to` reaches, or NULL. */
struct cm_binding *binding_find_listener(uint16_t port_space, const struct cm_address *to,
                                         const struct cm_dev_addr *dev_addr);

/* The process slot of a listener that takes requests to `to`, or -1. Needs no lock, so that its
 * caller cannot wait: what it finds may have changed when the process looks again. */
int binding_find_process(uint16_t port_space, const struct cm_address *to);

#endif
