/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/crc.h"

#include <isa-l/crc.h>

/* Remainders of four bits, lowest bit first; polynomial 0x100B. */
static const uint16_t variant_table[16] = {
    0x0000, 0x1a01, 0x3402, 0x2e03, 0x6804, 0x7205, 0x5c06, 0x4607,
    0xd008, 0xca09, 0xe40a, 0xfe0b, 0xb80c, 0xa20d, 0x8c0e, 0x960f,
};

/* ISA-L 2.30 leaves the upper halves of vector registers in use, which makes all SSE instructions
 * after it wait for each other. */
static void release_vectors(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx"))
        __asm__ volatile("vzeroupper");
#endif
}

/* ISA-L complements the CRC at both ends, as Ethernet does. */
uint32_t crc_invariant(uint32_t crc, const uint8_t *bytes, size_t length)
{
    crc = ~crc32_gzip_refl(~crc, bytes, length);
    release_vectors();
    return crc;
}

uint32_t crc_variant(uint32_t crc, const uint8_t *bytes, size_t length)
{
    crc &= 0xffff;
    for (size_t i = 0; i < length; i++) {
        crc ^= bytes[i];
        crc = crc >> 4 ^ variant_table[crc & 15];
        crc = crc >> 4 ^ variant_table[crc & 15];
    }
    return crc;
}

void crc_store_invariant(uint32_t crc, uint8_t out[4])
{
    for (unsigned i = 0; i < 4; i++)
        out[i] = ~crc >> 8 * i;
}

void crc_store_variant(uint32_t crc, uint8_t out[2])
{
    out[0] = ~crc;
    out[1] = ~crc >> 8;
}
