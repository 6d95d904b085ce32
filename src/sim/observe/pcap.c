/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/observe/pcap.h"

#include "hca/addr.h"
#include "sim/model/payload.h"
#include "sim/model/hca.h"
#include "sim/observe/observe.h"
#include "sim/observe/output.h"
#include "transport/frame.h"

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

static void path_of(const struct sim_port *from, const struct sim_port *to,
                    const struct sim_packet *pkt, struct frame_path *path)
{
    const struct sim_wqe *wqe = pkt->wqe;
    union ibv_gid own;

    *path = (struct frame_path){ .source_lid = from->lid, .destination_lid = to->lid };
    if (!wqe)
        return;
    path->service_level = wqe->sl;
    if (!wqe->has_grh)
        return;
    addr_gid(from->hca->node, from->hca->device, from->number, &own);
    path->global = true;
    path->hop_limit = 1;
    memcpy(path->source_gid, own.raw, sizeof(own.raw));
    memcpy(path->destination_gid, wqe->dgid.raw, sizeof(wqe->dgid.raw));
}

void pcap_packet(const struct sim_packet *pkt)
{
    const struct sim_port *from = pkt->from->port, *to = pkt->destination;
    uint8_t payload[PACKET_MAX_PAYLOAD_BYTES], bytes[sizeof(struct record) + FRAME_MAX_BYTES];
    uint64_t second = 1000000000, rest = sched->now % second;
    struct frame_path path;
    struct record record;
    size_t length;

    path_of(from, to, pkt, &path);
    payload_of_packet(pkt, payload);
    length = frame_encode(&path, &pkt->packet, payload, bytes + sizeof(record), FRAME_MAX_BYTES);
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
