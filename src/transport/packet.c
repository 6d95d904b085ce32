/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/packet.h"

#include "util/bytes.h"

#include <string.h>

#define BTH_SOLICITED   0x80
#define BTH_MIGRATED    0x40
#define BTH_PAD_SHIFT   4
#define BTH_VERSION     0x0f
#define BTH_ACK_REQUEST 0x80
#define BTH_BECN        0x40

/* IBA volume 1, 9.2 "Base Transport Header". */
static void encode_bth(const struct packet *packet, uint8_t *out)
{
    out[0] = packet->opcode;
    out[1] = (packet->solicited ? BTH_SOLICITED : 0) | (packet->migrated ? BTH_MIGRATED : 0) |
             packet_pad_bytes(packet) << BTH_PAD_SHIFT;
    bytes_put(out + 2, 2, packet->pkey);
    bytes_put(out + 4, 4, packet->destination_qpn);
    if (packet->opcode == OPCODE_CNP)
        out[4] = BTH_BECN;
    out[8] = packet->ack_request ? BTH_ACK_REQUEST : 0;
    bytes_put(out + 9, 3, packet->psn);
}

static void decode_bth(struct packet *packet, const uint8_t *in)
{
    packet->opcode = in[0];
    packet->solicited = in[1] & BTH_SOLICITED;
    packet->migrated = in[1] & BTH_MIGRATED;
    packet->pkey = bytes_get(in + 2, 2);
    packet->destination_qpn = bytes_get(in + 5, 3);
    packet->ack_request = in[8] & BTH_ACK_REQUEST;
    packet->psn = bytes_get(in + 9, 3);
}

static void encode_deth(const struct packet *packet, uint8_t *out)
{
    bytes_put(out, 4, packet->qkey);
    bytes_put(out + 4, 4, packet->source_qpn);
}

static void decode_deth(struct packet *packet, const uint8_t *in)
{
    packet->qkey = bytes_get(in, 4);
    packet->source_qpn = bytes_get(in + 5, 3);
}

static void encode_xrceth(const struct packet *packet, uint8_t *out)
{
    bytes_put(out, 4, packet->srq);
}

static void decode_xrceth(struct packet *packet, const uint8_t *in)
{
    packet->srq = bytes_get(in + 1, 3);
}

static void encode_reth(const struct packet *packet, uint8_t *out)
{
    bytes_put(out, 8, packet->remote_address);
    bytes_put(out + 8, 4, packet->remote_key);
    bytes_put(out + 12, 4, packet->remote_length);
}

static void decode_reth(struct packet *packet, const uint8_t *in)
{
    packet->remote_address = bytes_get(in, 8);
    packet->remote_key = bytes_get(in + 8, 4);
    packet->remote_length = bytes_get(in + 12, 4);
}

static void encode_atomic(const struct packet *packet, uint8_t *out)
{
    bytes_put(out, 8, packet->remote_address);
    bytes_put(out + 8, 4, packet->remote_key);
    bytes_put(out + 12, 8, packet->swap_or_add);
    bytes_put(out + 20, 8, packet->compare);
}

static void decode_atomic(struct packet *packet, const uint8_t *in)
{
    packet->remote_address = bytes_get(in, 8);
    packet->remote_key = bytes_get(in + 8, 4);
    packet->swap_or_add = bytes_get(in + 12, 8);
    packet->compare = bytes_get(in + 20, 8);
}

static void encode_aeth(const struct packet *packet, uint8_t *out)
{
    out[0] = packet->syndrome;
    bytes_put(out + 1, 3, packet->msn);
}

static void decode_aeth(struct packet *packet, const uint8_t *in)
{
    packet->syndrome = in[0];
    packet->msn = bytes_get(in + 1, 3);
}

static void encode_atomic_ack(const struct packet *packet, uint8_t *out)
{
    bytes_put(out, 8, packet->original);
}

static void decode_atomic_ack(struct packet *packet, const uint8_t *in)
{
    packet->original = bytes_get(in, 8);
}

static void encode_immediate(const struct packet *packet, uint8_t *out)
{
    bytes_put(out, 4, packet->immediate);
}

static void decode_immediate(struct packet *packet, const uint8_t *in)
{
    packet->immediate = bytes_get(in, 4);
}

static void encode_ieth(const struct packet *packet, uint8_t *out)
{
    bytes_put(out, 4, packet->invalidate_key);
}

static void decode_ieth(struct packet *packet, const uint8_t *in)
{
    packet->invalidate_key = bytes_get(in, 4);
}

/* IBA volume 1, 9.3 "Extended Transport Headers", in the order of the wire and of the flags. */
static const struct {
    enum header_flag flag;
    uint8_t bytes;
    void (*encode)(const struct packet *packet, uint8_t *out);
    void (*decode)(struct packet *packet, const uint8_t *in);
} headers[] = {
    { HEADER_DETH, DETH_BYTES, encode_deth, decode_deth },
    { HEADER_XRCETH, XRCETH_BYTES, encode_xrceth, decode_xrceth },
    { HEADER_RETH, RETH_BYTES, encode_reth, decode_reth },
    { HEADER_ATOMIC, ATOMIC_BYTES, encode_atomic, decode_atomic },
    { HEADER_AETH, AETH_BYTES, encode_aeth, decode_aeth },
    { HEADER_ATOMIC_ACK, ATOMIC_ACK_BYTES, encode_atomic_ack, decode_atomic_ack },
    { HEADER_IMMEDIATE, IMMEDIATE_BYTES, encode_immediate, decode_immediate },
    { HEADER_IETH, IETH_BYTES, encode_ieth, decode_ieth },
};

size_t packet_encode(const struct packet *packet, uint8_t out[PACKET_MAX_HEADER_BYTES])
{
    const struct opcode_info *info = opcode_info(packet->opcode);
    uint8_t *at = out + BTH_BYTES;

    encode_bth(packet, out);
    for (unsigned i = 0; info->headers >> i; i++)
        if (info->headers & headers[i].flag) {
            headers[i].encode(packet, at);
            at += headers[i].bytes;
        }
    memset(at, 0, out + info->header_bytes - at);
    return info->header_bytes;
}

static const char *decode_payload(struct packet *packet, const struct opcode_info *info,
                                  const uint8_t *bytes, size_t length, uint32_t pad)
{
    if (length % 4)
        return "length is not a multiple of four";
    if (length && !(info->flags & OPCODE_PAYLOAD))
        return "payload in a packet that has none";
    if (pad > length)
        return "more padding than payload";
    if (length - pad > PACKET_MAX_PAYLOAD_BYTES)
        return "payload larger than any MTU";
    packet->payload.source = (uintptr_t)bytes;
    packet->payload.offset = 0;
    packet->payload.length = length - pad;
    return NULL;
}

const char *packet_decode(struct packet *packet, const uint8_t *bytes, size_t length)
{
    if (length < BTH_BYTES)
        return "shorter than a base transport header";

    const struct opcode_info *info = opcode_info(bytes[0]);
    const uint8_t *at = bytes + BTH_BYTES;

    if (!info)
        return "unknown opcode";
    if (bytes[1] & BTH_VERSION)
        return "unknown version of the transport header";
    if (length < info->header_bytes)
        return "shorter than its headers";
    *packet = (struct packet){ 0 };
    decode_bth(packet, bytes);
    for (unsigned i = 0; info->headers >> i; i++)
        if (info->headers & headers[i].flag) {
            headers[i].decode(packet, at);
            at += headers[i].bytes;
        }
    return decode_payload(packet, info, at, length - info->header_bytes,
                          bytes[1] >> BTH_PAD_SHIFT & 3);
}
