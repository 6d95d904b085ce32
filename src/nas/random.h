/* SPDX-License-Identifier: BSD-2-Clause */
/* The generator of the NAS report: x' = 5^13 x mod 2^46, a number in (0, 1) being x / 2^46. */
#ifndef NAS_RANDOM_H
#define NAS_RANDOM_H

#include <stdint.h>

#define RANDOM_SEED       314159265u
#define RANDOM_MULTIPLIER 1220703125u
#define RANDOM_MASK       ((UINT64_C(1) << 46) - 1)

static inline double random_next(uint64_t *x)
{
    *x = *x * RANDOM_MULTIPLIER & RANDOM_MASK;
    return (double)*x * 0x1p-46;
}

/* The state after 'steps' more numbers. */
static inline uint64_t random_jump(uint64_t x, uint64_t steps)
{
    for (uint64_t power = RANDOM_MULTIPLIER; steps; steps >>= 1) {
        if (steps & 1)
            x = x * power & RANDOM_MASK;
        power = power * power & RANDOM_MASK;
    }
    return x;
}

#endif
