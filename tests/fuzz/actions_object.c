/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that create, modify, query and destroy objects. */
#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

/* A free slot for a new object, or NULL. The PD in slot 0 is never destroyed. */
#define FREE_PLACE(pool)                             \
    ({                                               \
        __typeof__(&(pool)[0]) place_ = NULL;        \
        for (int i_ = 0; i_ < POOL && !place_; i_++) \
            if (!(pool)[i_])                         \
                place_ = &(pool)[i_];                \
        place_;                                      \
    })

static void check_end(int err, const char *what)
{
    if (err && err != EBUSY)
        violated("%s: %s", what, strerror(err));
}

static struct ibv_pd *some_pd(struct world *world, struct input *in)
{
    struct ibv_pd *pd = PICK(world, pd, in);

    return pd ? pd : world->pd[0];
}

static void alloc_pd(struct world *world, struct input *in)
{
    struct ibv_pd **place = FREE_PLACE(world->pd);

    if (place)
        *place = ibv_alloc_pd(world->rig.ctx);
}

static void dealloc_pd(struct world *world, struct input *in)
{
    int i = 1 + take8(in) % (POOL - 1);

    if (!world->pd[i])
        return;
    int err = ibv_dealloc_pd(world->pd[i]);
    check_end(err, "ibv_dealloc_pd");
    if (!err)
        world->pd[i] = NULL;
}

static void reg_mr(struct world *world, struct input *in)
{
    struct ibv_mr **place = FREE_PLACE(world->mr);
    struct ibv_pd *pd = some_pd(world, in);
    void *addr = (void *)(uintptr_t)wild_address(world, in);
    uint64_t length = wild_length(in);
    uint64_t iova = take64(in);
    unsigned access = take8(in) & 1 ? take32(in) : RIG_ACCESS_ALL;

    if (!place)
        return;
    *place = take8(in) & 1 ? ibv_reg_mr(pd, addr, length, access)
                           : ibv_reg_mr_iova(pd, addr, length, iova, access);
    if (*place && (uintptr_t)addr + length < (uintptr_t)addr)
        violated("a region that wraps around was registered");
}

static void rereg_mr(struct world *world, struct input *in)
{
    int i = take8(in) % POOL;
    int flags = take_edge(in);
    struct ibv_pd *pd = some_pd(world, in);
    void *addr = (void *)(uintptr_t)wild_address(world, in);
    uint64_t length = wild_length(in);
    int access = take32(in);

    if (world->mr[i])
        ibv_rereg_mr(world->mr[i], flags, pd, addr, length, access);
}

static void dereg_mr(struct world *world, struct input *in)
{
    int i = take8(in) % POOL;

    if (!world->mr[i])
        return;
    int err = ibv_dereg_mr(world->mr[i]);
    check_end(err, "ibv_dereg_mr");
    if (!err)
        world->mr[i] = NULL;
}

static void advise_mr(struct world *world, struct input *in)
{
    struct ibv_sge sge = { .addr = wild_address(world, in), .length = take_edge(in) };

    sge.lkey = wild_key(world, in, false);
    ibv_advise_mr(some_pd(world, in), take_edge(in), take_edge(in), &sge, 1);
}

static void create_cq(struct world *world, struct input *in)
{
    struct ibv_cq **place = FREE_PLACE(world->cq);
    uint8_t shape = take8(in);
    int cqe = (int)take_edge(in);

    if (!place)
        return;
    *place = ibv_create_cq(world->rig.ctx, cqe, NULL, shape & 1 ? world->channel : NULL,
                           shape & 2 ? (int)take_edge(in) : 0);
    if (*place && (cqe <= 0 || (*place)->cqe < cqe))
        violated("a CQ of %d has %d", cqe, (*place)->cqe);
}

static void create_cq_ex(struct world *world, struct input *in)
{
    struct ibv_cq **place = FREE_PLACE(world->cq);
    struct ibv_cq_init_attr_ex attr = {
        .cqe = take_edge(in),
        .comp_vector = take_edge(in) % 4,
        .wc_flags = take8(in) & 1 ? take64(in) : IBV_WC_STANDARD_FLAGS,
        .comp_mask = take_edge(in),
        .flags = take_edge(in),
        .parent_domain = world->pd[0],
    };

    if (!place)
        return;
    struct ibv_cq_ex *cq = ibv_create_cq_ex(world->rig.ctx, &attr);
    if (!cq)
        return;
    *place = ibv_cq_ex_to_cq(cq);
    world->cq_ex[place - world->cq] = cq;
}

