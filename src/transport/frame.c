/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/frame.h"

#include "transport/crc.h"
#include "util/bytes.h"

#include <string.h>

/* LRH, IBA volume 1, 7.7; GRH, 8.3 */
#define LNH_LOCAL       2
#define LNH_GLOBAL      3
#define LNH_MASK        3
#define LRH_LENGTH_MASK 0x7ff /* in words, from the LRH to the ICRC */
#define GRH_VERSION     6
#define GRH_NEXT_IBA    0x1b

static size_t routing_bytes(const struct frame_path *path)
{
    return LRH_BYTES + (path->global ? GRH_BYTES : 0);
}

size_t frame_bytes(const struct frame_path *path, const struct packet *packet)
{
    return routing_bytes(path) + opcode_info(packet->opcode)->header_bytes +
           packet->payload.length + packet_pad_bytes(packet) + ICRC_BYTES + VCRC_BYTES;
}

static void encode_lrh(const struct frame_path *path, size_t words, uint8_t *out)
{
    out[0] = path->virtual_lane << 4;
    out[1] = path->service_level << 4 | (path->global ? LNH_GLOBAL : LNH_LOCAL);
    bytes_put(out + 2, 2, path->destination_lid);
    bytes_put(out + 4, 2, words);
    bytes_put(out + 6, 2, path->source_lid);
}

static void encode_grh(const struct frame_path *path, size_t length, uint8_t *out)
{
    bytes_put(out, 4, (uint32_t)GRH_VERSION << 28 | path->traffic_class << 20 | path->flow_label);
    bytes_put(out + 4, 2, length);
    out[6] = GRH_NEXT_IBA;
    out[7] = path->hop_limit;
    memcpy(out + 8, path->source_gid, 16);
    memcpy(out + 24, path->destination_gid, 16);
}

/* The ICRC covers what no switch or router changes; the rest counts as ones (IBA volume 1, 7.8). */
static uint32_t invariant_crc(const uint8_t *frame, bool global, size_t length)
{
    uint8_t masked[LRH_BYTES + GRH_BYTES + BTH_BYTES];
    size_t routing = LRH_BYTES + (global ? GRH_BYTES : 0);
    size_t covered = routing + BTH_BYTES;

    memcpy(masked, frame, covered);
    if (global) {
        uint8_t *grh = masked + LRH_BYTES;
        memset(masked, 0xff, LRH_BYTES);
        grh[0] |= 0x0f; /* traffic class and flow label lie behind the version's four bits */
        memset(grh + 1, 0xff, 3);
        grh[7] = 0xff; /* hop limit */
    } else {
        masked[0] |= 0xf0; /* virtual lane */
    }
    masked[routing + 4] = 0xff; /* congestion bits of the BTH */
    return crc_invariant(crc_invariant(CRC_START, masked, covered), frame + covered,
                         length - covered);
}

size_t frame_encode(const struct frame_path *path, const struct packet *packet, const void *payload,
                    uint8_t *out, size_t capacity)
{
    size_t total = frame_bytes(path, packet);
    size_t routing = routing_bytes(path);
    size_t to_icrc = total - ICRC_BYTES - VCRC_BYTES;
    uint8_t headers[PACKET_MAX_HEADER_BYTES];

    if (total > capacity)
        return 0;
    encode_lrh(path, (total - VCRC_BYTES) / 4, out);
    if (path->global)
        encode_grh(path, total - VCRC_BYTES - routing, out + LRH_BYTES);
    size_t header_bytes = packet_encode(packet, headers);
    uint8_t *at = out + routing;
    memcpy(at, headers, header_bytes);
    at += header_bytes;
    if (packet->payload.length)
        memcpy(at, payload, packet->payload.length);
    memset(at + packet->payload.length, 0, packet_pad_bytes(packet));
    crc_store_invariant(invariant_crc(out, path->global, to_icrc), out + to_icrc);
    crc_store_variant(crc_variant(CRC_START, out, total - VCRC_BYTES), out + total - VCRC_BYTES);
    return total;
}

static const char *decode_lrh(struct frame_path *path, const uint8_t *in, size_t length)
{
    uint8_t next = in[1] & LNH_MASK;

    if (in[0] & 0x0f)
        return "unknown version of the link";
    if (next != LNH_LOCAL && next != LNH_GLOBAL)
        return "raw packet";
    if ((bytes_get(in + 4, 2) & LRH_LENGTH_MASK) * 4 + VCRC_BYTES != length)
        return "length differs from that in the LRH";
    path->virtual_lane = in[0] >> 4;
    path->service_level = in[1] >> 4;
    path->destination_lid = bytes_get(in + 2, 2);
    path->source_lid = bytes_get(in + 6, 2);
    path->global = next == LNH_GLOBAL;
    return NULL;
}

static const char *decode_grh(struct frame_path *path, const uint8_t *in, size_t length)
{
    uint32_t word = bytes_get(in, 4);

    if (word >> 28 != GRH_VERSION)
        return "unknown version of the GRH";
    if (in[6] != GRH_NEXT_IBA)
        return "no transport header after the GRH";
    if (bytes_get(in + 4, 2) != length)
        return "length differs from that in the GRH";
    path->traffic_class = word >> 20;
    path->flow_label = word & 0xfffff;
    path->hop_limit = in[7];
    memcpy(path->source_gid, in + 8, 16);
    memcpy(path->destination_gid, in + 24, 16);
    return NULL;
}

static const char *check_crcs(const struct frame_path *path, const uint8_t *bytes, size_t length)
{
    size_t to_icrc = length - ICRC_BYTES - VCRC_BYTES;
    uint8_t invariant[ICRC_BYTES];
    uint8_t variant[VCRC_BYTES];

    crc_store_variant(crc_variant(CRC_START, bytes, length - VCRC_BYTES), variant);
    if (memcmp(variant, bytes + length - VCRC_BYTES, VCRC_BYTES) != 0)
        return "VCRC is wrong";
    crc_store_invariant(invariant_crc(bytes, path->global, to_icrc), invariant);
    if (memcmp(invariant, bytes + to_icrc, ICRC_BYTES) != 0)
        return "ICRC is wrong";
    return NULL;
}

const char *frame_decode(struct frame_path *path, struct packet *packet, const uint8_t *bytes,
                         size_t length)
{
    const char *wrong;

    *path = (struct frame_path){ 0 };
    if (length < LRH_BYTES + BTH_BYTES + ICRC_BYTES + VCRC_BYTES)
        return "shorter than any packet";
    wrong = decode_lrh(path, bytes, length);
    if (wrong)
        return wrong;
    size_t routing = routing_bytes(path);
    if (length < routing + BTH_BYTES + ICRC_BYTES + VCRC_BYTES)
        return "shorter than its routing headers";
    if (path->global)
        wrong = decode_grh(path, bytes + LRH_BYTES, length - VCRC_BYTES - routing);
    if (!wrong)
        wrong = check_crcs(path, bytes, length);
    if (!wrong)
        wrong = packet_decode(packet, bytes + routing, length - routing - ICRC_BYTES - VCRC_BYTES);
    return wrong;
}
