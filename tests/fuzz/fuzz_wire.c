/* SPDX-License-Identifier: BSD-2-Clause */
/* Whatever arrives from the network: frames as they come, and frames with the right ICRC for a QP
 * with requests of its own outstanding. The driver below trusts the transport as the wire engine
 * does, and stops where that trust is misplaced. */
#include "transport/roce_datagram.h"
#include "transport/transport.h"
#include "util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POSTED       4
#define REGION_BYTES 65536u
#define REGION_BASE  0x10000u
#define KEY          7
#define RECEIVE      9000u
#define STEP_NS      100000

static const struct roce_flow flow = {
    .source = ROCE_IPV4_PREFIX "\x0a\x00\x00\x01",
    .destination = ROCE_IPV4_PREFIX "\x0a\x00\x00\x02",
    .source_port = ROCE_UDP_PORT,
};

static struct transport_qp qp;
static struct responder_resource resources[RESPONDER_MAX_RESOURCES];
static struct transport_counters counters;
static struct transport_wqe wqes[POSTED];
static uint32_t completed;
static bool receive_taken, ended;

static void demand(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "violated: %s\n", what);
    abort();
}

/* Reads every byte, for ASan. */
static void touch(const struct packet_payload *payload)
{
    const volatile uint8_t *bytes = (const uint8_t *)(uintptr_t)payload->source;

    for (uint32_t i = 0; i < payload->length; i++)
        (void)bytes[i];
}

static const struct transport_wqe *wqe_at(struct transport_qp *unused, uint32_t index)
{
    return index < POSTED ? &wqes[index] : NULL;
}

static void complete(struct transport_qp *unused, uint32_t index, enum transport_status status)
{
    demand(index == completed && index < POSTED, "work requests complete once and in order");
    completed++;
}

static bool place_read(struct transport_qp *unused, uint32_t index, uint32_t offset,
                       const struct packet_payload *payload)
{
    demand(index == completed && wqes[index].operation == TRANSPORT_READ, "data for a read");
    demand((uint64_t)offset + payload->length <= wqes[index].length, "data beyond the read");
    touch(payload);
    return true;
}

static bool place_atomic(struct transport_qp *unused, uint32_t index, uint64_t original)
{
    demand(wqes[index].operation >= TRANSPORT_COMPARE_SWAP, "a result for an atomic");
    return true;
}

static enum transport_status receive_begin(struct transport_qp *unused, const struct packet *packet)
{
    demand(!receive_taken, "one receive at a time");
    receive_taken = packet->psn % 8 != 0;
    return receive_taken ? TRANSPORT_SUCCESS : TRANSPORT_NOT_READY;
}

static enum transport_status receive_place(struct transport_qp *unused, uint32_t offset,
                                           const struct packet_payload *payload)
{
    demand(receive_taken, "bytes without a receive");
    touch(payload);
    return (uint64_t)offset + payload->length <= RECEIVE ? TRANSPORT_SUCCESS
                                                         : TRANSPORT_LOCAL_LENGTH;
}

static void receive_end(struct transport_qp *unused, const struct packet *last, uint32_t length)
{
    demand(receive_taken, "an end without a receive");
    receive_taken = false;
}

static enum transport_status invalidate(struct transport_qp *unused, uint32_t key)
{
    return key == KEY ? TRANSPORT_SUCCESS : TRANSPORT_ACCESS_ERROR;
}

static enum transport_status check_remote(struct transport_qp *unused, enum transport_access access,
                                          uint32_t key, uint64_t address, uint32_t length,
                                          uint64_t *region)
{
    *region = key;
    return key == KEY && address >= REGION_BASE && length <= REGION_BYTES &&
                   address - REGION_BASE <= REGION_BYTES - length
               ? TRANSPORT_SUCCESS
               : TRANSPORT_ACCESS_ERROR;
}

