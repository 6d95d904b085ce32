/* SPDX-License-Identifier: BSD-2-Clause */
/* Sender and receiver copy the chunks of one message at the same time. The receiver claims chunks
 * from the front and the sender from the back, so that each mostly touches memory that it touched
 * last time; a process that is busy elsewhere claims none. The whole state is one word: the number
 * of the message (reused only after 2^32 messages), and the first and the end of the chunks that
 * nobody has claimed. */
#ifndef MTL_COOP_COPY_H
#define MTL_COOP_COPY_H

#include "util/util.h"

#include <stdatomic.h>

#define COOP_CHUNKS_MAX UINT16_MAX
#define COOP_NONE       (-1)

enum coop_end { COOP_FRONT, COOP_BACK };

typedef _Atomic uint64_t coop_word;

/* Called by the receiver only. Ends all claims on the previous message. Returns the new number. */
static inline uint32_t coop_start(coop_word *word, uint32_t chunks)
{
    uint32_t number = (atomic_load_explicit(word, memory_order_relaxed) >> 32) + 1;

    store_release(word, (uint64_t)number << 32 | chunks);
    return number;
}

/* Returns the index of a chunk that only the caller will copy, or COOP_NONE. */
static inline int coop_claim(coop_word *word, uint32_t number, enum coop_end end_of)
{
    uint64_t seen = load_acquire(word), wanted;
    uint32_t first, end;

    do {
        first = (seen >> 16) & COOP_CHUNKS_MAX;
        end = seen & COOP_CHUNKS_MAX;
        if (seen >> 32 != number || first == end)
            return COOP_NONE;
        wanted = end_of == COOP_FRONT ? seen + (1u << 16) : seen - 1;
    } while (!atomic_compare_exchange_weak_explicit(word, &seen, wanted, memory_order_acq_rel,
                                                    memory_order_acquire));
    return end_of == COOP_FRONT ? (int)first : (int)end - 1;
}

#endif
