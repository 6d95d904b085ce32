/* SPDX-License-Identifier: BSD-2-Clause */
/* Default ops: EOPNOTSUPP for every call that is not supported. */

#include "verbs/verbs.h"

static int unsupported(void)
{
    return EOPNOTSUPP;
}

static void *unsupported_object(void)
{
    return fail(EOPNOTSUPP);
}

#define INT(call)    v->call = (void *)unsupported
#define OBJECT(call) v->call = (void *)unsupported_object

void verbs_fill_unsupported(struct verbs_context *v)
{
    INT(read_counters);
    INT(attach_counters_point_flow);
    OBJECT(create_counters);
    INT(destroy_counters);
    INT(modify_flow_action_esp);
    INT(destroy_flow_action);
    OBJECT(create_flow_action_esp);
    INT(modify_qp_rate_limit);
    INT(post_srq_ops);
    INT(destroy_rwq_ind_table);
    OBJECT(create_rwq_ind_table);
    INT(destroy_wq);
    INT(modify_wq);
    OBJECT(create_wq);
    INT(ibv_destroy_flow);
    OBJECT(ibv_create_flow);
}

EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
                                        uint64_t iova, int fd, int access)
{
    return fail(EOPNOTSUPP);
}

EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
                                       uint8_t eth_mac[6], uint16_t *vid)
{
    return EOPNOTSUPP; /* needs Ethernet */
}

EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    if (ece->vendor_id == 0)
        return 0;
    return EOPNOTSUPP;
}

EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    *ece = (struct ibv_ece){ 0 };
    return 0;
}

/* ---- sharing with another context of the same process ---- */

EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
    return fail(EOPNOTSUPP);
}

EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
    return fail(EOPNOTSUPP);
}

EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
}

EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
    return fail(EOPNOTSUPP);
}

EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
}

EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
    return fail(EOPNOTSUPP);
}

EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
}
