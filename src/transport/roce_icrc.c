/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/roce_icrc.h"

#include "transport/crc.h"
#include "util/bytes.h"

#include <pthread.h>
#include <string.h>

#define IPV4_BYTES    20
#define IPV6_BYTES    40
#define UDP_BYTES     8
#define LRH_ONES      8
#define PROTOCOL_UDP  17
#define DONT_FRAGMENT 0x4000
#define AFTER_IPV4_ID (IPV4_BYTES - 4) /* bytes of the IP header from the identification on */
#define BTH_FLAGS_AT  4
#define POLYNOMIAL    0xedb88320u
#define ONE           0x80000000u /* the polynomial 1: the lowest coefficient is the highest bit */
#define POWERS        16
#define KEPT          8

/* ---- the headers, with ones where routers may change them ---- */

static uint8_t *put_ipv4(uint8_t *at, const struct roce_flow *flow, size_t length,
                         uint16_t identification, uint16_t fragment)
{
    memset(at, 0xff, IPV4_BYTES);
    at[0] = 0x45;
    bytes_put(at + 2, 2, IPV4_BYTES + UDP_BYTES + length);
    bytes_put(at + 4, 2, identification);
    bytes_put(at + 6, 2, fragment);
    at[9] = PROTOCOL_UDP;
    memcpy(at + 12, flow->source + 12, 4);
    memcpy(at + 16, flow->destination + 12, 4);
    return at + IPV4_BYTES;
}

static uint8_t *put_ipv6(uint8_t *at, const struct roce_flow *flow, size_t length)
{
    memset(at, 0xff, IPV6_BYTES);
    at[0] = 0x6f;
    bytes_put(at + 4, 2, UDP_BYTES + length);
    at[6] = PROTOCOL_UDP;
    memcpy(at + 8, flow->source, 16);
    memcpy(at + 24, flow->destination, 16);
    return at + IPV6_BYTES;
}

/* The CRC of the IP and UDP headers of a packet of `length` bytes. */
static uint32_t crc_of_heads(const struct roce_flow *flow, size_t length, uint16_t identification,
                             uint16_t fragment)
{
    uint8_t head[LRH_ONES + IPV6_BYTES + UDP_BYTES], *at = head + LRH_ONES;
    size_t datagram = length + ICRC_BYTES;

    memset(head, 0xff, LRH_ONES);
    at = roce_flow_is_ipv4(flow) ? put_ipv4(at, flow, datagram, identification, fragment)
                                 : put_ipv6(at, flow, datagram);
    bytes_put(at, 2, flow->source_port);
    bytes_put(at + 2, 2, ROCE_UDP_PORT);
    bytes_put(at + 4, 2, UDP_BYTES + datagram);
    memset(at + 6, 0xff, 2);
    return crc_invariant(CRC_START, head, at + UDP_BYTES - head);
}

/* What the bytes of an identification add to the CRC of IPv4 and UDP headers, whatever else they
 * contain: the CRC is linear. */
static uint32_t identified[2][256];
static pthread_once_t identified_known = PTHREAD_ONCE_INIT;

static void find_identified(void)
{
    struct roce_flow flow = { .source = ROCE_IPV4_PREFIX };

    for (unsigned byte = 0; byte < 256; byte++)
        for (int high = 0; high < 2; high++)
            identified[high][byte] =
                crc_of_heads(&flow, 0, byte << 8 * high, 0) ^ crc_of_heads(&flow, 0, 0, 0);
}

/* Most packets have the addresses and the length of one that came shortly before. */
static uint32_t recall_heads(const struct roce_flow *flow, size_t length)
{
    static _Thread_local struct kept_heads {
        struct roce_flow flow;
        size_t length;
        uint32_t crc;
    } kept[KEPT] __attribute__((tls_model("initial-exec")));
    struct kept_heads *found;

    found = &kept[(length / 4 ^ flow->source[15]) % KEPT];
    if (found->length != length || memcmp(&found->flow, flow, sizeof(*flow))) {
        found->flow = *flow;
        found->length = length;
        found->crc = crc_of_heads(flow, length, 0, DONT_FRAGMENT);
    }
    return found->crc;
}

