/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/model/owned_qp.h"

#include "sim/model/hca.h"

#include <string.h>

#define FIRST_RING 4

/* Owners read no memory of their peers. */
static struct responder_resource no_resource;

/* The members that QPs of this service use; the ring follows. */
static size_t size_of_qp(enum transport_service service)
{
    if (service == SERVICE_UD)
        return offsetof(struct sim_qp, recv_sge[1]);
    if (model_is_ethernet() || model->parameters.hca.qpc_lock_time > 0)
        return offsetof(struct sim_qp, recv_capacity);
    return offsetof(struct sim_qp, dcqcn);
}

static struct sim_qp *create(const struct sim_qp_owner *owner, uint32_t qpn,
                             const struct owned_qp_end *end, enum transport_service service)
{
    size_t size = size_of_qp(service);
    struct sim_qp *qp = pool_alloc_permanent(size + FIRST_RING * sizeof(*qp->ring));
    struct transport_attributes attributes = {
        .service = service,
        .local_qpn = qpn,
        .remote_qpn = qpn ^ 1,
        .pkey = HCA_PKEY,
        .path_mtu = model->parameters.link.mtu,
        .window = SIM_QP_WINDOW,
        .ack_every = SIM_QP_ACK_EVERY,
        .timeout = owner->timeout,
        .retry_count = owner->retry_count,
        .rnr_retry_count = TRANSPORT_RETRY_FOREVER,
        .max_reads = 1,
        .resources = &no_resource,
        .counters = &model->counters,
    };

    if (!qp)
        return NULL;
    qp->ring = (struct sim_wqe **)((char *)qp + size);
    qp->mask = FIRST_RING - 1;
    qp->refcount = 1;
    qp->receives = true;
    qp->owner = owner;
    qp->owner_data = end->data;
    qp->qpn = qpn;
    qp->proc = end->proc;
    qp->port = end->port;
    qp->max_send_sge = qp->max_recv_sge = 1;
    transport_init(&qp->transport, &sim_qp_transport_ops, &attributes);
    qp->context.number = icm_new_context(&qp->port->hca->icm);
    *sim_qp_slot(qpn) = qp;
    return qp;
}

bool owned_qp_connect(const struct sim_qp_owner *owner, uint32_t qpn,
                      const struct owned_qp_end ends[2], struct sim_qp *qps[2])
{
    for (int i = 0; i < 2; i++) {
        qps[i] = create(owner, qpn + i, &ends[i], SERVICE_RC);
        if (!qps[i])
            return false;
        qps[i]->peer_lid = ends[!i].port->lid;
    }
    return true;
}

struct sim_qp *owned_qp_datagram(const struct sim_qp_owner *owner, uint32_t qpn,
                                 const struct owned_qp_end *end, uint64_t address, uint32_t receive)
{
    struct sim_qp *qp = create(owner, qpn, end, SERVICE_UD);

    if (!qp)
        return NULL;
    qp->recv_capacity = (struct rq_capacity){ receive, receive };
    qp->recv_num_sge = 1;
    qp->recv_sge[0] = (struct sim_sge){ .address = address, .length = receive };
    return qp;
}

void owned_qp_init(void)
{
    model->wqes.size = offsetof(struct sim_wqe, sge[1]);
}

static bool make_room(struct sim_qp *qp)
{
    uint32_t size = 2 * (qp->mask + 1);
    struct sim_wqe **ring;

    if (qp->posted - qp->completed <= qp->mask)
        return true;
    ring = pool_alloc_permanent((uint64_t)size * sizeof(*ring));
    if (!ring)
        return false;
    for (uint32_t i = qp->completed; i != qp->posted; i++)
        ring[i & (size - 1)] = sim_qp_wqe(qp, i);
    qp->ring = ring;
    qp->mask = size - 1;
    return true;
}

bool owned_qp_post(struct sim_qp *qp, const struct owned_qp_write *write, uint64_t now)
{
    struct sim_wqe *wqe = make_room(qp) ? pool_take(&model->wqes) : NULL;

    if (!wqe)
        return false;
    memset(wqe, 0, offsetof(struct sim_wqe, sge));
    wqe->refcount = 1;
    wqe->qp = qp;
    wqe->wr_id = write->wr_id;
    wqe->sq_index = write->sq_index;
    wqe->flags = write->flags;
    wqe->opcode = IBV_WR_RDMA_WRITE;
    wqe->length = write->length;
    wqe->marks[MARK_CALLED] = wqe->marks[MARK_POSTED] = now;
    wqe->transport = (struct transport_wqe){ .operation = TRANSPORT_WRITE,
                                             .length = write->length,
                                             .data = (uintptr_t)wqe,
                                             .remote_address = write->remote };
    if (write->to) {
        wqe->opcode = IBV_WR_SEND;
        wqe->dlid = write->to->port->lid;
        wqe->transport.operation = TRANSPORT_SEND;
        wqe->transport.remote_qpn = write->to->qpn;
    }
    if (!(write->flags & IBV_SEND_INLINE)) {
        wqe->num_sge = 1;
        wqe->sge[0] = (struct sim_sge){ .address = write->local, .length = write->length };
        if (!qp->read_line)
            icm_prefetch(&qp->port->hca->icm, qp->proc, write->local);
    }
    qp->ring[qp->posted++ & qp->mask] = wqe;
    qp->announced = qp->posted;
    qp->refcount += 2; /* the WQE, and the doorbell */
    event_at(now + ns_of(model->parameters.bus.doorbell_latency), EVENT_DOORBELL, qp, 1);
    return true;
}
