/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TRANSPORT_CRC_H
#define TRANSPORT_CRC_H

/* The two CRCs of an InfiniBand packet (IBA volume 1, 7.8), computed piece by piece: begin with
 * CRC_START, pass each result to the next call, and finish with crc_store_*(). */

#include <stddef.h>
#include <stdint.h>

#define CRC_START UINT32_MAX

uint32_t crc_invariant(uint32_t crc, const uint8_t *bytes, size_t length);
/* Of a head, CRC_HEAD_BYTES at most, and of bytes behind it, which are copied. The CRC is that of
 * the copy, whoever changes the bytes meanwhile. */
#define CRC_HEAD_BYTES 64
uint32_t crc_copy(uint32_t crc, const uint8_t *head, size_t head_bytes, uint8_t *to,
                  const uint8_t *from, size_t length);
/* Of CRC_SHORT_BYTES at most. The byte at `ones_at`, a multiple of four, counts as ones. */
#define CRC_SHORT_BYTES 64
uint32_t crc_short(uint32_t crc, const uint8_t *bytes, size_t length, size_t ones_at);
uint32_t crc_variant(uint32_t crc, const uint8_t *bytes, size_t length);

/* Least significant byte first: the bits of a CRC are sent in the order of its coefficients. */
void crc_store_invariant(uint32_t crc, uint8_t out[4]);
void crc_store_variant(uint32_t crc, uint8_t out[2]);

#endif
