#include "sim/model/hca.h"

#include "hca/addr.h"

#define WHOLE_WEIGHT 256

/* ---- vls ---- */

static bool has_room(const struct vl *vl, const struct sim_packet *pkt)
{
    uint64_t room = model->parameters.link.receive_buffer;

    return !room || !vl->taken || vl->taken + pkt->bytes <= room;
}

/* A vl that was idle has saved up nothing: it starts level with the others. */
static void line_up(struct link *link, struct sim_packet *pkt)
{
    struct vl *vl = &link->vls[pkt->vl];

    pkt->next = NULL;
    if (vl->first) {
        vl->last->next = pkt;
    } else {
        vl->first = pkt;
        link->waiting |= 1u << pkt->vl;
        if (vl->due < link->due)
            vl->due = link->due;
    }
    vl->last = pkt;
}

/* Start-time fair queueing (Goyal, Vin, Cheng 1996) over the vls that may send. */
static struct sim_packet *take_next(struct link *link)
{
    struct vl *best = NULL;
    struct sim_packet *pkt;

    for (uint32_t left = link->waiting; left; left &= left - 1) {
        struct vl *vl = &link->vls[__builtin_ctz(left)];

        if (has_room(vl, vl->first) && (!best || vl->due < best->due))
            best = vl;
    }
    if (!best)
        return NULL;
    pkt = best->first;
    best->first = pkt->next;
    if (!best->first)
        link->waiting &= ~(1u << pkt->vl);
    link->due = best->due;
    best->due += (uint64_t)pkt->bytes * WHOLE_WEIGHT / model->vl_weights[pkt->vl];
    best->taken += pkt->bytes;
    return pkt;
}

/* ---- faults ---- */

/* A packet that is to reach its port at 'arrival'; returns when it really will. */
static uint64_t suffer_faults(struct sim_packet *pkt, uint64_t arrival)
{
    struct faults *faults = &model->faults;

    pkt->spoilt = faults_strike(faults, FAULT_CORRUPT);
    if (faults_strike(faults, FAULT_DUPLICATE)) {
        struct sim_packet *copy = sim_packet_copy(pkt);

        if (copy) {
            copy->via->vls[copy->vl].taken += copy->bytes;
            event_at(arrival + faults_delay(faults), EVENT_PACKET_ARRIVED, copy, 0);
        }
    }
    return faults_strike(faults, FAULT_REORDER) ? arrival + faults_delay(faults) : arrival;
}

/* ---- sending ---- */

static void leave_port(struct link *link, struct sim_packet *pkt)
{
    struct sim_port *port = link->port;

    if (unlikely(model_observer.packet_sent != NULL))
        model_observer.packet_sent(pkt);
    sim_packet_mark(pkt, MARK_SENT);
    port->packets_out++;
    port->bytes_out += pkt->bytes;
    pkt->holds = 2;
}

/* The head of the packet goes on at once; its tail frees the link. */
static void transmit(struct link *link, struct sim_packet *pkt)
{
    const struct parameters *p = &model->parameters;
    double length = pkt->bytes / p->link.rate;
    uint64_t end;

    model_works_for(pkt->from, pkt);
    end = serve(&link->server, sched->now, link->port ? length + p->link.gap : length);
    link->busy = true;
    if (link->port) {
        leave_port(link, pkt);
        event_at(sched->now + ns_of(p->link.latency + p->fabric.latency), EVENT_PACKET_AT_SWITCH,
                 pkt, 0);
        event_at(end, EVENT_PACKET_LEFT, pkt, 0);
        pkt->via = link;
        return;
    }
    link->before = pkt->via;
    link->before_bytes = pkt->bytes;
    link->before_lane = pkt->vl;
    pkt->via = link;
    if (link->leads_to) {
        event_at(sched->now + ns_of(p->link.latency + p->fabric.latency), EVENT_PACKET_AT_SWITCH,
                 pkt, 0);
    } else {
        uint64_t arrival = end + ns_of(p->link.latency);

        if (unlikely(model->faults.any))
            arrival = suffer_faults(pkt, arrival);
        event_at(arrival, EVENT_PACKET_ARRIVED, pkt, 0);
    }
    event_at(end, EVENT_LINK_FREE, link, 0);
}

/* The packet goes nowhere. */
static void discard(struct sim_packet *pkt)
{
    pkt->holds = 1;
    event_at(sched->now, EVENT_PACKET_LEFT, pkt, OFF_THE_LINK);
}

static void pump(struct link *link)
{
    while (!link->busy) {
        struct sim_packet *pkt = take_next(link);

        if (!pkt)
            return;
        if (link->port && addr_port_is_down(link->port->lid)) {
            link->vls[pkt->vl].taken -= pkt->bytes;
            discard(pkt);
        } else {
            transmit(link, pkt);
        }
    }
}

void link_queue(struct link *link, struct sim_packet *pkt)
{
    line_up(link, pkt);
    pump(link);
}

static void give_back(struct link *link, uint8_t vl, uint32_t bytes)
{
    link->vls[vl].taken -= bytes;
    pump(link);
}

void link_return_credits(struct sim_packet *pkt)
{
    struct link *via = pkt->via;

    pkt->via = NULL;
    if (via)
        give_back(via, pkt->vl, pkt->bytes);
}

void link_free(struct link *link)
{
    link->busy = false;
    give_back(link->before, link->before_lane, link->before_bytes);
    pump(link);
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
    uint8_t level = datagram ? pkt->wqe->sl : pkt->from->sl;

    return level % model->parameters.link.vls;
}

/* Between queues of one adapter nothing goes out. */
static void loop_back(struct sim_packet *pkt)
{
    pkt->holds = 2;
    sim_packet_mark(pkt, MARK_SENT);
    sim_packet_mark(pkt, MARK_SWITCHED);
    event_at(sched->now, EVENT_PACKET_LEFT, pkt, OFF_THE_LINK);
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
        loop_back(pkt);
    else
        link_queue(&port->out, pkt);
}

void link_left(struct sim_packet *pkt)
{
    struct link *link = &pkt->from->port->out;

    link->busy = false;
    pump(link);
}
