/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CM_SHARED_H
#define CM_SHARED_H

/*
 * The state that the connection managers of a fabric share, in its segment: port bindings
 * (binding.h), and a mailbox for each process (mailbox.h).
 *
 * One lock guards both. A process empties its own mailbox under this lock before it sends, so two
 * messages of one connection never cross. The receiver's descriptor is raised under the lock too,
 * so a descriptor polls as readable exactly while an event is available.
 */

#include "cm/binding.h"
#include "cm/mailbox.h"
#include "hca/segment.h"

struct shared_root {
    struct shm_lock lock;
    struct binding_table bindings;
    struct mailbox mailboxes[MAX_PROCS];
};

extern struct shared_root *shared_root;

/* Returns 0 or an errno value. Call it before anything else here, and again after a fork. */
int shared_attach(void);
void shared_forget(void);

void shared_lock(void);
void shared_unlock(void);

#endif
