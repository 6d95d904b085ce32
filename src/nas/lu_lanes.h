/* SPDX-License-Identifier: BSD-2-Clause */
/* Masks of lanes, and the neighbours of rows that are stored side by side in lanes. */
#ifndef NAS_LU_LANES_H
#define NAS_LU_LANES_H

#include "lu.h"

#include <string.h>

#define lu_inline static inline __attribute__((always_inline))

typedef int64_t lu_choice __attribute__((vector_size(LU_LANES * sizeof(int64_t))));

/* Which lanes have a point between the boundaries at a slot. */
lu_inline lu_choice lu_inner(const struct lu *lu, int block, int slot)
{
    lu_choice x, y;

    memcpy(&x, &lu->inner_x[lu_backwards(lu, slot)], sizeof(x));
    memcpy(&y, &lu->inner_y[block * LU_LANES], sizeof(y));
    return x & y;
}

lu_inline lu_lanes lu_choose(lu_choice choice, lu_lanes yes, lu_lanes no)
{
    return (lu_lanes)(((lu_choice)yes & choice) | ((lu_choice)no & ~choice));
}

/* The rows 'distance' above those of a block: most of them are in the same block, 'distance' slots
 * ahead; the others are in the next block, LU_LANES slots before that. For rows below it is the
 * other way round. */
lu_inline lu_lanes lu_rows_beside(int distance, lu_lanes same, lu_lanes next)
{
    switch (distance) {
    case -2:
        return __builtin_shufflevector(next, same, 6, 7, 8, 9, 10, 11, 12, 13);
    case -1:
        return __builtin_shufflevector(next, same, 7, 8, 9, 10, 11, 12, 13, 14);
    case 1:
        return __builtin_shufflevector(same, next, 1, 2, 3, 4, 5, 6, 7, 8);
    default:
        return __builtin_shufflevector(same, next, 2, 3, 4, 5, 6, 7, 8, 9);
    }
}

/* Loops over slots prefetch LU_AHEAD slots ahead: the hardware prefetcher follows too few rows. */
#define LU_AHEAD 8

lu_inline void lu_prefetch(const struct lu_slot *slot)
{
#pragma GCC unroll 5
    for (int m = 0; m < LU_COMPONENTS; m++)
        __builtin_prefetch(&slot->component[m]);
}

#endif
