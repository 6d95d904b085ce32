/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/observe/pcap.h"

#include "hca/addr.h"
#include "sim/model/cable.h"
#include "sim/model/hca.h"
#include "sim/model/payload.h"
#include "sim/observe/observe.h"
#include "sim/observe/output.h"
#include "transport/roce.h"

#include <endian.h>
#include <string.h>

#define PCAP_MAGIC_NS      0xa1b23c4d
#define PCAP_LINK_ETHERNET 1
#define PCAP_LINK_ERF      197
#define PCAP_SNAPSHOT      65535
#define ERF_INFINIBAND     21
#define ERF_VARYING        4 /* flag: records of varying length */
#define ROCE_HOPS          64

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

#define RECORD_BYTES offsetof(struct record, erf_time)
#define ERF_BYTES    (sizeof(struct record) - RECORD_BYTES)

bool pcap_on;

static struct output output;

static bool on_ethernet(void)
{
    return model->parameters.link.layer == LAYER_ETHERNET;
}

int pcap_open(const char *path, bool first)
{
    struct pcap_header header = { .magic = PCAP_MAGIC_NS,
                                  .major = 2,
                                  .minor = 4,
                                  .snapshot = PCAP_SNAPSHOT,
                                  .link = on_ethernet() ? PCAP_LINK_ETHERNET : PCAP_LINK_ERF };
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

/* RoCEv2 has no packet without addresses. */
static struct frame_path path_on_ethernet(const struct sim_packet *pkt)
{
    const struct sim_port *from = pkt->from->port, *to = pkt->destination;
    struct frame_path path = { .service_level = pkt->wqe ? pkt->wqe->sl : 0,
                               .global = true,
                               .hop_limit = ROCE_HOPS };
    union ibv_gid gid;

    addr_gid(from->hca->node, from->hca->device, from->number, &gid);
    memcpy(path.source_gid, gid.raw, sizeof(gid.raw));
    addr_gid(to->hca->node, to->hca->device, to->number, &gid);
    memcpy(path.destination_gid, gid.raw, sizeof(gid.raw));
    return path;
}

static void put_ethernet(const struct sim_packet *pkt)
{
    uint8_t payload[PACKET_MAX_PAYLOAD_BYTES], bytes[RECORD_BYTES + ROCE_MAX_BYTES];
    struct frame_path path = path_on_ethernet(pkt);
    uint64_t second = 1000000000;
    uint32_t head[] = { sched->now / second, sched->now % second, 0, 0 };

    payload_of_packet(pkt, payload);
    head[2] = head[3] = roce_encode(&path, &pkt->packet, payload, bytes + RECORD_BYTES);
    memcpy(bytes, head, sizeof(head));
    output_put(&output, bytes, RECORD_BYTES + head[2]);
}

void pcap_packet(const struct sim_packet *pkt)
{
    uint8_t bytes[sizeof(struct record) + FRAME_MAX_BYTES];
    uint64_t second = 1000000000, rest = sched->now % second;
    struct record record;
    size_t length;

    if (on_ethernet()) {
        put_ethernet(pkt);
        return;
    }
    length = cable_frame(pkt, bytes + sizeof(record));
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
