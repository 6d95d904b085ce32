/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/roce_datagram.h"

#include "transport/roce_icrc.h"

#include <string.h>

#define SHORTEST  (BTH_BYTES + ICRC_BYTES)
#define ACK_BYTES (BTH_BYTES + AETH_BYTES + ICRC_BYTES)
#define MTU_MIN   256

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

static uint32_t icrc_at(const uint8_t *bytes)
{
    uint32_t icrc = 0;

    for (int i = 0; i < ICRC_BYTES; i++)
        icrc |= (uint32_t)bytes[i] << 8 * i;
    return icrc;
}

static bool is_length(size_t length)
{
    return length >= SHORTEST && length <= ROCE_MAX_DATAGRAM;
}

const char *roce_datagram_decode(const struct roce_flow *flow, const uint8_t *bytes, size_t length,
                                 uint16_t *identification, struct packet *packet)
{
    if (!is_length(length))
        return "no length of a packet";
    length -= ICRC_BYTES;
    if (!roce_icrc_matches(flow, bytes, length, icrc_at(bytes + length), identification))
        return "wrong ICRC";
    return packet_decode(packet, bytes, length);
}

/* ---- datagrams that were joined ---- */

static bool fits(const struct roce_flow *flow, const uint8_t *bytes, size_t length,
                 uint16_t identification)
{
    return is_length(length) &&
           icrc_at(bytes + length - ICRC_BYTES) ==
               roce_icrc(flow, bytes, length - ICRC_BYTES, identification);
}

static bool all_fit(const struct roce_flow *flow, const uint8_t *bytes, size_t length,
                    size_t segment, uint16_t identification)
{
    size_t at = 0;

    for (; length - at > segment; at += segment, identification++)
        if (!fits(flow, bytes + at, segment, identification))
            return false;
    return fits(flow, bytes + at, length - at, identification);
}

/* All packets of a message but the last have the MTU. */
static size_t full_segment(const struct roce_flow *flow, const uint8_t *bytes, size_t length,
                           uint16_t identification)
{
    const struct opcode_info *info = opcode_info(bytes[0]);

    if (!info || info->flags & OPCODE_END)
        return 0;
    for (size_t mtu = PACKET_MAX_PAYLOAD_BYTES; mtu >= MTU_MIN; mtu /= 2) {
        size_t segment = info->header_bytes + mtu + ICRC_BYTES;

        if (segment < length && all_fit(flow, bytes, length, segment, identification))
            return segment;
    }
    return 0;
}

static bool find_first(const struct roce_flow *flow, const uint8_t *bytes, size_t length,
                       uint16_t *identification)
{
    return roce_icrc_matches(flow, bytes, length - ICRC_BYTES,
                             icrc_at(bytes + length - ICRC_BYTES), identification);
}

/* Tries each length, first with the identification that was guessed, then with any. */
static size_t search_segment(const struct roce_flow *flow, const uint8_t *bytes, size_t length,
                             uint16_t *identification)
{
    size_t longest = length - SHORTEST < ROCE_MAX_DATAGRAM ? length - SHORTEST : ROCE_MAX_DATAGRAM;

    for (int guessed = 1; guessed >= 0; guessed--)
        for (size_t segment = longest & ~(size_t)3; segment >= SHORTEST; segment -= 4) {
            uint16_t first = *identification;

            if ((guessed || find_first(flow, bytes, segment, &first)) &&
                all_fit(flow, bytes, length, segment, first)) {
                *identification = first;
                return segment;
            }
        }
    return length <= ROCE_MAX_DATAGRAM && find_first(flow, bytes, length, identification) ? length
                                                                                          : 0;
}

/* Payload may look like packets, so the whole comes first. */
size_t roce_datagram_segment(const struct roce_flow *flow, const uint8_t *bytes, size_t length,
                             uint16_t *identification)
{
    size_t segment;

    if (length < SHORTEST || length % 4)
        return 0;
    if (fits(flow, bytes, length, *identification))
        return length;
    if (length >= SHORTEST + ACK_BYTES &&
        all_fit(flow, bytes, length, length - ACK_BYTES, *identification))
        return length - ACK_BYTES;
    segment = full_segment(flow, bytes, length, *identification);
    return segment ? segment : search_segment(flow, bytes, length, identification);
}
