/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers as bytes: known packets, there and back, and anything at all. */

#include "transport/frame.h"
#include "transport/psn.h"
#include "util/random.h"
#include "util/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t random_bits(unsigned bits)
{
    static uint64_t state;

    return random_next(&state) >> (64 - bits);
}

/* ---- the table ---- */

static void header_lengths_are_those_of_the_specification(void **state)
{
    static const struct {
        uint8_t opcode;
        uint8_t bytes;
        const char *name;
    } rows[] = {
        { 0x00, 12, "RC SEND First" },
        { 0x05, 16, "RC SEND Only with Immediate" },
        { 0x0a, 28, "RC RDMA WRITE Only" },
        { 0x0b, 32, "RC RDMA WRITE Only with Immediate" },
        { 0x0c, 28, "RC RDMA READ Request" },
        { 0x0d, 16, "RC RDMA READ response First" },
        { 0x0e, 12, "RC RDMA READ response Middle" },
        { 0x11, 16, "RC Acknowledge" },
        { 0x12, 24, "RC ATOMIC Acknowledge" },
        { 0x13, 40, "RC CmpSwap" },
        { 0x17, 16, "RC SEND Only with Invalidate" },
        { 0x26, 28, "UC RDMA WRITE First" },
        { 0x64, 20, "UD SEND Only" },
        { 0x65, 24, "UD SEND Only with Immediate" },
        { 0xa4, 16, "XRC SEND Only" },
        { 0xb4, 44, "XRC FetchAdd" },
        { 0xb1, 16, "XRC Acknowledge" },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct opcode_info *info = opcode_info(rows[i].opcode);
        assert_non_null(info);
        assert_int_equal(info->header_bytes, rows[i].bytes);
        assert_string_equal(info->name, rows[i].name);
    }
}

static void services_have_only_what_they_allow(void **state)
{
    unsigned known = 0;

    for (unsigned opcode = 0; opcode < 256; opcode++)
        known += opcode_info(opcode) != NULL;
    assert_int_equal(known, 23 + 12 + 2 + 23 + 1); /* RC, UC, UD, XRC, CNP */
    assert_null(opcode_info(SERVICE_UC | OPCODE_READ_REQUEST));
    assert_null(opcode_info(SERVICE_UC | OPCODE_SEND_ONLY_INVALIDATE));
    assert_null(opcode_info(SERVICE_UD | OPCODE_SEND_FIRST));
    assert_null(opcode_info(0x15)); /* RESYNC is of RD */
}

/* ---- known packets ---- */

static void assert_frame(const struct frame_path *path, const struct packet *packet,
                         const void *payload, const uint8_t *expected, size_t length)
{
    uint8_t bytes[FRAME_MAX_BYTES];

    assert_int_equal(frame_encode(path, packet, payload, bytes, sizeof(bytes)), length);
    assert_memory_equal(bytes, expected, length);
}

/* The local packet that the specification gives as an example of an ICRC (volume 1, 7.8.1). */
static void the_example_of_the_specification(void **state)
{
    static const uint8_t frame[] = {
        0x70, 0x12, 0x37, 0x5c, 0x00, 0x0e, 0x17, 0xd2, 0x0a, 0x20, 0x24, 0x87, 0x00, 0x87, 0xb1,
        0xb3, 0x00, 0x0d, 0xec, 0x2a, 0x01, 0x71, 0x0a, 0x1c, 0x01, 0x5d, 0x40, 0x02, 0x38, 0xf2,
        0x7a, 0x05, 0x00, 0x00, 0x00, 0x0e, 0xbb, 0x88, 0x4d, 0x85, 0xfd, 0x5c, 0xfb, 0xa4, 0x72,
        0x8b, 0xc0, 0x69, 0x0e, 0xd4, 0x00, 0x00, 0x96, 0x25, 0xb7, 0x5a, 0x45, 0xfa,
    };
    const struct frame_path path = {
        .virtual_lane = 7, .service_level = 1, .destination_lid = 0x375c, .source_lid = 0x17d2
    };
    const struct packet packet = {
        .opcode = SERVICE_RC | OPCODE_WRITE_ONLY,
        .pkey = 0x2487,
        .destination_qpn = 0x87b1b3,
        .psn = 0x0dec2a,
        .remote_address = 0x01710a1c015d4002,
        .remote_key = 0x38f27a05,
        .remote_length = 14,
        .payload.length = 14,
    };

    assert_frame(&path, &packet, frame + 36, frame, sizeof(frame));
}

