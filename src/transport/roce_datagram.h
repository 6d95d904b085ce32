/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TRANSPORT_ROCE_DATAGRAM_H
#define TRANSPORT_ROCE_DATAGRAM_H

/* A RoCEv2 packet as the payload of a UDP datagram: BTH, extension headers, payload, padding, ICRC.
 * Everything that arrives may be forged: decoding reads nothing beyond `length`. */

#include "transport/packet.h"

#include <string.h>

#define ROCE_UDP_PORT     4791
#define ROCE_MAX_DATAGRAM (PACKET_MAX_HEADER_BYTES + PACKET_MAX_PAYLOAD_BYTES + ICRC_BYTES)
#define ROCE_IPV4_PREFIX  "\0\0\0\0\0\0\0\0\0\0\xff\xff"

/* Where a datagram comes from and goes to. Addresses are GIDs: an IPv4 address is the end of
 * ::ffff:a.b.c.d. */
struct roce_flow {
    uint8_t source[16];
    uint8_t destination[16];
    uint16_t source_port;
};

static inline bool roce_gid_is_ipv4(const uint8_t gid[16])
{
    return !memcmp(gid, ROCE_IPV4_PREFIX, 12);
}

static inline bool roce_flow_is_ipv4(const struct roce_flow *flow)
{
    return roce_gid_is_ipv4(flow->source);
}

/* Copies the payload behind the headers, adds padding and ICRC, and returns the length of the
 * frame. The ICRC fits what was copied, whoever changes the payload meanwhile. */
size_t roce_datagram_fill(const struct roce_flow *flow, uint8_t *frame, size_t header_bytes,
                          const uint8_t *payload, uint32_t payload_bytes, uint16_t identification);

/* The same when the payload already lies behind the headers. */
size_t roce_datagram_seal(const struct roce_flow *flow, uint8_t *frame, size_t header_bytes,
                          uint32_t payload_bytes, uint16_t identification);

/* Returns NULL, or why the datagram is no valid packet. `identification` of IPv4 is a guess, and
 * then what the ICRC says. */
const char *roce_datagram_decode(const struct roce_flow *flow, const uint8_t *bytes, size_t length,
                                 uint16_t *identification, struct packet *packet);

/* Datagrams may have been joined: all but the last have the same length, the last one is not
 * longer, and their identifications count up. Checks all ICRCs, and returns the length that they
 * fit, or 0. `identification` is that of the first datagram, a guess and then what the ICRCs say.
 * A wrong guess takes much longer. */
size_t roce_datagram_segment(const struct roce_flow *flow, const uint8_t *bytes, size_t length,
                             uint16_t *identification);

#endif
