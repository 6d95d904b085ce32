/* SPDX-License-Identifier: BSD-2-Clause */
/* The data of long messages between processes of one node. The receiver copies them out of the
 * sender's memory; both copy if there is enough; fragments go through shared memory where the
 * kernel forbids such copies. */
#ifndef MTL_INTRANODE_H
#define MTL_INTRANODE_H

#include "mtl/rendezvous.h"

/* Receives data that lie at 'peer_address' of the sender, or lets the sender copy them while the
 * program computes; the transfer may be deferred. Returns 1 if it has done something. */
int intranode_receive(struct transfer *transfer);

/* If the program waits, copies what senders have left. Returns how many transfers that were. */
int intranode_progress(void);

/* Forgets an invited transfer that has ended. */
void intranode_withdraw(struct transfer *transfer);

void intranode_arrived(const struct wire_header *header, const void *body);

/* Sends the remaining fragments. Returns how many were sent; the rest is deferred. */
int intranode_send_fragments(struct transfer *transfer);

#endif
