/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/model/ethernet.h"

#include "sim/model/hca.h"
#include "util/random.h"

#define PAUSE_FRAME_BYTES (64 + 20) /* with preamble and gap: IEEE 802.3 */
#define PAUSE_FLAG        0x100     /* argument of EVENT_PAUSE, beside the VL; else: continue */

/* ---- PFC ---- */

/* The frame waits for the packet that is on the way back, and overtakes those behind it. */
static void send_pause_frame(struct link *link, uint8_t vl, bool pause)
{
    const struct parameters *p = &model->parameters;
    uint64_t sent;

    model_set_activity(NULL, NULL);
    model_activity.work = pause ? "pause frame" : "end of pause";
    sent = serve(&link->reverse->server, sched->now, PAUSE_FRAME_BYTES / p->link.rate);
    model_activity.work = NULL;
    link->vls[vl].ethernet.pausing = pause;
    link->ethernet.pauses += pause;
    event_at(sent + ns_of(p->link.latency + p->pfc.response), EVENT_PAUSE, link,
             vl | (pause ? PAUSE_FLAG : 0));
}

void ethernet_pause(struct link *link, uint32_t argument)
{
    struct ethernet_vl *vl = &link->vls[argument & ~PAUSE_FLAG].ethernet;
    bool pause = argument & PAUSE_FLAG;

    if (pause == vl->paused)
        return;
    vl->paused = pause;
    if (pause) {
        vl->paused_at = sched->now;
        return;
    }
    link->ethernet.paused_ns += sched->now - vl->paused_at;
    link_continue(link);
}

void ethernet_released(struct link *link, uint8_t vl, uint32_t bytes)
{
    struct ethernet_vl *state = &link->vls[vl].ethernet;

    state->held -= bytes;
    if (state->pausing && state->held <= model->parameters.pfc.xon)
        send_pause_frame(link, vl, false);
}

/* ---- loss and marks ---- */

static bool has_room(const struct sim_packet *pkt, const struct link *output)
{
    const struct parameters *p = &model->parameters;
    uint64_t held = pkt->via->vls[pkt->via_vl].ethernet.held;

    if (p->pfc.xoff)
        return held + pkt->bytes <= p->pfc.xoff + p->pfc.headroom;
    if (output)
        return !p->fabric.output_buffer ||
               output->vls[pkt->vl].ethernet.queued + pkt->bytes <= p->fabric.output_buffer;
    return !p->link.receive_buffer || held + pkt->bytes <= p->link.receive_buffer;
}

/* Random early detection (Floyd, Jacobson 1993) by the present queue, which is not averaged. */
static bool is_marked(uint64_t queue)
{
    const struct parameters *p = &model->parameters;

    if (!p->ecn.kmax || queue < p->ecn.kmin)
        return false;
    if (queue >= p->ecn.kmax)
        return true;
    return random_fraction(&model->ethernet.random) <
           p->ecn.pmax * (queue - p->ecn.kmin) / (p->ecn.kmax - p->ecn.kmin);
}

static void pass_output(struct sim_packet *pkt, struct link *output)
{
    struct ethernet_counters *counters = &output->ethernet;
    uint64_t queue = output->vls[pkt->vl].ethernet.queued;

    counters->packets++;
    counters->queue_sum += queue;
    if (counters->queue_max < queue)
        counters->queue_max = queue;
    if (pkt->payload && is_marked(queue)) {
        pkt->congestion_experienced = true;
        counters->marked++;
    }
}

bool ethernet_admit(struct sim_packet *pkt, struct link *output)
{
    struct ethernet_vl *in = &pkt->via->vls[pkt->via_vl].ethernet;
    uint64_t xoff = model->parameters.pfc.xoff;

    if (xoff && in->held + pkt->bytes > xoff && !in->pausing)
        send_pause_frame(pkt->via, pkt->via_vl, true);
    if (!has_room(pkt, output)) {
        (output && !xoff ? output : pkt->via)->ethernet.dropped++;
        link_refuse(pkt);
        sim_packet_put(pkt);
        return false;
    }
    if (output)
        pass_output(pkt, output);
    in->held += pkt->bytes;
    if (pkt->via->ethernet.buffer_max < in->held)
        pkt->via->ethernet.buffer_max = in->held;
    return true;
}

/* ---- DCQCN ---- */

/* The notification point: at most one CNP of a QP in each interval. */
static void send_cnp(struct sim_qp *qp)
{
    struct packet packet = { .opcode = OPCODE_CNP,
                             .pkey = qp->transport.attributes.pkey,
                             .destination_qpn = qp->transport.attributes.remote_qpn };
    struct sim_packet *pkt;

    if (sched->now < qp->next_cnp_at)
        return;
    qp->next_cnp_at = sched->now + ns_of(model->parameters.dcqcn.cnp_interval);
    pkt = sim_packet_new(qp, &packet);
    if (pkt)
        link_send(qp->port, pkt);
}

bool ethernet_notified(struct sim_packet *pkt)
{
    struct sim_qp *qp = pkt->to;

    if (pkt->packet.opcode == OPCODE_CNP) {
        model->ethernet.cnps++;
        model->ethernet.alpha_sum += dcqcn_cut(&qp->dcqcn, &model->parameters, sched->now);
        return true;
    }
    /* A UD QP has no peer whose rate could be limited. */
    if (pkt->congestion_experienced && model->parameters.dcqcn.enabled &&
        qp->transport.attributes.service != SERVICE_UD)
        send_cnp(qp);
    return false;
}

void ethernet_pace(struct sim_qp *qp)
{
    if (qp->pace_event_scheduled)
        return;
    qp->pace_event_scheduled = true;
    qp->refcount++;
    event_at(qp->dcqcn.send_at, EVENT_PACED, qp, 0);
}

void ethernet_paced(struct sim_qp *qp)
{
    qp->pace_event_scheduled = false;
    send_engine_kick(qp);
}
