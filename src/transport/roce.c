/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/roce.h"

#include "transport/crc.h"
#include "util/bytes.h"

#include <string.h>

#define ETHERNET_BYTES 14
#define IPV6_BYTES     40
#define UDP_BYTES      8
#define MAC_BYTES      6
#define MAC_LOCAL      0x02 /* in the first byte: administered locally */
#define TYPE_IPV6      0x86dd
#define IPV6_VERSION   6
#define NEXT_UDP       17
#define UDP_PORT       4791
#define FLOW_PORTS     0xc000 /* source ports tell switches one flow from another */
#define LRH_ONES       8

static void encode_ethernet(const struct frame_path *path, uint8_t *out)
{
    memset(out, 0, 2 * MAC_BYTES);
    out[0] = out[MAC_BYTES] = MAC_LOCAL;
    bytes_put(out + MAC_BYTES - 2, 2, path->destination_lid);
    bytes_put(out + 2 * MAC_BYTES - 2, 2, path->source_lid);
    bytes_put(out + 2 * MAC_BYTES, 2, TYPE_IPV6);
}

static void encode_ipv6(const struct frame_path *path, size_t length, uint8_t *out)
{
    bytes_put(out, 4, (uint32_t)IPV6_VERSION << 28 | path->traffic_class << 20 | path->flow_label);
    bytes_put(out + 4, 2, length);
    out[6] = NEXT_UDP;
    out[7] = path->hop_limit;
    memcpy(out + 8, path->source_gid, 16);
    memcpy(out + 24, path->destination_gid, 16);
}

static uint32_t sum_words(uint32_t sum, const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i + 1 < length; i += 2)
        sum += bytes_get(bytes + i, 2);
    return sum;
}

/* RFC 8200, 8.1: over a pseudo-header as well. The length is a multiple of four. */
static uint16_t udp_checksum(const uint8_t *ipv6, size_t length)
{
    uint32_t sum = sum_words(length + NEXT_UDP, ipv6 + 8, 32 + length);

    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return sum == 0xffff ? 0xffff : ~sum;
}

/* What routers may change counts as ones. */
static uint32_t invariant_crc(const uint8_t *ipv6, size_t length)
{
    uint8_t masked[LRH_ONES + IPV6_BYTES + UDP_BYTES + BTH_BYTES], *ip = masked + LRH_ONES;
    size_t covered = sizeof(masked) - LRH_ONES;

    memset(masked, 0xff, LRH_ONES);
    memcpy(ip, ipv6, covered);
    ip[0] |= 0x0f; /* traffic class and flow label */
    memset(ip + 1, 0xff, 3);
    ip[7] = 0xff;                          /* hop limit */
    memset(ip + IPV6_BYTES + 6, 0xff, 2);  /* UDP checksum */
    ip[IPV6_BYTES + UDP_BYTES + 4] = 0xff; /* congestion bits of the BTH */
    return crc_invariant(crc_invariant(CRC_START, masked, sizeof(masked)), ipv6 + covered,
                         length - covered);
}

size_t roce_encode(const struct frame_path *path, const struct packet *packet, const void *payload,
                   uint8_t out[ROCE_MAX_BYTES])
{
    uint8_t *ipv6 = out + ETHERNET_BYTES, *udp = ipv6 + IPV6_BYTES, *bth = udp + UDP_BYTES;
    size_t headers = packet_encode(packet, bth), pad = packet_pad_bytes(packet);
    size_t to_icrc = headers + packet->payload.length + pad;
    size_t length = UDP_BYTES + to_icrc + ICRC_BYTES;

    encode_ethernet(path, out);
    encode_ipv6(path, length, ipv6);
    bytes_put(udp, 2, FLOW_PORTS | (packet->destination_qpn & ~FLOW_PORTS & 0xffff));
    bytes_put(udp + 2, 2, UDP_PORT);
    bytes_put(udp + 4, 2, length);
    bytes_put(udp + 6, 2, 0);
    if (packet->payload.length)
        memcpy(bth + headers, payload, packet->payload.length);
    memset(bth + headers + packet->payload.length, 0, pad);
    crc_store_invariant(invariant_crc(ipv6, IPV6_BYTES + UDP_BYTES + to_icrc), bth + to_icrc);
    bytes_put(udp + 6, 2, udp_checksum(ipv6, length));
    return ETHERNET_BYTES + IPV6_BYTES + length;
}
