/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/model/hca.h"

#include "hca/addr.h"
#include "sim/model/cable.h"

#define TAG_SCALE 256

/* ---- VL arbitration ---- */

static bool has_credits(const struct vl *vl, const struct sim_packet *pkt)
{
    uint64_t credits = model->parameters.link.receive_buffer;

    if (model_is_ethernet())
        return !vl->ethernet.paused;
    return !credits || !vl->buffered || vl->buffered + pkt->bytes <= credits;
}

/* A VL gains no priority by being idle: it starts at the current virtual time. */
static void enqueue(struct link *link, struct sim_packet *pkt)
{
    struct vl *vl = &link->vls[pkt->vl];

    pkt->next = NULL;
    if (vl->first) {
        vl->last->next = pkt;
    } else {
        vl->first = pkt;
        link->waiting |= 1u << pkt->vl;
        if (vl->start_tag < link->virtual_time)
            vl->start_tag = link->virtual_time;
    }
    vl->last = pkt;
    vl->ethernet.queued += pkt->bytes;
    link->queued += pkt->bytes;
    if (link->queue_max < link->queued)
        link->queue_max = link->queued;
}

/* Start-time fair queueing (Goyal, Vin, Cheng 1996) over the VLs that have credits. */
static struct sim_packet *arbitrate(struct link *link)
{
    struct vl *best = NULL;
    struct sim_packet *pkt;

    for (uint32_t left = link->waiting; left; left &= left - 1) {
        struct vl *vl = &link->vls[__builtin_ctz(left)];

        if (has_credits(vl, vl->first) && (!best || vl->start_tag < best->start_tag))
            best = vl;
    }
    if (!best)
        return NULL;
    pkt = best->first;
    best->first = pkt->next;
    if (!best->first)
        link->waiting &= ~(1u << pkt->vl);
    link->virtual_time = best->start_tag;
    best->start_tag += (uint64_t)pkt->bytes * TAG_SCALE / model->vl_weights[pkt->vl];
    best->buffered += pkt->bytes;
    best->ethernet.queued -= pkt->bytes;
    link->queued -= pkt->bytes;
    link->bytes += pkt->bytes;
    return pkt;
}

/* ---- faults ---- */

/* Applies random faults to a packet due at 'arrival'; returns when it arrives. */
static uint64_t inject_faults(struct sim_packet *pkt, uint64_t arrival)
{
    struct faults *faults = &model->faults;

    pkt->corrupted |= faults_strike(faults, FAULT_CORRUPT);
    if (faults_strike(faults, FAULT_DUPLICATE)) {
        struct sim_packet *copy = sim_packet_copy(pkt);

        if (copy) {
            copy->via->vls[copy->vl].buffered += copy->bytes;
            event_at(arrival + faults_delay(faults), EVENT_PACKET_ARRIVED, copy, 0);
        }
    }
    return faults_strike(faults, FAULT_REORDER) ? arrival + faults_delay(faults) : arrival;
}

/* ---- transmission ---- */

static void leave_port(struct link *link, struct sim_packet *pkt)
{
    struct sim_port *port = link->from_port;

    if (unlikely(model_observer.packet_sent != NULL))
        model_observer.packet_sent(pkt);
    sim_packet_mark(pkt, MARK_SENT);
    port->packets_out++;
    port->bytes_out += pkt->bytes;
    pkt->refcount = 2;
}

/* Cut-through: the head of the packet travels on at once; its tail frees the link. */
static void transmit(struct link *link, struct sim_packet *pkt)
{
    const struct parameters *p = &model->parameters;
    double length = pkt->bytes / p->link.rate;
    uint64_t start = sched->now, end;

    if (start < link->server.free_at)
        start = link->server.free_at; /* behind a pause frame */
    if (unlikely(model->faults.any))
        cable_carry(pkt);
    model_set_activity(pkt->from, pkt);
    end = serve(&link->server, sched->now, link->from_port ? length + p->link.gap : length);
    link->busy = true;
    if (link->from_port) {
        leave_port(link, pkt);
        event_at(start + ns_of(p->link.latency + p->fabric.latency), EVENT_PACKET_AT_SWITCH,
                 pkt, 0);
        event_at(end, EVENT_PACKET_LEFT, pkt, 0);
        pkt->via = link;
        pkt->via_vl = pkt->vl;
        return;
    }
    link->upstream = pkt->via;
    link->upstream_bytes = pkt->bytes;
    link->upstream_vl = pkt->via_vl;
    pkt->via = link;
    pkt->via_vl = pkt->vl;
    if (link->to_switch) {
        event_at(start + ns_of(p->link.latency + p->fabric.latency), EVENT_PACKET_AT_SWITCH,
                 pkt, 0);
    } else {
        uint64_t arrival = end + ns_of(p->link.latency);

        if (unlikely(model->faults.any))
            arrival = inject_faults(pkt, arrival);
        event_at(arrival, EVENT_PACKET_ARRIVED, pkt, 0);
    }
    event_at(end, EVENT_LINK_FREE, link, 0);
}