static void demand_region(uint64_t region, uint64_t address, uint64_t length)
{
    demand(region == KEY && address >= REGION_BASE &&
               address + length <= (uint64_t)REGION_BASE + REGION_BYTES,
           "access beyond what was checked");
}

static enum transport_status place_write(struct transport_qp *unused, uint64_t region,
                                         uint64_t address, const struct packet_payload *payload)
{
    demand_region(region, address, payload->length);
    touch(payload);
    return TRANSPORT_SUCCESS;
}

static enum transport_status atomic(struct transport_qp *unused, uint64_t region,
                                    const struct packet *request, uint64_t *original)
{
    demand_region(region, request->remote_address, 8);
    *original = 1;
    return TRANSPORT_SUCCESS;
}

static void failed(struct transport_qp *unused, enum transport_status why)
{
    demand(!ended, "a QP fails once");
    ended = true;
}

static const struct transport_ops ops = {
    .wqe_at = wqe_at,
    .complete = complete,
    .place_read = place_read,
    .place_atomic = place_atomic,
    .receive_begin = receive_begin,
    .receive_place = receive_place,
    .receive_end = receive_end,
    .invalidate = invalidate,
    .check_remote = check_remote,
    .place_write = place_write,
    .atomic = atomic,
    .failed = failed,
};

static void begin(uint8_t choice)
{
    static const enum transport_service services[] = { SERVICE_RC, SERVICE_UC, SERVICE_UD,
                                                       SERVICE_XRC };
    enum transport_service service = services[choice % 4];
    bool reliable = service == SERVICE_RC || service == SERVICE_XRC;
    struct transport_attributes attributes = {
        .service = service,
        .pkey = 0xffff,
        .path_mtu = 256u << choice / 4 % 5,
        .window = 8,
        .timeout = 10,
        .retry_count = 2,
        .rnr_retry_count = 2,
        .max_reads = 2,
        .responder_resources = 2,
        .resources = resources,
        .counters = &counters,
    };

    completed = 0;
    receive_taken = ended = false;
    for (int i = 0; i < POSTED; i++)
        wqes[i] = (struct transport_wqe){
            .operation = !reliable ? TRANSPORT_SEND
                         : i == 1  ? TRANSPORT_READ
                         : i == 2  ? TRANSPORT_FETCH_ADD
                                   : TRANSPORT_WRITE,
            .length = i == 2 && reliable ? 8 : service == SERVICE_UD ? 100 : 3000,
        };
    transport_init(&qp, &ops, &attributes);
}

static void drain(uint64_t now)
{
    struct packet packet;

    while (transport_pull_response(&qp, &packet))
        if (packet.payload.length)
            demand_region(packet.payload.source, packet.payload.offset, packet.payload.length);
    while (transport_pull_request(&qp, now, &packet))
        ;
    transport_timeout(&qp, now);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first byte chooses the QP; then come frames, each with its length in front. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct packet packet;
    uint64_t now = 0;

    roce_datagram_decode(&flow, data, size, &(uint16_t){ 0 }, &packet);
    if (!size)
        return 0;
    begin(data[0]);
    for (size_t at = 1; at + 2 <= size; now += STEP_NS) {
        size_t length = data[at] | (data[at + 1] & 0x1f) << 8, left = size - at - 2;
        uint8_t *frame = malloc(ROCE_MAX_DATAGRAM);

        length = length < left ? length : left;
        drain(now);
        if (length >= BTH_BYTES && length <= ROCE_MAX_DATAGRAM - 8) {
            memcpy(frame, data + at + 2, length);
            length = roce_datagram_seal(&flow, frame, length, 0, 0);
            if (!roce_datagram_decode(&flow, frame, length, &(uint16_t){ 0 }, &packet))
                transport_receive(&qp, now, &packet);
            length -= ICRC_BYTES;
        }
        at += 2 + (length < left ? length : left);
        free(frame);
    }
    drain(now);
    transport_stop(&qp);
    transport_flush(&qp);
    demand(completed == POSTED, "every work request completes");
    return 0;
}
