/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/observe/pcap.h"

#include "sim/model/cable.h"
#include "sim/model/hca.h"
#include "sim/observe/observe.h"
#include "sim/observe/output.h"

#include <endian.h>
#include <string.h>

#define PCAP_MAGIC_NS  0xa1b23c4d
#define PCAP_LINK_ERF  197
#define PCAP_SNAPSHOT  65535
#define ERF_INFINIBAND 21
#define ERF_VARYING    4 /* flag: records of varying length */

struct pcap_header {
    uint32_t magic;
    uint16_t major, minor;
    int32_t zone;
    uint32_t accuracy;
    uint32_t snapshot;
    uint32_t link;
};

/* A pcap record header followed by an ERF header. */
struct record {
    uint32_t seconds, nanoseconds;
    uint32_t captured, original;
    uint64_t erf_time; /* seconds, the lower half a fraction; little endian */
    uint8_t erf_type, erf_flags;
    uint16_t erf_length, erf_lost, erf_wire_length; /* big endian */
} __attribute__((packed));

#define ERF_BYTES (sizeof(struct record) - offsetof(struct record, erf_time))

bool pcap_on;

static struct output output;

int pcap_open(const char *path, bool first)
{
    struct pcap_header header = { .magic = PCAP_MAGIC_NS,
                                  .major = 2,
                                  .minor = 4,
                                  .snapshot = PCAP_SNAPSHOT,
                                  .link = PCAP_LINK_ERF };
    int error = output_open(&output, path, &observe->pcap_size, first);

    if (error)
        return error;
    pcap_on = true;
    if (first) {
        output_put(&output, &header, sizeof(header));
        output_flush(&output);
    }
    return 0;
}

void pcap_flush(void)
{
    output_flush(&output);
}

void pcap_packet(const struct sim_packet *pkt)
{
    uint8_t bytes[sizeof(struct record) + FRAME_MAX_BYTES];
    uint64_t second = 1000000000, rest = sched->now % second;
    size_t length = cable_frame(pkt, bytes + sizeof(struct record));
    struct record record;

    record = (struct record){
        .seconds = sched->now / second,
        .nanoseconds = rest,
        .captured = ERF_BYTES + length,
        .original = ERF_BYTES + length,
        .erf_time = htole64(sched->now / second << 32 | (rest << 32) / second),
        .erf_type = ERF_INFINIBAND,
        .erf_flags = ERF_VARYING,
        .erf_length = htobe16(ERF_BYTES + length),
        .erf_wire_length = htobe16(length),
    };
    memcpy(bytes, &record, sizeof(record));
    output_put(&output, bytes, sizeof(record) + length);
}