/* Drops a packet at its source: a port is down, or there is no such destination. */
static void discard(struct sim_packet *pkt)
{
    pkt->refcount = 1;
    event_at(sched->now, EVENT_PACKET_LEFT, pkt, LINK_NOT_USED);
}

static void transmit_pending(struct link *link)
{
    while (!link->busy) {
        struct sim_packet *pkt = arbitrate(link);

        if (!pkt)
            return;
        if (link->from_port && addr_port_is_down(link->from_port->lid)) {
            link->vls[pkt->vl].buffered -= pkt->bytes;
            discard(pkt);
        } else {
            transmit(link, pkt);
        }
    }
}

void link_queue(struct link *link, struct sim_packet *pkt)
{
    enqueue(link, pkt);
    transmit_pending(link);
}

void link_continue(struct link *link)
{
    transmit_pending(link);
}

static void return_credits(struct link *link, uint8_t vl, uint32_t bytes)
{
    link->vls[vl].buffered -= bytes;
    if (model_is_ethernet())
        ethernet_released(link, vl, bytes);
    transmit_pending(link);
}

void link_refuse(struct sim_packet *pkt)
{
    pkt->via->vls[pkt->via_vl].buffered -= pkt->bytes;
    pkt->via = NULL;
}

void link_return_credits(struct sim_packet *pkt)
{
    struct link *via = pkt->via;

    pkt->via = NULL;
    if (via)
        return_credits(via, pkt->via_vl, pkt->bytes);
}

uint64_t link_drop_queued(struct link *link)
{
    uint64_t count = 0;

    for (; link->waiting; count++) {
        struct vl *vl = &link->vls[__builtin_ctz(link->waiting)];
        struct sim_packet *pkt = vl->first;

        vl->first = pkt->next;
        if (!vl->first)
            link->waiting &= link->waiting - 1;
        vl->ethernet.queued -= pkt->bytes;
        link->queued -= pkt->bytes;
        link_return_credits(pkt);
        sim_packet_put(pkt);
    }
    return count;
}

void link_free(struct link *link)
{
    link->busy = false;
    return_credits(link->upstream, link->upstream_vl, link->upstream_bytes);
    transmit_pending(link);
}

/* ---- ports of adapters ---- */

static struct sim_port *destination(const struct sim_packet *pkt)
{
    uint16_t lid = pkt->from->transport.attributes.service == SERVICE_UD && pkt->wqe
                       ? pkt->wqe->dlid
                       : pkt->from->peer_lid;

    return hca_port_by_lid(lid);
}

static uint8_t vl_of(const struct sim_packet *pkt)
{
    bool datagram = pkt->from->transport.attributes.service == SERVICE_UD && pkt->wqe;
    uint64_t level = datagram ? pkt->wqe->sl : pkt->from->sl;

    if (pkt->packet.opcode == OPCODE_CNP)
        level = model->parameters.dcqcn.cnp_level;
    return level % model->parameters.link.vls * model->fabric.layers;
}

/* Packets between QPs of one adapter do not use the link. */
static void send_loopback(struct sim_packet *pkt)
{
    pkt->refcount = 2;
    sim_packet_mark(pkt, MARK_SENT);
    sim_packet_mark(pkt, MARK_SWITCHED);
    event_at(sched->now, EVENT_PACKET_LEFT, pkt, LINK_NOT_USED);
    event_at(sched->now, EVENT_PACKET_ARRIVED, pkt, 0);
}

void link_send(struct sim_port *port, struct sim_packet *pkt)
{
    struct sim_port *to = destination(pkt);

    sim_packet_mark(pkt, MARK_READY);
    pkt->destination = to;
    pkt->vl = vl_of(pkt);
    if (!to || addr_port_is_down(to->lid))
        discard(pkt);
    else if (to->hca == port->hca)
        send_loopback(pkt);
    else
        link_queue(&port->out, pkt);
}

void link_left(struct sim_packet *pkt)
{
    struct link *link = &pkt->from->port->out;

    link->busy = false;
    transmit_pending(link);
}
