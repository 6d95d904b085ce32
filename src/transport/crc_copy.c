/* SPDX-License-Identifier: BSD-2-Clause */
/* Invariant CRCs with vectors of 64 bytes. A copy and the CRC of what is copied, in one pass, take
 * as long as the CRC alone. */
#include "transport/crc.h"

#include <stdbool.h>
#include <string.h>

static uint32_t copy_then_add(uint32_t crc, uint8_t *to, const uint8_t *from, size_t length)
{
    memcpy(to, from, length);
    return crc_invariant(crc, to, length);
}

/* A copy and one CRC take less time than a CRC of each part. */
static uint32_t mask_then_add(uint32_t crc, const uint8_t *bytes, size_t length, size_t ones_at)
{
    uint8_t masked[CRC_SHORT_BYTES];

    memcpy(masked, bytes, length);
    masked[ones_at] = 0xff;
    return crc_invariant(crc, masked, length);
}

#ifdef __x86_64__

#include <immintrin.h>

#define VECTOR_BYTES sizeof(__m512i)
#define VECTORS      4 /* at once: a multiplication takes a few cycles */
#define STEP_BYTES   (VECTORS * VECTOR_BYTES)
#define WITH_VECTORS __attribute__((target("avx512f,pclmul,vpclmulqdq")))
#define WORD_BYTES   4
#define WORDS        (VECTOR_BYTES / WORD_BYTES)

/* To move the CRC of 16 bytes by n bits: x^(n+32) and x^(n-32) modulo the polynomial, for the lower
 * and upper eight bytes, with the lowest coefficient in bit 32. */
#define BY_STEP   0x1322d1430, 0x11542778a
#define BY_VECTOR 0x1c6e41596, 0x154442bd4
#define BY_48     0x174359406, 0x03db1ecdc
#define BY_32     0x15a546366, 0x0f1da05aa
#define BY_16     0x0ccaa009e, 0x1751997d0

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

static bool has_vectors(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
}

static size_t in_steps(size_t length)
{
    return has_vectors() ? length - length % STEP_BYTES : 0;
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

/* The CRC of 16 bytes: they are folded to 12 and to 8, which Barrett's reduction divides. */
WITH_VECTORS static inline uint32_t reduced(__m128i sum)
{
    const __m128i by_8 = _mm_set_epi64x(0, 0x0ccaa009e), by_4 = _mm_set_epi64x(0, 0x163cd6124);
    const __m128i quotient = _mm_set_epi64x(0x1f7011641, 0x1db710641);
    const __m128i low_word = _mm_set_epi32(0, ~0, 0, ~0);
    __m128i high;

    sum = _mm_xor_si128(_mm_srli_si128(sum, 8), _mm_clmulepi64_si128(sum, by_8, 0x00));
    high = _mm_srli_si128(sum, 4);
    sum = _mm_xor_si128(high, _mm_clmulepi64_si128(_mm_and_si128(sum, low_word), by_4, 0x00));
    high = _mm_clmulepi64_si128(_mm_and_si128(sum, low_word), quotient, 0x10);
    high = _mm_clmulepi64_si128(_mm_and_si128(high, low_word), quotient, 0x00);
    return _mm_cvtsi128_si64(_mm_xor_si128(sum, high)) >> 32;
}

/* The words stand at the end of a vector: zeros in front of them change nothing. */
WITH_VECTORS static uint32_t add_words(uint32_t crc, const uint8_t *bytes, unsigned words,
                                       unsigned ones_in)
{
    const __m512i by = _mm512_set_epi64(0, 0, BY_16, BY_32, BY_48);
    __mmask16 all = 0xffff << (WORDS - words), first = 1 << (WORDS - words);
    __m512i sum = _mm512_maskz_expandloadu_epi32(all, bytes);

    sum = _mm512_mask_or_epi32(sum, first << ones_in, sum, _mm512_set1_epi32(0xff));
    sum = _mm512_xor_si512(sum, _mm512_maskz_set1_epi32(first, crc));
    sum = moved(sum, by, _mm512_maskz_mov_epi64(0xc0, sum));
    __m256i half = _mm256_xor_si256(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64(sum, 1));
    return reduced(_mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1)));
}

uint32_t crc_short(uint32_t crc, const uint8_t *bytes, size_t length, size_t ones_at)
{
    if (!length || length % WORD_BYTES || !has_vectors())
        return mask_then_add(crc, bytes, length, ones_at);
    return add_words(crc, bytes, length / WORD_BYTES, ones_at / WORD_BYTES);
}

#else

uint32_t crc_short(uint32_t crc, const uint8_t *bytes, size_t length, size_t ones_at)
{
    return mask_then_add(crc, bytes, length, ones_at);
}

uint32_t crc_copy(uint32_t crc, const uint8_t *head, size_t head_bytes, uint8_t *to,
                  const uint8_t *from, size_t length)
{
    return copy_then_add(crc_invariant(crc, head, head_bytes), to, from, length);
}

#endif
