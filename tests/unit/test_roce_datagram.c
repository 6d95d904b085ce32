/* SPDX-License-Identifier: BSD-2-Clause */
/* RoCEv2 packets and their ICRC: with any IPv4 identification, damaged, and random bytes. */

#include "transport/roce_frame.h"
#include "util/random.h"
#include "util/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct roce_flow ipv4 = {
    .source = ROCE_IPV4_PREFIX "\x0a\x00\x00\x01",
    .destination = ROCE_IPV4_PREFIX "\x0a\x00\x00\x02",
    .source_port = 49200,
};
static const struct roce_flow ipv6 = {
    .source = "\xfd\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01",
    .destination = "\xfd\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02",
    .source_port = ROCE_UDP_PORT,
};

static uint64_t random_bits(unsigned bits)
{
    static uint64_t state;

    return random_next(&state) >> (64 - bits);
}

static size_t make(const struct roce_flow *flow, uint8_t *frame, uint32_t payload, uint16_t id)
{
    struct packet packet = { .opcode = SERVICE_RC | OPCODE_SEND_ONLY,
                             .pkey = 0xffff,
                             .destination_qpn = 0x1234,
                             .psn = 77,
                             .payload = { .length = payload } };
    size_t headers = packet_encode(&packet, frame);

    for (uint32_t i = 0; i < payload; i++)
        frame[headers + i] = random_bits(8);
    return roce_datagram_seal(flow, frame, headers, payload, id);
}

/* Computed from the definition, by zlib's crc32(). */
static void a_known_frame_has_its_icrc(void **state)
{
    static const uint8_t expected[] = { 0xc9, 0x02, 0x59, 0x4c };
    struct packet packet = { .opcode = SERVICE_RC | OPCODE_ACKNOWLEDGE,
                             .pkey = 0xffff,
                             .destination_qpn = 0x11,
                             .psn = 0x22,
                             .syndrome = ACK_NO_CREDITS,
                             .msn = 1 };
    uint8_t frame[ROCE_MAX_DATAGRAM];
    size_t headers = packet_encode(&packet, frame);

    assert_int_equal(roce_datagram_seal(&ipv4, frame, headers, 0, 0x1234), 20);
    assert_memory_equal(frame + 16, expected, 4);
}

/* With every remainder of the length, at any address. */
static void payload_is_sealed_while_it_is_copied(void **state)
{
    static uint8_t source[PACKET_MAX_PAYLOAD_BYTES + 64];
    uint8_t sealed[ROCE_MAX_DATAGRAM], filled[ROCE_MAX_DATAGRAM];

    for (int i = 0; i < 3000; i++) {
        uint32_t payload = i < 600 ? (uint32_t)i : random_bits(32) % (PACKET_MAX_PAYLOAD_BYTES + 1);
        const struct roce_flow *flow = i % 2 ? &ipv6 : &ipv4;
        size_t shift = random_bits(6), headers = opcode_info(OPCODE_SEND_ONLY)->header_bytes;
        size_t length = make(flow, sealed, payload, i);

        memcpy(source + shift, sealed + headers, payload);
        memset(filled, 0xff, sizeof(filled));
        memcpy(filled, sealed, headers);
        assert_int_equal(roce_datagram_fill(flow, filled, headers, source + shift, payload, i),
                         length);
        assert_memory_equal(filled, sealed, length);
    }
}

static void frames_come_back_whatever_their_identification(void **state)
{
    uint8_t frame[ROCE_MAX_DATAGRAM];
    struct packet packet;

    for (int i = 0; i < 2000; i++) {
        uint32_t payload = i < 8 ? (uint32_t)i : random_bits(32) % 4097;
        uint16_t identification = random_bits(16), found = random_bits(16);
        size_t length = make(&ipv4, frame, payload, identification);

        assert_null(roce_datagram_decode(&ipv4, frame, length, &found, &packet));
        assert_int_equal(found, identification);
        assert_int_equal(packet.payload.length, payload);
        assert_int_equal(packet.destination_qpn, 0x1234);
        length = make(&ipv6, frame, payload, 0);
        assert_null(roce_datagram_decode(&ipv6, frame, length, &(uint16_t){ 0 }, &packet));
    }
}

static void a_changed_byte_is_noticed(void **state)
{
    uint8_t frame[ROCE_MAX_DATAGRAM];
    struct packet packet;
    int unnoticed = 0;

    for (int i = 0; i < 20000; i++) {
        size_t length = make(&ipv4, frame, random_bits(32) % 300, 0), at = random_bits(32) % length;

        if (at == 4) /* routers may change this one */
            continue;
        frame[at] ^= 1 + random_bits(32) % 255;
        unnoticed += !roce_datagram_decode(&ipv4, frame, length, &(uint16_t){ 0 }, &packet);
    }
    /* 16 bits are left to notice them. At some distances from the identification, a changed byte
     * looks like another identification more often than at random. */
    assert_true(unnoticed <= 20);
}

