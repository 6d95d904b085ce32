/* SPDX-License-Identifier: BSD-2-Clause */
/* Up to which size a message to a peer goes through the data ring. The ring is faster than a
 * rendezvous if writing and reading take less time than the rendezvous with its system calls. That
 * depends on how far apart the two cores are, so the sender times its writes; reading is taken to
 * cost as much. A message goes in pieces: the receiver reads one while the sender writes the next.
 */
#ifndef MTL_RING_LIMIT_H
#define MTL_RING_LIMIT_H

#include "mtl/parameter_rows.h"

#include <stdbool.h>
#include <stdint.h>

#define RING_ALWAYS     (4u << 10) /* up to here no rendezvous is faster */
#define RING_PIECE      (32u << 10)
#define RING_WHOLE_MAX  (64u << 10)  /* of what cannot be cut into pieces */
#define RING_QUEUED_MAX (128u << 10) /* finds room as soon as the ring is empty */
/* One rendezvous, as measured: 4.4 us for 64 KB and 6.6 us for 128 KB, copied by both processes. */
#define RENDEZVOUS_NS          2100.0
#define RENDEZVOUS_NS_PER_BYTE 0.034
/* Writes, not a power of two: each piece of a message shall have its turn. Reading the clock takes
 * as long as copying 1 KB. */
#define RING_TIME_EVERY 7
#define RING_TRY_EVERY  256 /* messages beyond the limit: have the processes moved? */

struct ring_limit {
    uint64_t limit;
    double byte_ns; /* to write one into the ring, at the last timed write; 0: none yet */
    uint32_t writes, refusals;
    bool trying; /* the next write alone decides */
};

static inline void ring_limit_init(struct ring_limit *ring)
{
    *ring = (struct ring_limit){ .limit = MTL_SHARED_MEMORY_LIMIT_MAX };
}

static inline bool ring_limit_allows(struct ring_limit *ring, uint64_t size)
{
    if (size <= RING_ALWAYS || size <= ring->limit)
        return true;
    ring->trying = ++ring->refusals % RING_TRY_EVERY == 0;
    return ring->trying;
}

static inline bool ring_limit_wants_time(struct ring_limit *ring, uint64_t size)
{
    return size > RING_ALWAYS && (ring->trying || ring->writes++ % RING_TIME_EVERY == 0);
}

/* The longest message for which
 *     byte_ns * (size + its last piece) <= RENDEZVOUS_NS + RENDEZVOUS_NS_PER_BYTE * size
 */
static inline uint64_t ring_limit_for(double byte_ns)
{
    double slower = byte_ns - RENDEZVOUS_NS_PER_BYTE; /* for each byte than a rendezvous */
    double saved = RENDEZVOUS_NS - byte_ns * RING_PIECE;

    if (saved < slower * RING_PIECE)
        return RENDEZVOUS_NS / (slower + byte_ns);
    if (saved < slower * MTL_SHARED_MEMORY_LIMIT_MAX)
        return saved / slower;
    return MTL_SHARED_MEMORY_LIMIT_MAX;
}

/* An interrupted write takes any time: the faster of two tells more. */
static inline void ring_limit_learn(struct ring_limit *ring, uint64_t size, uint64_t ns)
{
    double byte_ns = (double)ns / size;
    double faster = ring->trying || byte_ns < ring->byte_ns ? byte_ns : ring->byte_ns;

    ring->byte_ns = byte_ns;
    ring->trying = false;
    ring->limit = ring_limit_for(faster);
}

#endif
