/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HCA_TRAFFIC_H
#define HCA_TRAFFIC_H

/* What passes a port, in octets from LRH to ICRC and in packets. Each QP counts in cache lines that
 * only one side writes, so that counting moves no line between processors. */

#include "hca/segment.h"

/* Adds without a locked instruction: for counters that one thread writes at a time. */
static inline void traffic_add(_Atomic uint64_t *counter, uint64_t n)
{
    store_relaxed(counter, load_relaxed(counter) + n);
}

/* Moves the counts of a QP, or of all QPs in a chunk of the directory, to the totals of their
 * ports: before the QP is freed or changes its port. */
void traffic_retire(struct shared_qp *qp);
void traffic_retire_chunk(uint64_t chunk);

/* Everything that has passed a port since the fabric exists. */
void traffic_of_port(uint16_t lid, struct traffic *sum);

#endif
