/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/model/cable.h"

#include "hca/addr.h"
#include "sim/model/hca.h"
#include "sim/model/payload.h"

#include <string.h>

static struct frame_path path_of(const struct sim_packet *pkt)
{
    const struct sim_port *from = pkt->from->port;
    const struct sim_wqe *wqe = pkt->wqe;
    struct frame_path path = { .source_lid = from->lid, .destination_lid = pkt->destination->lid };
    union ibv_gid own;

    if (!wqe)
        return path;
    path.service_level = wqe->sl;
    if (!wqe->has_grh)
        return path;
    addr_gid(from->hca->node, from->hca->device, from->number, &own);
    path.global = true;
    path.hop_limit = 1;
    memcpy(path.source_gid, own.raw, sizeof(own.raw));
    memcpy(path.destination_gid, wqe->dgid.raw, sizeof(wqe->dgid.raw));
    return path;
}

size_t cable_frame(const struct sim_packet *pkt, uint8_t bytes[FRAME_MAX_BYTES])
{
    struct frame_path path = path_of(pkt);
    uint8_t payload[PACKET_MAX_PAYLOAD_BYTES];

    payload_of_packet(pkt, payload);
    return frame_encode(&path, &pkt->packet, payload, bytes, FRAME_MAX_BYTES);
}

void cable_carry(struct sim_packet *pkt)
{
    struct frame_path path = path_of(pkt);
    uint8_t bytes[FRAME_MAX_BYTES];
    struct packet arrived;
    size_t length;

    if (!faults_hit(&model->faults, frame_bytes(&path, &pkt->packet)))
        return;
    length = cable_frame(pkt, bytes);
    faults_flip(&model->faults, bytes, length);
    if (frame_decode(&path, &arrived, bytes, length))
        pkt->corrupted = true;
    else
        model->faults.undetected++;
}
