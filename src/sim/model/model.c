/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/model/model.h"

#include "sim/model/hca.h"
#include "sim/model/observer.h"
#include "sim/model/payload.h"
#include "sim/model/region.h"

#include <errno.h>

struct model *model;
struct model_observer model_observer;
struct model_activity model_activity;

int model_init(void)
{
    model->cqes.size = sizeof(struct sim_cqe);
    model->packets.size = sizeof(struct sim_packet);
    model->wqes.size = sizeof(struct sim_wqe);
    model->qps.size = sizeof(struct sim_qp);
    if (!model->qp_index_bits)
        model->qp_index_bits = QP_INDEX_BITS;
    model->qp_table =
        pool_alloc_permanent((1ull << model->qp_index_bits) * sizeof(*model->qp_table));
    if (!model->qp_table)
        return ENOMEM;
    return hca_init_all();
}

void model_dispatch(const struct event *event)
{
    struct sim_qp *qp = event->object;
    struct sim_packet *pkt = event->object;

    switch ((enum event_kind)event->kind) {
    case EVENT_DOORBELL:
        send_engine_doorbell(qp, event->argument);
        sim_qp_put(qp);
        break;
    case EVENT_CONTEXT:
        send_engine_context(qp);
        sim_qp_put(qp);
        break;
    case EVENT_WQE_FETCHED:
        send_engine_wqe_fetched(qp, event->argument);
        sim_qp_put(qp);
        break;
    case EVENT_ENGINE:
        send_engine_step(event->object);
        break;
    case EVENT_PACKET_READ:
        send_engine_payload_read(pkt);
        break;
    case EVENT_PACKET_READY:
        send_engine_packet_ready(pkt);
        break;
    case EVENT_PACKET_LEFT:
        if (event->argument != LINK_NOT_USED)
            link_left(pkt);
        send_engine_packet_left(pkt);
        sim_packet_put(pkt);
        break;
    case EVENT_PACKET_AT_SWITCH:
        switch_packet_arrived(pkt);
        break;
    case EVENT_LINK_FREE:
        link_free(event->object);
        break;
    case EVENT_PACKET_ARRIVED:
        receive_engine_arrived(pkt, event->argument);
        break;
    case EVENT_PACKET_PROCESSED:
        receive_engine_processed(pkt);
        break;
    case EVENT_DELIVER:
        payload_deliver(pkt);
        break;
    case EVENT_COMPLETE:
        sim_qp_complete(event->object);
        break;
    case EVENT_RESPOND:
        sim_qp_respond(qp);
        sim_qp_put(qp);
        break;
    case EVENT_ACK:
        sim_qp_ack(qp);
        sim_qp_put(qp);
        break;
    case EVENT_ACK_TURNAROUND:
        sim_qp_ack_turnaround_done(qp);
        sim_qp_put(qp);
        break;
    case EVENT_TIMEOUT:
        sim_qp_timeout(qp, event->time);
        sim_qp_put(qp);
        break;
    case EVENT_PAUSE:
        ethernet_pause(event->object, event->argument);
        break;
    case EVENT_PACED:
        ethernet_paced(qp);
        sim_qp_put(qp);
        break;
    case EVENT_QP_READY:
        sim_qp_begin_to_receive(qp);
        sim_qp_put(qp);
        break;
    case EVENT_RECEIVES_POSTED:
        qp->hidden_receives -= event->argument;
        sim_qp_put(qp);
        break;
    case EVENT_REGION:
        region_change_due(event->object);
        break;
    case EVENT_LINK_FAILS:
        switch_link_fails(event->argument);
        break;
    case EVENT_KINDS:
        break;
    }
}
