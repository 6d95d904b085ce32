/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/model/hca.h"

#include "hca/addr.h"

#include <errno.h>
#include <string.h>

static void engines_init(struct sim_port *port, uint64_t count)
{
    for (uint64_t i = 0; i < count && i < ENGINES_MAX; i++)
        port->engines[i].port = port;
}

static int hca_init(struct sim_hca *hca, uint32_t node, uint32_t device)
{
    const struct parameters *p = &model->parameters;

    hca->node = node;
    hca->device = device;
    hca->bus.parameters = p;
    hca->port_count = seg->ports;
    hca->ports = hca_port_by_lid(addr_lid(node, device, 1));
    for (uint32_t i = 0; i < hca->port_count; i++) {
        hca->ports[i].hca = hca;
        hca->ports[i].number = i + 1;
        hca->ports[i].lid = addr_lid(node, device, i + 1);
        engines_init(&hca->ports[i], p->hca.engines);
    }
    return icm_init(&hca->icm, p, &hca->bus);
}

int hca_init_all(void)
{
    uint32_t count = seg->nodes * seg->devices;
    struct sim_hca *hcas = pool_alloc_permanent((uint64_t)count * sizeof(*hcas));
    int error;

    model->port_count = count * seg->ports + 1;
    model->ports = pool_alloc_permanent((uint64_t)model->port_count * sizeof(*model->ports));
    if (!hcas || !model->ports)
        return ENOMEM;
    error = switch_init_all();
    if (error)
        return error;
    for (uint32_t node = 0; node < seg->nodes; node++) {
        for (uint32_t device = 0; device < seg->devices; device++) {
            error = hca_init(&hcas[node * seg->devices + device], node, device);
            if (error)
                return error;
        }
    }
    return 0;
}

struct sim_port *hca_port_by_lid(uint16_t lid)
{
    uint32_t port = (uint32_t)lid - seg->first_lid + 1; /* entry 0 is unused */

    return port && port < model->port_count ? &model->ports[port] : NULL;
}

static uint32_t bytes_on_link(const struct packet *packet, const struct opcode_info *info)
{
    uint32_t header = model->parameters.link.header;

    /* link.header is the size of the headers without extension headers. */
    if (header)
        header += info->header_bytes - BTH_BYTES;
    return header + packet->payload.length;
}

struct sim_packet *sim_packet_new(struct sim_qp *from, const struct packet *packet)
{
    const struct opcode_info *info = opcode_info(packet->opcode);
    struct sim_packet *pkt = pool_take(&model->packets);

    if (!pkt)
        return NULL;
    memset(pkt, 0, sizeof(*pkt));
    pkt->packet = *packet;
    pkt->from = from;
    pkt->bytes = bytes_on_link(packet, info);
    pkt->payload = packet->payload.length;
    pkt->first = info->flags & OPCODE_START;
    pkt->last = info->flags & OPCODE_END;
    pkt->response = info->flags & OPCODE_RESPONSE;
    sim_packet_mark(pkt, MARK_STARTED);
    from->refcount++;
    return pkt;
}

struct sim_packet *sim_packet_copy(const struct sim_packet *pkt)
{
    struct sim_packet *copy = pool_take(&model->packets);

    if (!copy)
        return NULL;
    *copy = *pkt;
    copy->next = NULL;
    copy->engine = NULL;
    copy->completes_wqe = false;
    copy->refcount = 1;
    copy->from->refcount++;
    if (copy->wqe)
        copy->wqe->refcount++;
    return copy;
}

void sim_packet_put(struct sim_packet *pkt)
{
    if (pkt->refcount && --pkt->refcount)
        return;
    if (unlikely(model_observer.packet_done != NULL))
        model_observer.packet_done(pkt);
    if (pkt->wqe)
        sim_wqe_put(pkt->wqe);
    sim_qp_put(pkt->from);
    if (pkt->to)
        sim_qp_put(pkt->to);
    pool_give(&model->packets, pkt);
}

uint64_t hca_memory(struct sim_hca *hca, uint64_t now, uint32_t bytes)
{
    const struct parameters *p = &model->parameters;

    return serve(&hca->memory, now, bytes / p->hca.memory_rate) + ns_of(p->hca.memory_latency);
}

/* NULL if no memory is left. */
static uint64_t *atomic_lock(struct sim_hca *hca, uint64_t address)
{
    if (!hca->atomics)
        hca->atomics = pool_alloc_permanent(ATOMIC_WORDS * sizeof(*hca->atomics));
    return hca->atomics ? &hca->atomics[address / sizeof(uint64_t) % ATOMIC_WORDS] : NULL;
}

uint64_t hca_atomic(struct sim_qp *qp, uint64_t address, uint64_t now)
{
    const struct parameters *p = &model->parameters;
    struct sim_hca *hca = qp->port->hca;
    uint64_t *lock = atomic_lock(hca, address), none = 0;

    if (!lock)
        lock = &none;
    if (!qp->remote_device_memory)
        now = icm_mtt(&hca->icm, &qp->written_line,
                      &(struct icm_range){ qp->proc, address, sizeof(uint64_t) }, now);
    if (now < *lock)
        now = *lock;
    if (qp->remote_device_memory)
        now = hca_memory(hca, hca_memory(hca, now, sizeof(uint64_t)), sizeof(uint64_t));
    else /* writes are posted: reads that come later do not overtake them */
        now = bus_write(&hca->bus, bus_read_short(&hca->bus, now, sizeof(uint64_t)),
                        sizeof(uint64_t)) -
              ns_of(p->bus.write_latency);
    *lock = now;
    return now;
}