static void addresses_and_ports_belong_to_the_icrc(void **state)
{
    struct roce_flow other = ipv6;
    uint8_t frame[ROCE_MAX_DATAGRAM];
    struct packet packet;
    size_t length = make(&ipv6, frame, 100, 0);

    other.source[15]++;
    assert_non_null(roce_datagram_decode(&other, frame, length, &(uint16_t){ 0 }, &packet));
    other = ipv6;
    other.source_port++;
    assert_non_null(roce_datagram_decode(&other, frame, length, &(uint16_t){ 0 }, &packet));
    assert_null(roce_datagram_decode(&ipv6, frame, length, &(uint16_t){ 0 }, &packet));
}

static void every_flipped_bit_of_a_frame_is_noticed(void **state)
{
    struct frame_path path = { .source_lid = 0x102,
                               .destination_lid = 0x304,
                               .global = true,
                               .hop_limit = 64,
                               .source_gid = "\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0",
                               .destination_gid = "\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\1" };
    struct packet packet = { .opcode = SERVICE_RC | OPCODE_SEND_ONLY,
                             .pkey = 0xffff,
                             .destination_qpn = 0x1234,
                             .psn = 77,
                             .payload = { .length = 5 } };
    uint8_t frame[ROCE_FRAME_MAX_BYTES];
    size_t length = roce_frame_encode(&path, &packet, "abcde", frame);
    struct packet decoded;

    assert_int_equal(length, 14 + 40 + 8 + 12 + 8 + 4 + 4);
    assert_int_equal(length, roce_frame_bytes(&packet));
    assert_memory_equal(frame, "\x02\0\0\0\x03\x04\x02\0\0\0\x01\x02\x86\xdd", 14);
    assert_null(roce_frame_decode(&decoded, frame, length));
    assert_int_equal(decoded.psn, 77);
    assert_int_equal(decoded.payload.length, 5);
    for (size_t bit = 0; bit < 8 * length; bit++) {
        frame[bit / 8] ^= 1 << bit % 8;
        assert_non_null(roce_frame_decode(&decoded, frame, length));
        frame[bit / 8] ^= 1 << bit % 8;
    }
}

static uint32_t sum16(uint32_t sum, const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i += 2)
        sum += bytes[i] << 8 | bytes[i + 1];
    return sum;
}

/* The headers agree with each other: addresses with the ICRC, lengths, ports and the UDP checksum.
 */
static void a_frame_has_consistent_headers(void **state)
{
    struct frame_path path = { .source_lid = 0x102,
                               .destination_lid = 0x304,
                               .global = true,
                               .hop_limit = 64,
                               .source_gid = "\xfe\x80\1\2\3\4\5\6\7\x8\x9\xa\xb\xc\xd\xe",
                               .destination_gid =
                                   "\xfe\x80\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d" };
    struct packet decoded;
    uint8_t frame[ROCE_FRAME_MAX_BYTES];
    struct roce_flow flow = { 0 };

    for (uint32_t length = 0; length < 64; length += 3) {
        struct packet packet = { .opcode = SERVICE_RC | OPCODE_SEND_ONLY,
                                 .pkey = 0xffff,
                                 .destination_qpn = 0xabcdef - length,
                                 .payload = { .length = length } };
        uint8_t payload[64];
        memset(payload, 0xf0 + length, sizeof(payload));
        size_t total = roce_frame_encode(&path, &packet, payload, frame), udp = total - 14 - 40 - 4;
        const uint8_t *ip = frame + 14;
        assert_memory_equal(ip + 8, path.source_gid, 16);
        assert_memory_equal(ip + 24, path.destination_gid, 16);
        assert_int_equal(ip[6], 17);
        assert_int_equal(ip[7], 64);
        assert_int_equal(ip[4] << 8 | ip[5], udp);
        assert_int_equal(ip[40] << 8 | ip[41], 0xc000 | (packet.destination_qpn & 0x3fff));
        assert_int_equal(ip[42] << 8 | ip[43], ROCE_UDP_PORT);
        assert_int_equal(ip[44] << 8 | ip[45], udp);
        uint32_t sum = sum16(udp + 17, ip + 8, 32 + udp); /* with the checksum: all ones */
        sum = (sum & 0xffff) + (sum >> 16);
        assert_int_equal((sum & 0xffff) + (sum >> 16), 0xffff);
        memcpy(flow.source, path.source_gid, 16);
        memcpy(flow.destination, path.destination_gid, 16);
        flow.source_port = ip[40] << 8 | ip[41];
        assert_null(roce_datagram_decode(&flow, ip + 48, udp - 8, &(uint16_t){ 0 }, &decoded));
        assert_int_equal(decoded.destination_qpn, packet.destination_qpn);
        assert_null(roce_frame_decode(&decoded, frame, total));
        for (size_t cut = 0; cut < 14 + 40 + 8 + 4; cut++)
            assert_string_equal(roce_frame_decode(&decoded, frame, cut),
                                "shorter than its headers");
    }
}

