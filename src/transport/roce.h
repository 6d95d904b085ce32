/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TRANSPORT_ROCE_H
#define TRANSPORT_ROCE_H

/* A whole packet of RoCEv2 on Ethernet (IBA annex A17): Ethernet, IPv6 and UDP headers, transport
 * headers, payload, ICRC; without the FCS, as captures have it. */

#include "transport/frame.h"

#define ROCE_ROUTING_BYTES (14 + 40 + 8)
#define ROCE_MAX_BYTES \
    (ROCE_ROUTING_BYTES + PACKET_MAX_HEADER_BYTES + PACKET_MAX_PAYLOAD_BYTES + ICRC_BYTES)

/* The path is global: its GIDs are the IPv6 addresses. LIDs become local MAC addresses. `payload`
 * has the bytes that the packet references. Returns the frame's length. */
size_t roce_encode(const struct frame_path *path, const struct packet *packet, const void *payload,
                   uint8_t out[ROCE_MAX_BYTES]);

#endif