static void a_global_datagram(void **state)
{
    static const uint8_t frame[] = {
        0x00, 0x23, 0x00, 0x04, 0x00, 0x14, 0x00, 0x03, 0x61, 0x23, 0x45, 0x67, 0x00, 0x20,
        0x1b, 0x40, 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x01, 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x65, 0xd0, 0xff, 0xff, 0x00, 0x00, 0x01, 0x02,
        0x00, 0x03, 0x04, 0x05, 0x80, 0x01, 0x00, 0x00, 0x00, 0x06, 0x07, 0x08, 0xca, 0xfe,
        0xf0, 0x0d, 0x61, 0x62, 0x63, 0x00, 0xf8, 0xd5, 0x4c, 0x31, 0x31, 0xe5
    };
    const struct frame_path path = {
        .service_level = 2,
        .destination_lid = 4,
        .source_lid = 3,
        .global = true,
        .traffic_class = 0x12,
        .flow_label = 0x34567,
        .hop_limit = 64,
        .source_gid = { 0xfe, 0x80, [15] = 1 },
        .destination_gid = { 0xfe, 0x80, [15] = 2 },
    };
    const struct packet packet = {
        .opcode = SERVICE_UD | OPCODE_SEND_ONLY_IMMEDIATE,
        .solicited = true,
        .migrated = true,
        .pkey = 0xffff,
        .destination_qpn = 0x000102,
        .psn = 0x030405,
        .qkey = 0x80010000,
        .source_qpn = 0x060708,
        .immediate = 0xcafef00d,
        .payload.length = 3,
    };

    assert_frame(&path, &packet, "abc", frame, sizeof(frame));
}

/* BECN is set, and sixteen bytes are reserved (annex A17). */
static void a_congestion_notification(void **state)
{
    static const uint8_t expected[BTH_BYTES + CNP_RESERVED_BYTES] = { OPCODE_CNP, 0,    0xff, 0xff, 0x40,
                                                                      0x12,       0x34, 0x56 };
    struct packet packet = { .opcode = OPCODE_CNP, .pkey = 0xffff, .destination_qpn = 0x123456 };
    struct packet decoded;
    uint8_t bytes[PACKET_MAX_HEADER_BYTES];

    memset(bytes, 0xaa, sizeof(bytes));
    assert_int_equal(packet_encode(&packet, bytes), sizeof(expected));
    assert_memory_equal(bytes, expected, sizeof(expected));
    assert_null(packet_decode(&decoded, bytes, sizeof(expected)));
    assert_int_equal(decoded.opcode, OPCODE_CNP);
    assert_int_equal(decoded.destination_qpn, 0x123456);
}

static void an_acknowledgement(void **state)
{
    static const uint8_t frame[] = { 0x00, 0x02, 0x00, 0x01, 0x00, 0x07, 0x00, 0x02, 0x11, 0x40,
                                     0xff, 0xff, 0x00, 0x00, 0x00, 0x11, 0x00, 0xff, 0xff, 0xfe,
                                     0x1f, 0x00, 0x02, 0x03, 0xa0, 0xe3, 0x94, 0x8a, 0xdb, 0xb2 };
    const struct frame_path path = { .destination_lid = 1, .source_lid = 2 };
    const struct packet packet = {
        .opcode = SERVICE_RC | OPCODE_ACKNOWLEDGE,
        .migrated = true,
        .pkey = 0xffff,
        .destination_qpn = 0x11,
        .psn = 0xfffffe,
        .syndrome = ACK_NO_CREDITS,
        .msn = 0x000203,
    };

    assert_frame(&path, &packet, NULL, frame, sizeof(frame));
}

/* ---- there and back ---- */

static struct packet random_packet(uint8_t opcode)
{
    const struct opcode_info *info = opcode_info(opcode);
    bool remote = info->headers & (HEADER_RETH | HEADER_ATOMIC);
    struct packet packet = {
        .opcode = opcode,
        .solicited = random_bits(1),
        .migrated = random_bits(1),
        .ack_request = random_bits(1),
        .pkey = random_bits(16),
        .destination_qpn = random_bits(24),
        .psn = random_bits(24),
        .remote_address = remote ? random_bits(64) : 0,
        .remote_key = remote ? random_bits(32) : 0,
        .remote_length = info->headers & HEADER_RETH ? random_bits(32) : 0,
        .swap_or_add = info->headers & HEADER_ATOMIC ? random_bits(64) : 0,
        .compare = info->headers & HEADER_ATOMIC ? random_bits(64) : 0,
        .syndrome = info->headers & HEADER_AETH ? random_bits(8) : 0,
        .msn = info->headers & HEADER_AETH ? random_bits(24) : 0,
        .original = info->headers & HEADER_ATOMIC_ACK ? random_bits(64) : 0,
        .immediate = info->headers & HEADER_IMMEDIATE ? random_bits(32) : 0,
        .invalidate_key = info->headers & HEADER_IETH ? random_bits(32) : 0,
        .qkey = info->headers & HEADER_DETH ? random_bits(32) : 0,
        .source_qpn = info->headers & HEADER_DETH ? random_bits(24) : 0,
        .srq = info->headers & HEADER_XRCETH ? random_bits(24) : 0,
    };

