/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/roce_datagram.h"

#include "transport/roce_icrc.h"

#include <string.h>

static size_t pad(uint8_t *frame, size_t length)
{
    size_t pad_bytes = -length & 3; /* headers are multiples of four */

    memset(frame + length, 0, pad_bytes);
    return length + pad_bytes;
}

static size_t add_icrc(uint8_t *frame, size_t length, uint32_t icrc)
{
    for (int i = 0; i < ICRC_BYTES; i++)
        frame[length++] = icrc >> 8 * i;
    return length;
}

size_t roce_datagram_fill(const struct roce_flow *flow, uint8_t *frame, size_t header_bytes,
                          const uint8_t *payload, uint32_t payload_bytes, uint16_t identification)
{
    size_t length = pad(frame, header_bytes + payload_bytes);

    return add_icrc(
        frame, length,
        roce_icrc_fill(flow, frame, length, identification, header_bytes, payload, payload_bytes));
}

size_t roce_datagram_seal(const struct roce_flow *flow, uint8_t *frame, size_t header_bytes,
                          uint32_t payload_bytes, uint16_t identification)
{
    size_t length = pad(frame, header_bytes + payload_bytes);

    return add_icrc(frame, length, roce_icrc(flow, frame, length, identification));
}

const char *roce_datagram_decode(const struct roce_flow *flow, const uint8_t *bytes, size_t length,
                                 uint16_t *identification, struct packet *packet)
{
    uint32_t icrc = 0;

    if (length < BTH_BYTES + ICRC_BYTES || length > ROCE_MAX_DATAGRAM)
        return "no length of a packet";
    length -= ICRC_BYTES;
    for (int i = 0; i < ICRC_BYTES; i++)
        icrc |= (uint32_t)bytes[length + i] << 8 * i;
    if (!roce_icrc_matches(flow, bytes, length, icrc, identification))
        return "wrong ICRC";
    return packet_decode(packet, bytes, length);
}
