/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/roce_datagram.h"

#include "transport/roce_icrc.h"

#include <string.h>

bool roce_gid_is_ipv4(const uint8_t gid[16])
{
    return !memcmp(gid, ROCE_IPV4_PREFIX, 12);
}

size_t roce_datagram_end(const struct roce_flow *flow, const uint8_t *headers, size_t header_bytes,
                         const uint8_t *payload, uint32_t payload_bytes, uint16_t identification,
                         uint8_t *end)
{
    uint32_t icrc = roce_icrc(flow, headers, header_bytes, payload, payload_bytes, identification);
    size_t length = -payload_bytes & 3;

    memset(end, 0, length);
    for (int i = 0; i < ICRC_BYTES; i++)
        end[length++] = icrc >> 8 * i;
    return length;
}

size_t roce_datagram_seal(const struct roce_flow *flow, uint8_t *frame, size_t header_bytes,
                          uint32_t payload_bytes, uint16_t identification)
{
    uint8_t *payload = frame + header_bytes, *end = payload + payload_bytes;

    return end - frame +
           roce_datagram_end(flow, frame, header_bytes, payload, payload_bytes, identification,
                             end);
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