/* `count` packets with `payload` bytes each, but the last with `last`. */
static size_t join(const struct roce_flow *flow, uint8_t *bytes, unsigned count, uint32_t payload,
                   uint32_t last, uint16_t identification)
{
    size_t length = 0;

    for (unsigned i = 0; i < count; i++)
        length += make(flow, bytes + length, i + 1 < count ? payload : last, identification + i);
    return length;
}

static void lengths_of_joined_packets_are_found(void **state)
{
    static uint8_t bytes[65536];
    uint8_t frame[ROCE_MAX_DATAGRAM];

    for (int i = 0; i < 300; i++) {
        const struct roce_flow *flow = i % 3 ? &ipv4 : &ipv6;
        uint32_t payload = random_bits(32) % 200, last = random_bits(32) % (payload + 1);
        uint16_t identification = random_bits(16), found = i & 1 ? identification : random_bits(16);
        size_t length = join(flow, bytes, 1 + i % 4, payload, last, identification);

        if (i % 4 == 0)
            payload = last;
        assert_int_equal(roce_datagram_segment(flow, bytes, length, &found),
                         make(flow, frame, payload, 0));
        if (flow == &ipv4)
            assert_int_equal(found, identification);
        bytes[random_bits(32) % (length / 4) * 4 + 1] ^= 1; /* not the one that may change */
        found = identification;
        assert_int_equal(roce_datagram_segment(flow, bytes, length, &found), 0);
        assert_int_equal(roce_datagram_segment(flow, bytes, length - 1, &found), 0);
    }
}

static void long_packets_are_found_by_their_mtu(void **state)
{
    static uint8_t bytes[65536];

    for (uint32_t mtu = 256; mtu <= 4096; mtu *= 2) {
        size_t segment = mtu + BTH_BYTES + ICRC_BYTES, length = 0;
        struct packet packet = { .opcode = OPCODE_SEND_MIDDLE, .payload.length = mtu };
        uint16_t found = 77;

        for (int i = 0; i < 15; i++, length += segment) {
            packet_encode(&packet, bytes + length);
            assert_int_equal(
                roce_datagram_seal(&ipv4, bytes + length, BTH_BYTES, mtu, 77 + i), segment);
        }
        assert_int_equal(roce_datagram_segment(&ipv4, bytes, length, &found), segment);
    }
}

/* What a program sends may look like two packets. */
static void payload_is_not_taken_for_packets(void **state)
{
    uint8_t frame[ROCE_MAX_DATAGRAM], inner[ROCE_MAX_DATAGRAM];
    size_t headers = opcode_info(OPCODE_SEND_ONLY)->header_bytes;
    size_t first = make(&ipv4, frame, 40, 7), second = make(&ipv4, inner, 4, 8);
    uint16_t found = 7;

    memcpy(frame + first, inner, second);
    size_t length =
        roce_datagram_seal(&ipv4, frame, headers, first + second - headers - ICRC_BYTES, 7);
    assert_int_equal(length, first + second);
    assert_int_equal(roce_datagram_segment(&ipv4, frame, length, &found), length);
}

static void anything_may_arrive(void **state)
{
    struct packet packet;

    for (int i = 0; i < 50000; i++) {
        size_t length = random_bits(32) % 80;
        uint8_t *bytes = malloc(length ? length : 1); /* of exactly this size, for ASan */

        for (size_t k = 0; k < length; k++)
            bytes[k] = random_bits(8);
        roce_datagram_decode(i & 1 ? &ipv4 : &ipv6, bytes, length, &(uint16_t){ 0 }, &packet);
        roce_datagram_segment(i & 1 ? &ipv4 : &ipv6, bytes, length, &(uint16_t){ 0 });
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_known_frame_has_its_icrc),
        cmocka_unit_test(payload_is_sealed_while_it_is_copied),
        cmocka_unit_test(frames_come_back_whatever_their_identification),
        cmocka_unit_test(a_changed_byte_is_noticed),
        cmocka_unit_test(addresses_and_ports_belong_to_the_icrc),
        cmocka_unit_test(every_flipped_bit_of_a_frame_is_noticed),
        cmocka_unit_test(a_frame_has_consistent_headers),
        cmocka_unit_test(lengths_of_joined_packets_are_found),
        cmocka_unit_test(long_packets_are_found_by_their_mtu),
        cmocka_unit_test(payload_is_not_taken_for_packets),
        cmocka_unit_test(anything_may_arrive),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
