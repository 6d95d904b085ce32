/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HCA_BOUNCE_H
#define HCA_BOUNCE_H

/* Blocks in the segment for payloads of medium size: two copies, no system call. */

#include "hca/objects.h"

/* Takes a free block in memory of process `proc` and records it in the CQE; NULL: none is free. */
struct bounce_block *bounce_take(unsigned proc, struct cqe *note);

/* For the receiver. */
struct bounce_block *bounce_find(const struct cqe *note);
void bounce_return(const struct cqe *note);
/* Frees the chunks of dead senders, once all messages in them have been read. */
void bounce_free_abandoned(void);

void bounce_forget(void);

#endif
