/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/frame.h"

#include "wire/icrc.h"

#include <string.h>

bool wire_gid_is_ipv4(const uint8_t gid[16])
{
    return !memcmp(gid, WIRE_IPV4_PREFIX, 12);
}

size_t wire_frame_seal(const struct wire_flow *flow, uint8_t *frame, size_t header_bytes,
                       uint32_t payload_bytes, uint16_t identification)
{
    size_t length = header_bytes + payload_bytes;
    uint32_t icrc;

    for (; length % 4; length++)
        frame[length] = 0;
    icrc = wire_icrc(flow, frame, length, identification);
    for (int i = 0; i < ICRC_BYTES; i++)
        frame[length++] = icrc >> 8 * i;
    return length;
}

const char *wire_frame_decode(const struct wire_flow *flow, const uint8_t *bytes, size_t length,
                              uint16_t identification, struct packet *packet)
{
    uint32_t icrc = 0;

    if (length < BTH_BYTES + ICRC_BYTES || length > WIRE_MAX_FRAME)
        return "no length of a packet";
    length -= ICRC_BYTES;
    for (int i = 0; i < ICRC_BYTES; i++)
        icrc |= (uint32_t)bytes[length + i] << 8 * i;
    if (!wire_icrc_matches(flow, bytes, length, icrc, identification))
        return "wrong ICRC";
    return packet_decode(packet, bytes, length);
}
