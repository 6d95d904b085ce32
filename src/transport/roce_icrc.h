/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TRANSPORT_ROCE_ICRC_H
#define TRANSPORT_ROCE_ICRC_H

/* The invariant CRC of RoCEv2 (IBA annex A17): it covers the IP and UDP headers as well, except the
 * fields that routers change. */

#include "transport/roce_datagram.h"

/* Of a packet that is about to be sent: `bytes` begins with the BTH and ends with the padding. */
uint32_t roce_icrc(const struct roce_flow *flow, const uint8_t *bytes, size_t length,
                   uint16_t identification);

/* The same, and copies the payload behind the headers. Padding follows it already. */
uint32_t roce_icrc_fill(const struct roce_flow *flow, uint8_t *bytes, size_t length,
                        uint16_t identification, size_t header_bytes, const uint8_t *payload,
                        size_t payload_bytes);

/* `bytes` begins with the BTH and ends before the ICRC. Over IPv4 the ICRC covers the packet's
 * identification, which a UDP socket does not tell: a packet is accepted if some identification
 * explains its ICRC. `identification` is tried first, and then the one that was found. */
bool roce_icrc_matches(const struct roce_flow *flow, const uint8_t *bytes, size_t length,
                       uint32_t received, uint16_t *identification);

#endif
