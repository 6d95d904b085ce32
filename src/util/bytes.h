/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UTIL_BYTES_H
#define UTIL_BYTES_H

/* Integers of any width in network byte order. */

#include <stdint.h>

static inline void bytes_put(uint8_t *to, unsigned count, uint64_t value)
{
    for (unsigned i = count; i-- > 0; value >>= 8)
        to[i] = value;
}

static inline uint64_t bytes_get(const uint8_t *from, unsigned count)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < count; i++)
        value = value << 8 | from[i];
    return value;
}

#endif
