/* Parts of a message that two processes copy at once. The receiver takes them from the front and
 * the sender from the back, so that each mostly touches memory that it has touched the last time;
 * and whoever is busy elsewhere takes none. All of it is one word: which message (a number that no
 * other has for a long time), and the first and the end of the parts that nobody has taken. */
#ifndef MTL_CLAIMS_H
#define MTL_CLAIMS_H

#include "util/util.h"

#include <stdatomic.h>

#define CLAIMS_MAX UINT16_MAX
#define CLAIM_NONE (-1)

enum claims_end { CLAIM_FIRST, CLAIM_LAST };

typedef _Atomic uint64_t claims_word;

/* By the receiver alone; nothing of the message before can be taken any more. Returns the number.
 */
static inline uint32_t claims_open(claims_word *word, uint32_t parts)
{
    uint32_t number = (atomic_load_explicit(word, memory_order_relaxed) >> 32) + 1;

    store_release(word, (uint64_t)number << 32 | parts);
    return number;
}

/* A part that nobody else will get, or CLAIM_NONE. */
static inline int claims_take(claims_word *word, uint32_t number, enum claims_end which)
{
    uint64_t seen = load_acquire(word), wanted;
    uint32_t first, end;

    do {
        first = (seen >> 16) & CLAIMS_MAX;
        end = seen & CLAIMS_MAX;
        if (seen >> 32 != number || first == end)
            return CLAIM_NONE;
        wanted = which == CLAIM_FIRST ? seen + (1u << 16) : seen - 1;
    } while (!atomic_compare_exchange_weak_explicit(word, &seen, wanted, memory_order_acq_rel,
                                                    memory_order_acquire));
    return which == CLAIM_FIRST ? (int)first : (int)end - 1;
}

#endif
