/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/crc.h"

/* Remainders of four bits, lowest bit first; polynomials 0x04C11DB7 (as in Ethernet) and 0x100B. */
static const uint32_t invariant_table[16] = {
    0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
    0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
};
static const uint32_t variant_table[16] = {
    0x0000, 0x1a01, 0x3402, 0x2e03, 0x6804, 0x7205, 0x5c06, 0x4607,
    0xd008, 0xca09, 0xe40a, 0xfe0b, 0xb80c, 0xa20d, 0x8c0e, 0x960f,
};

static inline uint32_t remainder_of(const uint32_t table[16], uint32_t crc, const uint8_t *bytes,
                                    size_t length)
{
    for (size_t i = 0; i < length; i++) {
        crc ^= bytes[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return crc;
}

uint32_t crc_invariant(uint32_t crc, const uint8_t *bytes, size_t length)
{
    return remainder_of(invariant_table, crc, bytes, length);
}

uint32_t crc_variant(uint32_t crc, const uint8_t *bytes, size_t length)
{
    return remainder_of(variant_table, crc & 0xffff, bytes, length);
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