    if (info->flags & OPCODE_PAYLOAD)
        packet.payload.length = random_bits(12) + random_bits(1);
    return packet;
}

static struct frame_path random_path(void)
{
    struct frame_path path = {
        .virtual_lane = random_bits(4),
        .service_level = random_bits(4),
        .source_lid = random_bits(16),
        .destination_lid = random_bits(16),
        .global = random_bits(1),
    };

    if (path.global) {
        path.traffic_class = random_bits(8);
        path.hop_limit = random_bits(8);
        path.flow_label = random_bits(20);
        path.source_gid[5] = random_bits(8);
        path.destination_gid[15] = random_bits(8);
    }
    return path;
}

static void what_is_encoded_is_decoded(void **state)
{
    static uint8_t payload[PACKET_MAX_PAYLOAD_BYTES];
    uint8_t bytes[FRAME_MAX_BYTES], again[FRAME_MAX_BYTES];

    for (unsigned i = 0; i < sizeof(payload); i++)
        payload[i] = random_bits(8);
    for (unsigned round = 0; round < 20 * 256; round++) {
        if (!opcode_info(round % 256))
            continue;
        struct packet sent = random_packet(round % 256), got;
        struct frame_path sent_path = random_path(), got_path;
        size_t length = frame_encode(&sent_path, &sent, payload, bytes, sizeof(bytes));

        assert_int_equal(length, frame_bytes(&sent_path, &sent));
        assert_int_equal(frame_encode(&sent_path, &sent, payload, bytes, length - 1), 0);
        assert_null(frame_decode(&got_path, &got, bytes, length));
        assert_int_equal(got.payload.length, sent.payload.length);
        assert_int_equal(frame_encode(&got_path, &got, (void *)(uintptr_t)got.payload.source, again,
                                      sizeof(again)),
                         length);
        assert_memory_equal(again, bytes, length);
    }
}

/* ---- what is not a packet ---- */

static void every_flipped_bit_is_seen(void **state)
{
    const struct frame_path path = { .global = true };
    const struct packet packet = { .opcode = SERVICE_RC | OPCODE_SEND_ONLY, .payload.length = 5 };
    struct frame_path got_path;
    struct packet got;
    uint8_t bytes[FRAME_MAX_BYTES];
    size_t length = frame_encode(&path, &packet, "hello", bytes, sizeof(bytes));

    for (size_t bit = 0; bit < length * 8; bit++) {
        bytes[bit / 8] ^= 1 << bit % 8;
        assert_non_null(frame_decode(&got_path, &got, bytes, length));
        bytes[bit / 8] ^= 1 << bit % 8;
    }
    assert_null(frame_decode(&got_path, &got, bytes, length));
}

/* A switch may change the lane and mark congestion; then only the VCRC is made anew. */
static void the_icrc_spares_what_switches_change(void **state)
{
    const struct packet packet = { .opcode = SERVICE_RC | OPCODE_SEND_ONLY };
    uint8_t on_lane[2][FRAME_MAX_BYTES];
    size_t length = 0;

    for (unsigned i = 0; i < 2; i++) {
        const struct frame_path path = { .virtual_lane = i * 9 };
        length = frame_encode(&path, &packet, NULL, on_lane[i], sizeof(on_lane[i]));
    }
    size_t to_vcrc = length - VCRC_BYTES;
    assert_memory_equal(on_lane[0] + to_vcrc - ICRC_BYTES, on_lane[1] + to_vcrc - ICRC_BYTES,
                        ICRC_BYTES);
    assert_memory_not_equal(on_lane[0] + to_vcrc, on_lane[1] + to_vcrc, VCRC_BYTES);
}

static void assert_refused(const char *why, const uint8_t *bytes, size_t length)
{
    struct packet packet;
    const char *wrong = packet_decode(&packet, bytes, length);

    assert_non_null(wrong);
    assert_string_equal(wrong, why);
}

