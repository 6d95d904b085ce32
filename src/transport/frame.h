/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TRANSPORT_FRAME_H
#define TRANSPORT_FRAME_H

/* A whole packet of an InfiniBand link: LRH, GRH if it is routed, transport headers, payload, ICRC,
 * VCRC. In a capture file it is the body of an ERF record of type 21, INFINIBAND. */

#include "transport/packet.h"

#define FRAME_MAX_BYTES                                                                        \
    (LRH_BYTES + GRH_BYTES + PACKET_MAX_HEADER_BYTES + PACKET_MAX_PAYLOAD_BYTES + ICRC_BYTES + \
     VCRC_BYTES)

struct frame_path {
    uint8_t virtual_lane;
    uint8_t service_level;
    uint16_t source_lid;
    uint16_t destination_lid;
    bool global; /* has a GRH: the fields below */
    uint8_t traffic_class;
    uint8_t hop_limit;
    uint32_t flow_label; /* 20 bits */
    uint8_t source_gid[16];
    uint8_t destination_gid[16];
};

size_t frame_bytes(const struct frame_path *path, const struct packet *packet);

/* `next` is what follows the GRH, `length` bytes with all checksums but the link's. */
void frame_encode_grh(const struct frame_path *path, uint8_t next, size_t length,
                      uint8_t out[GRH_BYTES]);

/* `payload` has the bytes that the packet references. Returns the frame's length, or 0 if it
 * exceeds `capacity`. */
size_t frame_encode(const struct frame_path *path, const struct packet *packet, const void *payload,
                    uint8_t *out, size_t capacity);

/* Returns NULL, or a description of the error. The payload's source is its address in `bytes`. */
const char *frame_decode(struct frame_path *path, struct packet *packet, const uint8_t *bytes,
                         size_t length);

#endif
