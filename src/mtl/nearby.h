/* The data of long messages between processes of a node: copied by the receiver out of the sender's
 * memory; if they are many, by both at once; or in fragments where none of that is allowed. */
#ifndef MTL_NEARBY_H
#define MTL_NEARBY_H

#include "mtl/rendezvous.h"

/* The receive has matched; its data are at that address of the sender. */
void nearby_take(struct transfer *transfer, uint64_t from);

void nearby_arrived(const struct wire_header *header, const void *body);

/* Sends the fragments for which there was no room. Returns how many went. */
int nearby_go_on(struct transfer *transfer);

#endif
