/* SPDX-License-Identifier: BSD-2-Clause */
/* Random numbers that a seed repeats on every machine. */
#ifndef UTIL_RANDOM_H
#define UTIL_RANDOM_H

#include <stdint.h>

/* Weyl sequence and mixing function of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom
 * Number Generators, 2014). Any first state will do. */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ull;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

/* From 0 up to, but not including, 1. */
static inline double random_fraction(uint64_t *state)
{
    return (random_next(state) >> 11) * 0x1p-53;
}

#endif