static void resize_cq(struct world *world, struct input *in)
{
    struct ibv_cq *cq = PICK(world, cq, in);

    if (cq)
        ibv_resize_cq(cq, (int)take_edge(in));
}

static void modify_cq(struct world *world, struct input *in)
{
    struct ibv_cq *cq = PICK(world, cq, in);
    struct ibv_modify_cq_attr attr;

    take_bytes(in, &attr, sizeof(attr));
    if (cq)
        ibv_modify_cq(cq, &attr);
}

static void destroy_cq(struct world *world, struct input *in)
{
    int i = take8(in) % POOL;

    if (!world->cq[i])
        return;
    int err = ibv_destroy_cq(world->cq[i]);
    check_end(err, "ibv_destroy_cq");
    if (!err) {
        world->cq[i] = NULL;
        world->cq_ex[i] = NULL;
    }
}

static void create_srq(struct world *world, struct input *in)
{
    struct ibv_srq **place = FREE_PLACE(world->srq);
    struct ibv_srq_init_attr attr = {
        .attr = { .max_wr = take_edge(in), .max_sge = take_edge(in), .srq_limit = take_edge(in) },
    };

    if (place)
        *place = ibv_create_srq(some_pd(world, in), &attr);
}

static void create_srq_ex(struct world *world, struct input *in)
{
    struct ibv_srq **place = FREE_PLACE(world->srq);
    struct ibv_srq_init_attr_ex attr = {
        .attr = { .max_wr = take_edge(in), .max_sge = take_edge(in) % 64 },
        .comp_mask = take8(in) & 1 ? take32(in) : 15,
        .srq_type = take_edge(in) % 5,
        .pd = some_pd(world, in),
        .xrcd = PICK(world, xrcd, in),
        .cq = PICK(world, cq, in),
    };

    if (!place || !attr.xrcd || !attr.cq)
        return;
    attr.tm_cap.max_num_tags = take_edge(in);
    attr.tm_cap.max_ops = take_edge(in);
    *place = ibv_create_srq_ex(world->rig.ctx, &attr);
}

static void modify_srq(struct world *world, struct input *in)
{
    struct ibv_srq *srq = PICK(world, srq, in);
    struct ibv_srq_attr attr = { .max_wr = take_edge(in), .srq_limit = take_edge(in) };

    if (srq)
        ibv_modify_srq(srq, &attr, (int)take_edge(in));
}

static void query_srq(struct world *world, struct input *in)
{
    struct ibv_srq *srq = PICK(world, srq, in);
    struct ibv_srq_attr attr;
    uint32_t number;

    if (srq && !ibv_query_srq(srq, &attr))
        ibv_get_srq_num(srq, &number);
}

static void destroy_srq(struct world *world, struct input *in)
{
    int i = take8(in) % POOL;

    if (!world->srq[i])
        return;
    int err = ibv_destroy_srq(world->srq[i]);
    check_end(err, "ibv_destroy_srq");
    if (!err)
        world->srq[i] = NULL;
}

static void open_xrcd(struct world *world, struct input *in)
{
    struct ibv_xrcd **place = FREE_PLACE(world->xrcd);
    struct ibv_xrcd_init_attr attr = {
        .comp_mask = take8(in) & 1 ? take32(in) : 3,
        .fd = take8(in) & 1 ? -1 : (int)(take_edge(in) | 0x10000),
        .oflags = take8(in) & 1 ? (int)take_edge(in) : O_CREAT,
    };

    if (place)
        *place = ibv_open_xrcd(world->rig.ctx, &attr);
}

static void close_xrcd(struct world *world, struct input *in)
{
    int i = take8(in) % POOL;

    if (!world->xrcd[i])
        return;
    int err = ibv_close_xrcd(world->xrcd[i]);
    check_end(err, "ibv_close_xrcd");
    if (!err)
        world->xrcd[i] = NULL;
}

static void take_caps(struct input *in, struct ibv_qp_cap *cap)
{
    cap->max_send_wr = take_edge(in);
    cap->max_recv_wr = take_edge(in);
    cap->max_send_sge = take_edge(in);
    cap->max_recv_sge = take_edge(in);
    cap->max_inline_data = take_edge(in);
}

static enum ibv_qp_type take_type(struct input *in)
{
    static const enum ibv_qp_type known[] = { IBV_QPT_RC,       IBV_QPT_UC,
                                              IBV_QPT_UD,       IBV_QPT_XRC_SEND,
                                              IBV_QPT_XRC_RECV, IBV_QPT_RAW_PACKET,
                                              IBV_QPT_DRIVER };
    uint8_t shape = take8(in);

