/* SPDX-License-Identifier: BSD-2-Clause */
/* QP1, which all processes of a host share: management datagrams. */
#include "wire/mad.h"

#include "hca/proc.h"
#include "util/log.h"

#include <string.h>

#define QKEY      0x80010000
#define SEND_ONLY (SERVICE_UD | OPCODE_SEND_ONLY)

bool wire_mad_send(const struct hca_mad *mad)
{
    static atomic_uint psn;
    struct packet packet = {
        .opcode = SEND_ONLY,
        .pkey = HCA_PKEY,
        .destination_qpn = WIRE_QP1,
        .source_qpn = WIRE_QP1,
        .qkey = QKEY,
        .psn = atomic_fetch_add(&psn, 1) & 0xffffff,
        .payload.length = MAD_BYTES,
    };
    size_t headers = opcode_info(SEND_ONLY)->header_bytes;
    struct roce_flow flow = { .source_port = ROCE_UDP_PORT };
    struct wire_batch batch;
    union netif_address to;
    uint16_t identification;

    if (mad->gid_index >= wire_port.count)
        return false;
    const struct wire_gid *from = &wire_port.gids[mad->gid_index];
    if (!wire_port_address(from, mad->peer, &to))
        return false;
    memcpy(flow.source, from->raw, sizeof(flow.source));
    memcpy(flow.destination, mad->peer, sizeof(flow.destination));
    wire_batch_begin(&batch);
    uint8_t *frame = wire_batch_frame(&batch, from, &to, NULL, headers + MAD_BYTES + ICRC_BYTES,
                                      &identification);
    if (frame) {
        packet_encode(&packet, frame);
        memcpy(frame + headers, mad->bytes, MAD_BYTES);
        wire_batch_add(&batch,
                       roce_datagram_seal(&flow, frame, headers, MAD_BYTES, identification));
    }
    wire_batch_end(&batch);
    return frame;
}

static bool read_mad(const struct wire_arrival *arrival, struct hca_mad *mad)
{
    const struct packet *packet = &arrival->packet;

    if (packet->opcode != SEND_ONLY || packet->qkey != QKEY || packet->source_qpn != WIRE_QP1 ||
        packet->payload.length != MAD_BYTES) {
        log_debug("wire: dropped a packet to QP1 that is no management datagram");
        return false;
    }
    mad->gid_index = arrival->to - wire_port.gids;
    memcpy(mad->peer, arrival->flow.source, sizeof(mad->peer));
    memcpy(mad->bytes, (const void *)(uintptr_t)packet->payload.source, MAD_BYTES);
    return hca_mad_agent;
}

void wire_mad_receive(const struct wire_arrival *arrival, const uint8_t *bytes, size_t length)
{
    struct hca_mad mad;

    if (!read_mad(arrival, &mad))
        return;
    unsigned owner = hca_mad_agent->owner(&mad);
    if (owner == (unsigned)proc_self)
        hca_mad_agent->receive(&mad);
    else
        wire_forward_send(owner, mad.gid_index, &arrival->flow, bytes, length, length);
}

void wire_mad_receive_forwarded(const struct wire_arrival *arrival)
{
    struct hca_mad mad;

    if (read_mad(arrival, &mad))
        hca_mad_agent->receive(&mad);
}
