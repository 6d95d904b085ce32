/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/roce_frame.h"

#include "transport/crc.h"
#include "util/bytes.h"

#include <string.h>

#define ETHERNET_BYTES 14
#define IPV6_BYTES     GRH_BYTES /* a GRH is an IPv6 header */
#define ADDRESSES_AT   8         /* of the IPv6 header: the source, then the destination */
#define UDP_BYTES      8
#define MAC_BYTES      6
#define MAC_LOCAL      0x02 /* in the first byte: administered locally */
#define TYPE_IPV6      0x86dd
#define NEXT_UDP       17
#define FLOW_PORTS     0xc000 /* source ports tell switches one flow from another */

size_t roce_frame_bytes(const struct packet *packet)
{
    return ROCE_HEADER_BYTES + opcode_info(packet->opcode)->header_bytes + packet->payload.length +
           packet_pad_bytes(packet) + ICRC_BYTES + ROCE_FCS_BYTES;
}

static void encode_ethernet(const struct frame_path *path, uint8_t *out)
{
    memset(out, 0, 2 * MAC_BYTES);
    out[0] = out[MAC_BYTES] = MAC_LOCAL;
    bytes_put(out + MAC_BYTES - 2, 2, path->destination_lid);
    bytes_put(out + 2 * MAC_BYTES - 2, 2, path->source_lid);
    bytes_put(out + 2 * MAC_BYTES, 2, TYPE_IPV6);
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
    uint32_t sum =
        sum_words(length + NEXT_UDP, ipv6 + ADDRESSES_AT, IPV6_BYTES - ADDRESSES_AT + length);

    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return sum == 0xffff ? 0xffff : ~sum;
}

static struct roce_flow flow_of(const uint8_t *ipv6)
{
    struct roce_flow flow = { .source_port = bytes_get(ipv6 + IPV6_BYTES, 2) };

    memcpy(flow.source, ipv6 + ADDRESSES_AT, 16);
    memcpy(flow.destination, ipv6 + ADDRESSES_AT + 16, 16);
    return flow;
}

size_t roce_frame_encode(const struct frame_path *path, const struct packet *packet,
                         const void *payload, uint8_t out[ROCE_FRAME_MAX_BYTES])
{
    uint8_t *ipv6 = out + ETHERNET_BYTES, *udp = ipv6 + IPV6_BYTES, *bth = udp + UDP_BYTES;
    size_t to_fcs = roce_frame_bytes(packet) - ROCE_FCS_BYTES;
    size_t length = to_fcs - ETHERNET_BYTES - IPV6_BYTES;
    size_t headers = packet_encode(packet, bth);
    struct roce_flow flow;

    encode_ethernet(path, out);
    frame_encode_grh(path, NEXT_UDP, length, ipv6);
    bytes_put(udp, 2, FLOW_PORTS | (packet->destination_qpn & ~FLOW_PORTS & 0xffff));
    bytes_put(udp + 2, 2, ROCE_UDP_PORT);
    bytes_put(udp + 4, 2, length);
    bytes_put(udp + 6, 2, 0);
    if (packet->payload.length)
        memcpy(bth + headers, payload, packet->payload.length);
    flow = flow_of(ipv6);
    roce_datagram_seal(&flow, bth, headers, packet->payload.length, 0);
    bytes_put(udp + 6, 2, udp_checksum(ipv6, length));
    crc_store_invariant(crc_invariant(CRC_START, out, to_fcs), out + to_fcs);
    return to_fcs + ROCE_FCS_BYTES;
}

const char *roce_frame_decode(struct packet *packet, const uint8_t *bytes, size_t length)
{
    size_t to_fcs = length - ROCE_FCS_BYTES;
    uint8_t fcs[ROCE_FCS_BYTES];
    struct roce_flow flow;
    uint16_t identification = 0;

    if (length < ROCE_HEADER_BYTES + ROCE_FCS_BYTES)
        return "shorter than its headers";
    crc_store_invariant(crc_invariant(CRC_START, bytes, to_fcs), fcs);
    if (memcmp(fcs, bytes + to_fcs, sizeof(fcs)) != 0)
        return "FCS is wrong";
    flow = flow_of(bytes + ETHERNET_BYTES);
    return roce_datagram_decode(&flow, bytes + ROCE_HEADER_BYTES, to_fcs - ROCE_HEADER_BYTES,
                                &identification, packet);
}