    return shape < 220 ? known[shape % 7] : (enum ibv_qp_type)take_edge(in);
}

static void create_qp(struct world *world, struct input *in)
{
    struct ibv_qp **place = FREE_PLACE(world->qp);
    struct ibv_qp_init_attr attr = {
        .send_cq = PICK(world, cq, in),
        .recv_cq = PICK(world, cq, in),
        .srq = take8(in) & 1 ? PICK(world, srq, in) : NULL,
        .qp_type = take_type(in),
        .sq_sig_all = take_edge(in),
    };

    if (!place)
        return;
    take_caps(in, &attr.cap);
    struct ibv_qp_cap asked = attr.cap;
    *place = ibv_create_qp(some_pd(world, in), &attr);
    if (*place && (attr.cap.max_send_wr < asked.max_send_wr && attr.qp_type != IBV_QPT_XRC_RECV))
        violated("a QP of %u sends has %u", asked.max_send_wr, attr.cap.max_send_wr);
}

static void create_qp_ex(struct world *world, struct input *in)
{
    struct ibv_qp **place = FREE_PLACE(world->qp);
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = PICK(world, cq, in),
        .recv_cq = PICK(world, cq, in),
        .srq = take8(in) & 1 ? PICK(world, srq, in) : NULL,
        .qp_type = take_type(in),
        .sq_sig_all = take8(in) & 1,
        .comp_mask = take8(in) & 1 ? take32(in) : IBV_QP_INIT_ATTR_PD,
        .pd = some_pd(world, in),
        .xrcd = PICK(world, xrcd, in),
        .create_flags = take_edge(in),
        .max_tso_header = take_edge(in),
        .source_qpn = take_edge(in),
        .send_ops_flags = take8(in) & 1 ? take64(in) : 0x3f,
    };

    if (!place)
        return;
    if (take8(in) & 1)
        attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    take_caps(in, &attr.cap);
    *place = ibv_create_qp_ex(world->rig.ctx, &attr);
    if (*place && attr.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
        world->qp_ex[place - world->qp] = ibv_qp_to_qp_ex(*place);
}

static void open_qp(struct world *world, struct input *in)
{
    struct ibv_qp **place = FREE_PLACE(world->qp);
    struct ibv_qp *qp = PICK(world, qp, in);
    struct ibv_qp_open_attr attr = {
        .comp_mask = take8(in) & 1 ? take32(in) : 7,
        .qp_num = qp && take8(in) & 1 ? qp->qp_num : take32(in),
        .xrcd = PICK(world, xrcd, in),
        .qp_type = take_type(in),
    };

    if (place && attr.xrcd)
        *place = ibv_open_qp(world->rig.ctx, &attr);
}

static void aim_at_qp(struct world *world, struct input *in, struct ibv_qp_attr *attr)
{
    struct ibv_qp *to = PICK(world, qp, in);

    memset(attr, 0, sizeof(*attr));
    attr->port_num = 1;
    attr->qkey = RIG_QKEY;
    attr->qp_access_flags = RIG_ACCESS_ALL;
    attr->path_mtu = IBV_MTU_1024;
    attr->ah_attr.dlid = world->rig.port.lid;
    attr->ah_attr.port_num = 1;
    attr->dest_qp_num = to ? to->qp_num : take32(in);
    attr->max_dest_rd_atomic = attr->max_rd_atomic = 1;
    attr->timeout = 1 + take8(in) % 8;
    attr->retry_cnt = take8(in) % 3;
    attr->rnr_retry = take8(in) % 8;
    attr->min_rnr_timer = 1 + take8(in) % 4;
}

static void modify_qp(struct world *world, struct input *in)
{
    struct ibv_qp *qp = PICK(world, qp, in);
    struct ibv_qp_attr attr;
    uint8_t shape = take8(in);

    if (shape & 1)
        take_bytes(in, &attr, sizeof(attr));
    else
        aim_at_qp(world, in, &attr);
    attr.qp_state = shape & 2 ? take8(in) % 8 : take_edge(in);
    if (qp)
        ibv_modify_qp(qp, &attr, (int)take32(in) & (shape & 4 ? -1 : 0x1fffff));
}