static void malformed_packets_are_refused_with_a_reason(void **state)
{
    static uint8_t big[BTH_BYTES + PACKET_MAX_PAYLOAD_BYTES + 4] = { OPCODE_SEND_ONLY };
    const uint8_t send[BTH_BYTES + 4] = { OPCODE_SEND_ONLY };
    const uint8_t padded[BTH_BYTES + 4] = { OPCODE_SEND_ONLY, 0x10 };
    const uint8_t version[BTH_BYTES] = { OPCODE_SEND_ONLY, 0x01 };
    const uint8_t unknown[BTH_BYTES] = { 0xff };
    const uint8_t ack[BTH_BYTES + AETH_BYTES + 4] = { OPCODE_ACKNOWLEDGE };

    assert_refused("shorter than a base transport header", send, BTH_BYTES - 1);
    assert_refused("unknown opcode", unknown, sizeof(unknown));
    assert_refused("unknown version of the transport header", version, sizeof(version));
    assert_refused("shorter than its headers", ack, BTH_BYTES);
    assert_refused("length is not a multiple of four", send, BTH_BYTES + 3);
    assert_refused("more padding than payload", padded, BTH_BYTES);
    assert_refused("payload in a packet that has none", ack, sizeof(ack));
    assert_refused("payload larger than any MTU", big, sizeof(big));
}

static void malformed_frames_are_refused_with_a_reason(void **state)
{
    static const struct {
        const char *why;
        uint8_t at;
        uint8_t value;
    } rows[] = {
        { "unknown version of the link", 0, 0x01 },
        { "raw packet", 1, 0x00 },
        { "length differs from that in the LRH", 5, 0x00 },
        { "unknown version of the GRH", 8, 0x40 },
        { "length differs from that in the GRH", 13, 0x00 },
        { "no transport header after the GRH", 14, 0x11 },
        { "VCRC is wrong", 3, 0x99 },
    };
    const struct frame_path path = { .global = true };
    const struct packet packet = { .opcode = SERVICE_RC | OPCODE_SEND_ONLY };
    struct frame_path got_path;
    struct packet got;
    uint8_t good[FRAME_MAX_BYTES], bad[FRAME_MAX_BYTES];
    size_t length = frame_encode(&path, &packet, NULL, good, sizeof(good));

    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        memcpy(bad, good, length);
        bad[rows[i].at] = rows[i].value;
        assert_string_equal(frame_decode(&got_path, &got, bad, length), rows[i].why);
    }
    assert_string_equal(frame_decode(&got_path, &got, good, 20), "shorter than any packet");
}

/* The bytes end where the heap block does, so that reading past them is seen. */
static void anything_at_all_can_be_decoded(void **state)
{
    struct frame_path path;
    struct packet packet;

    for (unsigned round = 0; round < 20000; round++) {
        size_t length = random_bits(7);
        uint8_t *bytes = malloc(length ? length : 1);
        assert_non_null(bytes);
        for (size_t i = 0; i < length; i++)
            bytes[i] = random_bits(8);
        if (length > BTH_BYTES && round % 2)
            bytes[1] &= 0xf0;
        const char *wrong = packet_decode(&packet, bytes, length);
        if (!wrong)
            assert_in_range(packet.payload.length, 0, length);
        frame_decode(&path, &packet, bytes, length);
        free(bytes);
    }
}

static void psns_wrap(void **state)
{
    assert_int_equal(psn_add(PSN_MASK, 1), 0);
    assert_int_equal(psn_distance(PSN_MASK, 1), 2);
    assert_int_equal(psn_distance(1, PSN_MASK), PSN_MASK - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_lengths_are_those_of_the_specification),
        cmocka_unit_test(services_have_only_what_they_allow),
        cmocka_unit_test(the_example_of_the_specification),
        cmocka_unit_test(a_global_datagram),
        cmocka_unit_test(a_congestion_notification),
        cmocka_unit_test(an_acknowledgement),
        cmocka_unit_test(what_is_encoded_is_decoded),
        cmocka_unit_test(every_flipped_bit_is_seen),
        cmocka_unit_test(the_icrc_spares_what_switches_change),
        cmocka_unit_test(malformed_packets_are_refused_with_a_reason),
        cmocka_unit_test(malformed_frames_are_refused_with_a_reason),
        cmocka_unit_test(anything_at_all_can_be_decoded),
        cmocka_unit_test(psns_wrap),
    };

    return cmocka_run_group_tests_name("transport_packet", tests, NULL, NULL);
}
