/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TRANSPORT_ROCE_FRAME_H
#define TRANSPORT_ROCE_FRAME_H

/* A whole packet of RoCEv2 on Ethernet (IBA annex A17): Ethernet, IPv6 and UDP headers, the
 * datagram, FCS. */

#include "transport/frame.h"
#include "transport/roce_datagram.h"

#define ROCE_HEADER_BYTES    (14 + 40 + 8) /* Ethernet, IPv6, UDP */
#define ROCE_FCS_BYTES       4
#define ROCE_FRAME_MAX_BYTES (ROCE_HEADER_BYTES + ROCE_MAX_DATAGRAM + ROCE_FCS_BYTES)

size_t roce_frame_bytes(const struct packet *packet);

/* The path is global: its GIDs are the IPv6 addresses. LIDs become local MAC addresses. `payload`
 * has the bytes that the packet references. Returns the frame's length. */
size_t roce_frame_encode(const struct frame_path *path, const struct packet *packet,
                         const void *payload, uint8_t out[ROCE_FRAME_MAX_BYTES]);

/* Returns NULL, or which check of a receiver the frame fails. The headers before the datagram are
 * checked by the FCS and the ICRC alone. */
const char *roce_frame_decode(struct packet *packet, const uint8_t *bytes, size_t length);

#endif