/* The regular transitions, so that fuzzed queue pairs exchange traffic. */
static void connect_qp(struct world *world, struct input *in)
{
    struct ibv_qp *qp = PICK(world, qp, in);
    struct ibv_qp *to = PICK(world, qp, in);
    struct rig_timing timing = { .timeout = 1 + take8(in) % 6,
                                 .retry_cnt = take8(in) % 3,
                                 .rnr_retry = take8(in) % 8,
                                 .min_rnr_timer = 1 + take8(in) % 4 };
    struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
    struct rig_addr addr;

    if (!qp || !to)
        return;
    rig_addr_of(&world->rig, to, take32(in), &addr);
    if (take8(in) & 1)
        ibv_modify_qp(qp, &reset, IBV_QP_STATE);
    rig_qp_connect(qp, take32(in), &addr, RIG_ACCESS_ALL, &timing);
}

static void query_qp(struct world *world, struct input *in)
{
    struct ibv_qp *qp = PICK(world, qp, in);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;

    if (!qp || ibv_query_qp(qp, &attr, (int)take32(in), &init))
        return;
    if (attr.qp_state > IBV_QPS_ERR)
        violated("state %d", attr.qp_state);
}

static void forget_memberships(struct world *world, const struct ibv_qp *qp)
{
    int kept = 0;

    for (int i = 0; i < world->groups; i++)
        if (world->group[i].qp != qp)
            world->group[kept++] = world->group[i];
    world->groups = kept;
}

static void destroy_qp(struct world *world, struct input *in)
{
    int i = take8(in) % POOL;

    if (!world->qp[i])
        return;
    int err = ibv_destroy_qp(world->qp[i]);
    check_end(err, "ibv_destroy_qp");
    if (!err) {
        forget_memberships(world, world->qp[i]);
        world->qp[i] = NULL;
        world->qp_ex[i] = NULL;
    }
}

static void take_ah(struct world *world, struct input *in, struct ibv_ah_attr *attr)
{
    if (take8(in) & 1) {
        take_bytes(in, attr, sizeof(*attr));
        return;
    }
    memset(attr, 0, sizeof(*attr));
    attr->dlid = take8(in) & 1 ? world->rig.port.lid : take32(in);
    attr->port_num = take8(in) & 1 ? 1 : take_edge(in);
    attr->is_global = take8(in) & 1;
    attr->grh.dgid = world->rig.gid;
    attr->grh.sgid_index = take_edge(in);
}

static void create_ah(struct world *world, struct input *in)
{
    struct ibv_ah **place = FREE_PLACE(world->ah);
    struct ibv_ah_attr attr;

    take_ah(world, in, &attr);
    if (place)
        *place = ibv_create_ah(some_pd(world, in), &attr);
}

static void ah_from_wc(struct world *world, struct input *in)
{
    struct ibv_ah **place = FREE_PLACE(world->ah);
    struct ibv_ah_attr attr;
    struct ibv_wc wc;
    struct ibv_grh grh;
    uint8_t port = take_edge(in);

    take_bytes(in, &wc, sizeof(wc));
    take_bytes(in, &grh, sizeof(grh));
    ibv_init_ah_from_wc(world->rig.ctx, port, &wc, &grh, &attr);
    if (place)
        *place = ibv_create_ah_from_wc(some_pd(world, in), &wc, &grh, port);
}

static void destroy_ah(struct world *world, struct input *in)
{
    int i = 1 + take8(in) % (POOL - 1);

    if (world->ah[i]) {
        check_end(ibv_destroy_ah(world->ah[i]), "ibv_destroy_ah");
        world->ah[i] = NULL;
    }
}

static void multicast(struct world *world, struct input *in)
{
    struct ibv_qp *qp = PICK(world, qp, in);
    union ibv_gid gid = world->rig.gid;
    uint16_t lid = take32(in);

    if (take8(in) & 1)
        take_bytes(in, &gid, sizeof(gid));
    if (take8(in) & 1)
        gid.raw[0] = 0xff;
    if (!qp)
        return;
    if (take8(in) & 1)
        ibv_detach_mcast(qp, &gid, lid);
    else if (world->groups < MEMBERSHIPS && !ibv_attach_mcast(qp, &gid, lid))
        world->group[world->groups++] = (struct membership){ qp, gid, lid };
}

static void alloc_mw(struct world *world, struct input *in)
{
    struct ibv_mw **place = FREE_PLACE(world->mw);

    if (place)
        *place = ibv_alloc_mw(some_pd(world, in), take_edge(in) % 4);
}

static void dealloc_mw(struct world *world, struct input *in)
{
    int i = take8(in) % POOL;

    if (!world->mw[i])
        return;
    int err = ibv_dealloc_mw(world->mw[i]);
    check_end(err, "ibv_dealloc_mw");
    if (!err)
        world->mw[i] = NULL;
}

