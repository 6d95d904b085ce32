#include "sim/capture.h"

#include "hca/addr.h"
#include "sim/carry.h"
#include "sim/models/hca.h"
#include "sim/output.h"
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

/* A record of the file, and at its beginning one of the Endace format. */
struct record {
    uint32_t seconds, nanoseconds;
    uint32_t captured, original;
    uint64_t erf_time; /* seconds, the lower half a fraction; little endian */
    uint8_t erf_type, erf_flags;
    uint16_t erf_length, erf_lost, erf_wire_length; /* big endian */
} __attribute__((packed));

#define ERF_BYTES (sizeof(struct record) - offsetof(struct record, erf_time))

bool capture_on;

static struct output output;

int capture_open(const char *path, bool first)
{
    struct pcap_header header = { .magic = PCAP_MAGIC_NS,
                                  .major = 2,
                                  .minor = 4,
                                  .snapshot = PCAP_SNAPSHOT,
                                  .link = PCAP_LINK_ERF };
    int error = output_open(&output, path, first);

    if (error)
        return error;
    capture_on = true;
    if (first) {
        output_put(&output, &header, sizeof(header));
        output_flush(&output);
    }
    return 0;
}

void capture_flush(void)
{
    output_flush(&output);
}

static void path_of(const struct port *from, const struct port *to, const struct flight *flight,
                    struct frame_path *path)
{
    const struct request *message = flight->message;
    union ibv_gid own;

    *path = (struct frame_path){ .source_lid = from->lid, .destination_lid = to->lid };
    if (!message)
        return;
    path->service_level = message->sl;
    if (!message->has_grh)
        return;
    addr_gid(from->hca->node, from->hca->device, from->number, &own);
    path->global = true;
    path->hop_limit = 1;
    memcpy(path->source_gid, own.raw, sizeof(own.raw));
    memcpy(path->destination_gid, message->dgid.raw, sizeof(message->dgid.raw));
}

void capture_packet(const struct port *from, const struct port *to, const struct flight *flight)
{
    uint8_t payload[PACKET_MAX_PAYLOAD_BYTES], frame[FRAME_MAX_BYTES];
    uint64_t second = 1000000000, rest = world->now % second;
    struct frame_path path;
    struct record record;
    size_t length;

    path_of(from, to, flight, &path);
    carry_payload(flight, payload);
    length = frame_encode(&path, &flight->packet, payload, frame, sizeof(frame));
    record = (struct record){
        .seconds = world->now / second,
        .nanoseconds = rest,
        .captured = ERF_BYTES + length,
        .original = ERF_BYTES + length,
        .erf_time = htole64(world->now / second << 32 | (rest << 32) / second),
        .erf_type = ERF_INFINIBAND,
        .erf_flags = ERF_VARYING,
        .erf_length = htobe16(ERF_BYTES + length),
        .erf_wire_length = htobe16(length),
    };
    output_put(&output, &record, sizeof(record));
    output_put(&output, frame, length);
}