static uint32_t heads(const struct roce_flow *flow, size_t length, uint16_t identification,
                      uint16_t fragment)
{
    if (fragment != DONT_FRAGMENT)
        return crc_of_heads(flow, length, identification, fragment);
    if (!identification || !roce_flow_is_ipv4(flow))
        return recall_heads(flow, length);
    pthread_once(&identified_known, find_identified);
    return recall_heads(flow, length) ^ identified[0][identification & 0xff] ^
           identified[1][identification >> 8];
}

static uint32_t add_bth(uint32_t crc, const uint8_t *bth)
{
    uint8_t masked[BTH_BYTES];

    memcpy(masked, bth, BTH_BYTES);
    masked[BTH_FLAGS_AT] = 0xff;
    return crc_invariant(crc, masked, BTH_BYTES);
}

static uint32_t crc_of(const struct roce_flow *flow, const uint8_t *bytes, size_t length,
                       uint16_t identification, uint16_t fragment)
{
    uint32_t crc = heads(flow, length, identification, fragment);

    if (length <= CRC_SHORT_BYTES)
        return ~crc_short(crc, bytes, length, BTH_FLAGS_AT);
    crc = add_bth(crc, bytes);
    return ~crc_invariant(crc, bytes + BTH_BYTES, length - BTH_BYTES);
}

uint32_t roce_icrc(const struct roce_flow *flow, const uint8_t *bytes, size_t length,
                   uint16_t identification)
{
    return crc_of(flow, bytes, length, identification, DONT_FRAGMENT);
}

uint32_t roce_icrc_fill(const struct roce_flow *flow, uint8_t *bytes, size_t length,
                        uint16_t identification, size_t header_bytes, const uint8_t *payload,
                        size_t payload_bytes)
{
    uint32_t crc = heads(flow, length, identification, DONT_FRAGMENT);
    size_t padding_at = header_bytes + payload_bytes;
    uint8_t masked[PACKET_MAX_HEADER_BYTES];

    _Static_assert(sizeof(masked) <= CRC_HEAD_BYTES, "the head of a packet");
    memcpy(masked, bytes, header_bytes);
    masked[BTH_FLAGS_AT] = 0xff;
    crc = crc_copy(crc, masked, header_bytes, bytes + header_bytes, payload, payload_bytes);
    if (padding_at < length)
        crc = crc_invariant(crc, bytes + padding_at, length - padding_at);
    return ~crc;
}

/* ---- solving for the identification ---- */

static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;

    for (uint32_t bit = ONE; bit; bit >>= 1) {
        if (a & bit)
            product ^= b;
        b = b >> 1 ^ (b & 1 ? POLYNOMIAL : 0);
    }
    return product;
}

static uint32_t divide_by_x(uint32_t a)
{
    return a & ONE ? (a ^ POLYNOMIAL) << 1 | 1 : a << 1;
}

static uint32_t inverse_powers[POWERS]; /* x^-8, x^-16, x^-32, ... */
static pthread_once_t powers_known = PTHREAD_ONCE_INIT;

static void find_powers(void)
{
    uint32_t power = ONE;

    for (int i = 0; i < 8; i++)
        power = divide_by_x(power);
    for (int i = 0; i < POWERS; i++) {
        inverse_powers[i] = power;
        power = multiply(power, power);
    }
}

/* The CRC is linear: two messages that differ in two bytes have CRCs whose difference is that of
 * the bytes, times x^8 for each byte from them to the end. */
static bool two_bytes_explain(uint32_t difference, size_t bytes_to_end, uint16_t *bytes)
{
    pthread_once(&powers_known, find_powers);
    for (int i = 0; difference && i < POWERS; i++)
        if (bytes_to_end >> i & 1)
            difference = multiply(difference, inverse_powers[i]);
    *bytes = (difference & 0xff) << 8 | difference >> 8;
    return !(difference >> 16);
}

bool roce_icrc_matches(const struct roce_flow *flow, const uint8_t *bytes, size_t length,
                       uint32_t received, uint16_t *identification)
{
    static const uint16_t fragments[] = { DONT_FRAGMENT, 0 };
    size_t to_end = AFTER_IPV4_ID + UDP_BYTES + length;

    if (received == roce_icrc(flow, bytes, length, *identification))
        return true;
    if (!roce_flow_is_ipv4(flow))
        return false;
    for (int i = 0; i < 2; i++)
        if (two_bytes_explain(received ^ crc_of(flow, bytes, length, 0, fragments[i]), to_end,
                              identification))
            return true;
    return false;
}
