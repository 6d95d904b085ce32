#include "sim/models/hca.h"

#include "hca/addr.h"

#include <errno.h>
#include <string.h>

static void engines_init(struct port *port, uint64_t count)
{
    for (uint64_t i = 0; i < count && i < ENGINES_MAX; i++)
        port->engines[i].port = port;
}

static int hca_init(struct hca *hca, uint32_t node, uint32_t device)
{
    const struct parameters *p = &world->parameters;

    hca->node = node;
    hca->device = device;
    hca->bus.parameters = p;
    hca->port_count = seg->ports;
    hca->ports = &world->ports[addr_lid(node, device, 1)];
    for (uint32_t i = 0; i < hca->port_count; i++) {
        hca->ports[i].hca = hca;
        hca->ports[i].number = i + 1;
        hca->ports[i].lid = addr_lid(node, device, i + 1);
        engines_init(&hca->ports[i], p->hca.engines);
    }
    return context_init(&hca->context, p, &hca->bus);
}

int hcas_init(void)
{
    uint32_t count = seg->nodes * seg->devices;
    struct hca *hcas = world_alloc((uint64_t)count * sizeof(*hcas));
    int error;

    world->port_count = count * seg->ports + 1;
    world->ports = world_alloc((uint64_t)world->port_count * sizeof(*world->ports));
    if (!hcas || !world->ports)
        return ENOMEM;
    error = switches_init();
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

struct port *port_by_lid(uint16_t lid)
{
    return lid && lid < world->port_count ? &world->ports[lid] : NULL;
}

static uint32_t bytes_on_link(const struct packet *packet, const struct opcode_info *info)
{
    uint32_t header = world->parameters.link.header;

    /* The header of the adapter file is that of a packet without extension headers. */
    if (header)
        header += info->header_bytes - BTH_BYTES;
    return header + packet->payload.length;
}

struct flight *flight_new(struct queue *from, const struct packet *packet)
{
    const struct opcode_info *info = opcode_info(packet->opcode);
    struct flight *flight = pool_take(&world->flights);

    if (!flight)
        return NULL;
    memset(flight, 0, sizeof(*flight));
    flight->packet = *packet;
    flight->from = from;
    flight->bytes = bytes_on_link(packet, info);
    flight->payload = packet->payload.length;
    flight->first = info->flags & OPCODE_START;
    flight->last = info->flags & OPCODE_END;
    flight->response = info->flags & OPCODE_RESPONSE;
    flight_mark(flight, MARK_STARTED);
    from->users++;
    return flight;
}

struct flight *flight_copy(const struct flight *flight)
{
    struct flight *copy = pool_take(&world->flights);

    if (!copy)
        return NULL;
    *copy = *flight;
    copy->next = NULL;
    copy->engine = NULL;
    copy->ends_message = false;
    copy->holds = 1;
    copy->from->users++;
    if (copy->message)
        copy->message->users++;
    return copy;
}

void flight_drop(struct flight *flight)
{
    if (flight->holds && --flight->holds)
        return;
    if (unlikely(trace_on))
        trace_packet(flight);
    if (flight->message)
        message_release(flight->message);
    queue_release(flight->from);
    if (flight->to)
        queue_release(flight->to);
    pool_give(&world->flights, flight);
}

uint64_t hca_memory(struct hca *hca, uint64_t now, uint32_t bytes)
{
    const struct parameters *p = &world->parameters;

    return serve(&hca->memory, now, bytes / p->hca.memory_rate) + ns_of(p->hca.memory_latency);
}
