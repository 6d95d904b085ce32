/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/model/prefetch.h"

#include "sim/model/hca.h"

void prefetch_bytes(const void *from, size_t count)
{
    uintptr_t first = (uintptr_t)from & ~(uintptr_t)(CACHE_LINE - 1);

    for (uintptr_t line = first; line < (uintptr_t)from + count; line += CACHE_LINE)
        __builtin_prefetch((void *)line, 1);
}

static void prefetch_qp(const struct sim_qp *qp)
{
    prefetch_bytes(qp, offsetof(struct sim_qp, dcqcn));
}

static void prefetch_link(const struct link *link)
{
    prefetch_bytes(link, offsetof(struct link, vls[1]));
}

static void prefetch_port(const struct sim_port *port)
{
    prefetch_bytes(port, offsetof(struct sim_port, out));
}

static void prefetch_server(const struct gap_server *server)
{
    prefetch_bytes(server, offsetof(struct gap_server, gaps[2]));
}

static void prefetch_icm(const struct icm *icm)
{
    prefetch_bytes(icm, offsetof(struct icm, contexts));
}

void prefetch_step1(const struct event_entry *event)
{
    const struct sim_packet *pkt = event->object;
    const struct sim_qp *qp = event->object;
    const struct send_engine *engine = event->object;

    switch (event->kind) {
    case EVENT_DOORBELL:
    case EVENT_WQE_FETCHED:
    case EVENT_ACK:
        prefetch_qp(qp);
        prefetch_bytes(qp->port, sizeof(void *));
        break;
    case EVENT_ENGINE:
        prefetch_qp(engine->qp);
        prefetch_bytes(engine->next_packet, sizeof(*pkt));
        prefetch_port(engine->port);
        break;
    case EVENT_PACKET_READ:
        prefetch_bytes(&pkt->from->port, sizeof(void *));
        break;
    case EVENT_PACKET_READY:
    case EVENT_PACKET_LEFT:
        prefetch_qp(pkt->from);
        if (pkt->engine)
            prefetch_bytes(pkt->engine, sizeof(*engine));
        if (pkt->next_sending)
            prefetch_bytes(pkt->next_sending, offsetof(struct sim_packet, read_until));
        break;
    case EVENT_PACKET_AT_SWITCH:
        prefetch_link(pkt->via);
        prefetch_link(&model->fabric.to_ports[pkt->destination - model->ports]);
        break;
    case EVENT_LINK_FREE:
        prefetch_link(((const struct link *)event->object)->upstream);
        break;
    case EVENT_PACKET_ARRIVED:
        prefetch_port(pkt->destination);
        prefetch_bytes(sim_qp_slot(pkt->packet.destination_qpn), sizeof(void *));
        break;
    case EVENT_PACKET_PROCESSED:
    case EVENT_DELIVER:
        prefetch_qp(pkt->to);
        prefetch_bytes(pkt->destination, sizeof(void *));
        if (pkt->via)
            prefetch_link(pkt->via);
        break;
    default:
        break;
    }
}

static void prefetch_sending(const struct sim_qp *qp, const struct sim_hca *hca)
{
    prefetch_bytes(hca, offsetof(struct sim_hca, bus));
    prefetch_icm(&hca->icm);
    if (qp->context.slot)
        prefetch_bytes(qp->context.slot, sizeof(*qp->context.slot));
}

void prefetch_step2(const struct event_entry *event)
{
    const struct sim_packet *pkt = event->object;
    const struct sim_qp *qp = event->object;
    const struct send_engine *engine = event->object;

    switch (event->kind) {
    case EVENT_DOORBELL:
    case EVENT_WQE_FETCHED:
        prefetch_sending(qp, qp->port->hca);
        prefetch_server(&qp->port->hca->bus.down);
        prefetch_bytes(sim_qp_wqe(qp, event->kind == EVENT_DOORBELL ? qp->rung : qp->fetched),
                       offsetof(struct sim_wqe, sge[1]));
        break;
    case EVENT_ENGINE:
        prefetch_sending(engine->qp, engine->port->hca);
        prefetch_server(&engine->port->hca->bus.up);
        if (engine->qp->read_line)
            prefetch_bytes(engine->qp->read_line, 1);
        break;
    case EVENT_PACKET_READ:
        prefetch_server(&pkt->from->port->hca->bus.down);
        prefetch_server(&pkt->from->port->hca->bus.up);
        break;
    case EVENT_PACKET_READY:
    case EVENT_PACKET_LEFT:
        prefetch_link(&pkt->from->port->out);
        prefetch_bytes(pkt->from->port->hca, offsetof(struct sim_hca, bus));
        break;
    case EVENT_PACKET_ARRIVED:
        if (event->argument == 0)
            prefetch_qp(*sim_qp_slot(pkt->packet.destination_qpn));
        prefetch_icm(&pkt->destination->hca->icm);
        break;
    case EVENT_PACKET_PROCESSED:
        prefetch_server(&pkt->destination->hca->bus.up);
        prefetch_server(&pkt->destination->hca->bus.down);
        if (pkt->to->written_line)
            prefetch_bytes(pkt->to->written_line, 1);
        break;
    default:
        break;
    }
}
