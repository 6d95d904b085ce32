/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TRANSPORT_PSN_H
#define TRANSPORT_PSN_H

/* Packet sequence numbers: 24 bits, and they wrap (IBA volume 1, 9.7.1). Two of
 * them can be ordered only if they are less than half the space apart, so compare distances. */

#include <stdint.h>

#define PSN_MASK 0xffffffu
#define PSN_HALF 0x800000u

static inline uint32_t psn_add(uint32_t psn, uint32_t n)
{
    return (psn + n) & PSN_MASK;
}

/* Steps from `from` forward to `to`. */
static inline uint32_t psn_distance(uint32_t from, uint32_t to)
{
    return (to - from) & PSN_MASK;
}

#endif
