/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/model/cable.h"

#include "hca/addr.h"
#include "sim/model/hca.h"
#include "sim/model/payload.h"

#include <string.h>

#define GRH_HOPS  1
#define ROCE_HOPS 64

_Static_assert(CABLE_MAX_BYTES >= FRAME_MAX_BYTES, "CABLE_MAX_BYTES");

static void put_gid(const struct sim_port *port, uint8_t out[16])
{
    union ibv_gid gid;

    addr_gid(port->hca->node, port->hca->device, port->number, &gid);
    memcpy(out, gid.raw, sizeof(gid.raw));
}

/* RoCEv2 has no packet without addresses. */
static struct frame_path path_of(const struct sim_packet *pkt)
{
    const struct sim_port *from = pkt->from->port, *to = pkt->destination;
    const struct sim_wqe *wqe = pkt->wqe;
    bool ethernet = model_is_ethernet();
    struct frame_path path = { .source_lid = from->lid,
                               .destination_lid = to->lid,
                               .service_level = wqe ? wqe->sl : 0,
                               .global = ethernet || (wqe && wqe->has_grh),
                               .hop_limit = ethernet ? ROCE_HOPS : GRH_HOPS };

    if (!path.global)
        return path;
    put_gid(from, path.source_gid);
    if (ethernet)
        put_gid(to, path.destination_gid);
    else
        memcpy(path.destination_gid, wqe->dgid.raw, sizeof(wqe->dgid.raw));
    return path;
}

size_t cable_frame(const struct sim_packet *pkt, uint8_t bytes[CABLE_MAX_BYTES])
{
    struct frame_path path = path_of(pkt);
    uint8_t payload[PACKET_MAX_PAYLOAD_BYTES];

    payload_of_packet(pkt, payload);
    return model_is_ethernet() ? roce_frame_encode(&path, &pkt->packet, payload, bytes)
                               : frame_encode(&path, &pkt->packet, payload, bytes, CABLE_MAX_BYTES);
}

static size_t bytes_of(const struct sim_packet *pkt)
{
    struct frame_path path = path_of(pkt);

    return model_is_ethernet() ? roce_frame_bytes(&pkt->packet) : frame_bytes(&path, &pkt->packet);
}

static bool is_noticed(const uint8_t *bytes, size_t length)
{
    struct frame_path path;
    struct packet packet;

    return model_is_ethernet() ? roce_frame_decode(&packet, bytes, length)
                               : frame_decode(&path, &packet, bytes, length);
}

void cable_carry(struct sim_packet *pkt)
{
    uint8_t bytes[CABLE_MAX_BYTES];
    size_t length;

    if (!faults_hit(&model->faults, bytes_of(pkt)))
        return;
    length = cable_frame(pkt, bytes);
    faults_flip(&model->faults, bytes, length);
    if (is_noticed(bytes, length))
        pkt->corrupted = true;
    else
        model->faults.undetected++;
}
