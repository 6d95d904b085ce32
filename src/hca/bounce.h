#ifndef HCA_BOUNCE_H
#define HCA_BOUNCE_H

/* Blocks in the segment for payloads of medium size: two copies, but no system call. */

#include "hca/objects.h"

/* A free block in memory of process `proc`, or NULL; noted in the entry. */
struct bounce_block *bounce_take(unsigned proc, struct cqe *note);

/* For the receiver. */
struct bounce_block *bounce_find(const struct cqe *note);
void bounce_return(const struct cqe *note);
/* Frees the chunks of senders that are gone, once everything in them has been read. */
void bounce_free_abandoned(void);

void bounce_forget(void);

#endif