static void device_memory(struct world *world, struct input *in)
{
    int i = take8(in) % POOL;
    uint64_t offset = take8(in) & 1 ? take64(in) : take_edge(in);
    uint64_t length = take8(in) & 1 ? take64(in) : take_edge(in);
    struct ibv_mr **place = FREE_PLACE(world->mr);

    if (!world->dm[i]) {
        struct ibv_alloc_dm_attr attr = { .length = take_edge(in),
                                          .log_align_req = take_edge(in) % 64,
                                          .comp_mask = take8(in) & 1 ? 0 : take_edge(in) };
        if (attr.length <= ARENA_BYTES)
            world->dm[i] = ibv_alloc_dm(world->rig.ctx, &attr);
        return;
    }
    switch (take8(in) % 5) {
    case 3:
        if (place)
            *place = ibv_alloc_null_mr(some_pd(world, in));
        break;
    case 0:
        ibv_memcpy_to_dm(world->dm[i], offset, world->arena, length);
        break;
    case 1:
        ibv_memcpy_from_dm(world->arena, world->dm[i], offset, length);
        break;
    case 2:
        if (place)
            *place = ibv_reg_dm_mr(some_pd(world, in), world->dm[i], offset, length, take32(in));
        break;
    default: {
        int err = ibv_free_dm(world->dm[i]);
        check_end(err, "ibv_free_dm");
        if (!err)
            world->dm[i] = NULL;
    }
    }
}

static void query_device(struct world *world, struct input *in)
{
    struct ibv_port_attr port;
    struct ibv_device_attr device;
    struct ibv_device_attr_ex device_ex;
    struct ibv_query_device_ex_input input = { .comp_mask = take_edge(in) };
    struct ibv_gid_entry entries[4];
    union ibv_gid gid;
    __be16 pkey;
    uint32_t number = take_edge(in);
    uint32_t index = take_edge(in);

    ibv_query_port(world->rig.ctx, number, &port);
    ibv_query_gid(world->rig.ctx, number, (int)index, &gid);
    ibv_query_pkey(world->rig.ctx, number, (int)index, &pkey);
    ibv_get_pkey_index(world->rig.ctx, number, pkey);
    ibv_query_gid_ex(world->rig.ctx, number, index, &entries[0], take_edge(in));
    ibv_query_gid_table(world->rig.ctx, entries, take8(in) % 5, take_edge(in));
    ibv_query_device(world->rig.ctx, &device);
    ibv_query_device_ex(world->rig.ctx, &input, &device_ex);
}

static void take_async_event(struct world *world, struct input *in)
{
    struct pollfd fd = { .fd = world->rig.ctx->async_fd, .events = POLLIN };
    struct ibv_async_event event;

    while (poll(&fd, 1, 0) == 1 && !ibv_get_async_event(world->rig.ctx, &event))
        ibv_ack_async_event(&event);
}

const struct action object_actions[] = {
    { "alloc_pd", alloc_pd },
    { "dealloc_pd", dealloc_pd },
    { "reg_mr", reg_mr },
    { "rereg_mr", rereg_mr },
    { "dereg_mr", dereg_mr },
    { "advise_mr", advise_mr },
    { "create_cq", create_cq },
    { "create_cq_ex", create_cq_ex },
    { "resize_cq", resize_cq },
    { "modify_cq", modify_cq },
    { "destroy_cq", destroy_cq },
    { "create_srq", create_srq },
    { "create_srq_ex", create_srq_ex },
    { "modify_srq", modify_srq },
    { "query_srq", query_srq },
    { "destroy_srq", destroy_srq },
    { "open_xrcd", open_xrcd },
    { "close_xrcd", close_xrcd },
    { "create_qp", create_qp },
    { "create_qp_ex", create_qp_ex },
    { "open_qp", open_qp },
    { "modify_qp", modify_qp },
    { "connect_qp", connect_qp },
    { "query_qp", query_qp },
    { "destroy_qp", destroy_qp },
    { "create_ah", create_ah },
    { "ah_from_wc", ah_from_wc },
    { "destroy_ah", destroy_ah },
    { "multicast", multicast },
    { "alloc_mw", alloc_mw },
    { "dealloc_mw", dealloc_mw },
    { "device_memory", device_memory },
    { "query_device", query_device },
    { "take_async_event", take_async_event },
};
const size_t object_action_count = sizeof(object_actions) / sizeof(object_actions[0]);
