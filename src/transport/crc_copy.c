/* SPDX-License-Identifier: BSD-2-Clause */
/* A copy and the invariant CRC of what is copied, in one pass: with vectors of 64 bytes, it takes
 * as long as the CRC alone. */
#include "transport/crc.h"

#include <string.h>

static uint32_t copy_then_add(uint32_t crc, uint8_t *to, const uint8_t *from, size_t length)
{
    memcpy(to, from, length);
    return crc_invariant(crc, to, length);
}

#ifdef __x86_64__

#include <immintrin.h>

#define VECTOR_BYTES sizeof(__m512i)
#define VECTORS      4 /* at once: a multiplication takes a few cycles */
#define STEP_BYTES   (VECTORS * VECTOR_BYTES)
#define WITH_VECTORS __attribute__((target("avx512f,vpclmulqdq")))

/* To move the CRC of 16 bytes by n bits: x^(n+32) and x^(n-32) modulo the polynomial, for the lower
 * and upper eight bytes, with the lowest coefficient in bit 32. */
#define BY_STEP   0x1322d1430, 0x11542778a
#define BY_VECTOR 0x1c6e41596, 0x154442bd4

WITH_VECTORS static inline __m512i moved(__m512i remainder, __m512i by, __m512i next)
{
    __m512i low = _mm512_clmulepi64_epi128(remainder, by, 0x00);
    __m512i high = _mm512_clmulepi64_epi128(remainder, by, 0x11);

    return _mm512_xor_si512(_mm512_xor_si512(low, high), next);
}

WITH_VECTORS static inline __m512i copied(uint8_t *to, const uint8_t *from)
{
    __m512i vector = _mm512_loadu_si512(from);

    _mm512_storeu_si512(to, vector);
    return vector;
}

/* Copies a multiple of STEP_BYTES. `sum` is a vector with the CRC of everything before, and then of
 * everything. */
WITH_VECTORS static void copy_steps(uint8_t sum[VECTOR_BYTES], uint8_t *to, const uint8_t *from,
                                    size_t length)
{
    const __m512i by_step = _mm512_broadcast_i32x4(_mm_set_epi64x(BY_STEP));
    const __m512i by_vector = _mm512_broadcast_i32x4(_mm_set_epi64x(BY_VECTOR));
    __m512i sums[VECTORS], total;

    for (unsigned i = 0; i < VECTORS; i++)
        sums[i] = copied(to + i * VECTOR_BYTES, from + i * VECTOR_BYTES);
    sums[0] = moved(_mm512_loadu_si512(sum), by_vector, sums[0]);
    for (size_t at = STEP_BYTES; at < length; at += STEP_BYTES)
        for (unsigned i = 0; i < VECTORS; i++) {
            size_t next = at + i * VECTOR_BYTES;

            sums[i] = moved(sums[i], by_step, copied(to + next, from + next));
        }
    total = sums[0];
    for (unsigned i = 1; i < VECTORS; i++)
        total = moved(total, by_vector, sums[i]);
    _mm512_storeu_si512(sum, total);
}

static size_t in_steps(size_t length)
{
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("vpclmulqdq"))
        return 0;
    return length - length % STEP_BYTES;
}

/* Zeros in front of a message do not change its CRC, and a CRC before it is added to its beginning.
 */
static void begin(uint8_t sum[VECTOR_BYTES], uint32_t crc, const uint8_t *head, size_t head_bytes)
{
    uint8_t *start = sum + VECTOR_BYTES - head_bytes;

    memset(sum, 0, VECTOR_BYTES - head_bytes);
    memcpy(start, head, head_bytes);
    for (unsigned i = 0; i < sizeof(crc); i++)
        start[i] ^= crc >> 8 * i;
}

uint32_t crc_copy(uint32_t crc, const uint8_t *head, size_t head_bytes, uint8_t *to,
                  const uint8_t *from, size_t length)
{
    size_t steps = head_bytes >= sizeof(crc) ? in_steps(length) : 0;
    uint8_t sum[VECTOR_BYTES];

    if (!steps)
        return copy_then_add(crc_invariant(crc, head, head_bytes), to, from, length);
    begin(sum, crc, head, head_bytes);
    copy_steps(sum, to, from, steps);
    crc = crc_invariant(0, sum, sizeof(sum));
    return steps < length ? copy_then_add(crc, to + steps, from + steps, length - steps) : crc;
}

#else

uint32_t crc_copy(uint32_t crc, const uint8_t *head, size_t head_bytes, uint8_t *to,
                  const uint8_t *from, size_t length)
{
    return copy_then_add(crc_invariant(crc, head, head_bytes), to, from, length);
}

#endif
