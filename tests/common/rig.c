/* SPDX-License-Identifier: BSD-2-Clause */
#include "rig.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const struct rig_timing rig_patient = {
    .timeout = 12,
    .retry_cnt = 7,
    .rnr_retry = 7,
    .min_rnr_timer = 1,
};

static uint8_t last_gid(struct ibv_context *ctx)
{
    struct ibv_gid_entry entry;
    uint8_t index = 0;

    while (index < UINT8_MAX - 1 && !ibv_query_gid_ex(ctx, 1, index + 1, &entry, 0))
        index++;
    return index;
}

int rig_open(struct rig *rig)
{
    int count = 0;
    int err;

    memset(rig, 0, sizeof(*rig));
    struct ibv_device **list = ibv_get_device_list(&count);
    if (!list)
        return errno ? errno : EIO;
    if (!count) {
        ibv_free_device_list(list);
        return ENODEV;
    }
    errno = 0;
    rig->ctx = ibv_open_device(list[0]);
    err = errno;
    ibv_free_device_list(list);
    if (!rig->ctx)
        return err ? err : EIO;
    err = ibv_query_port(rig->ctx, 1, &rig->port);
    if (err)
        goto close_device;
    if (rig->port.link_layer == IBV_LINK_LAYER_ETHERNET)
        rig->gid_index = last_gid(rig->ctx);
    if (ibv_query_gid(rig->ctx, 1, rig->gid_index, &rig->gid)) {
        err = errno ? errno : EIO;
        goto close_device;
    }
    rig->pd = ibv_alloc_pd(rig->ctx);
    if (!rig->pd) {
        err = errno ? errno : ENOMEM;
        goto close_device;
    }
    return 0;

close_device:
    ibv_close_device(rig->ctx);
    rig->ctx = NULL;
    return err;
}

int rig_close(struct rig *rig)
{
    int err = ibv_dealloc_pd(rig->pd);

    if (err)
        return err;
    return ibv_close_device(rig->ctx) ? errno : 0;
}

void rig_addr_of(const struct rig *rig, const struct ibv_qp *qp, uint32_t psn,
                 struct rig_addr *addr)
{
    memset(addr, 0, sizeof(*addr));
    addr->qpn = qp->qp_num;
    addr->psn = psn;
    addr->lid = rig->port.lid;
    addr->gid = rig->gid;
    addr->gid_index = rig->gid_index;
    addr->global = rig->port.link_layer == IBV_LINK_LAYER_ETHERNET;
    addr->mtu = rig->port.active_mtu;
}

void rig_fill_ah(const struct rig_addr *remote, struct ibv_ah_attr *ah)
{
    memset(ah, 0, sizeof(*ah));
    ah->dlid = remote->lid;
    ah->port_num = 1;
    ah->is_global = remote->global;
    ah->grh.dgid = remote->gid;
    ah->grh.sgid_index = remote->gid_index;
    ah->grh.hop_limit = 64;
}

int rig_qp_init(struct ibv_qp *qp, int access)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

    if (qp->qp_type == IBV_QPT_UD) {
        attr.qkey = RIG_QKEY;
        mask |= IBV_QP_QKEY;
    } else {
        attr.qp_access_flags = access;
        mask |= IBV_QP_ACCESS_FLAGS;
    }
    return ibv_modify_qp(qp, &attr, mask);
}

static bool is_reliable(enum ibv_qp_type type)
{
    return type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV;
}

int rig_qp_rtr(struct ibv_qp *qp, const struct rig_addr *remote, const struct rig_timing *timing)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
    int mask = IBV_QP_STATE;

    if (qp->qp_type != IBV_QPT_UD) {
        rig_fill_ah(remote, &attr.ah_attr);
        attr.path_mtu = remote->mtu;
        attr.dest_qp_num = remote->qpn;
        attr.rq_psn = remote->psn;
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    }
    if (qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_XRC_RECV) {
        attr.max_dest_rd_atomic = 4;
        attr.min_rnr_timer = timing->min_rnr_timer;
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    return ibv_modify_qp(qp, &attr, mask);
}

int rig_qp_rts(struct ibv_qp *qp, uint32_t psn, const struct rig_timing *timing)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .sq_psn = psn };
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

    if (is_reliable(qp->qp_type)) {
        attr.timeout = timing->timeout;
        mask |= IBV_QP_TIMEOUT;
    }
    if (qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_XRC_SEND) {
        attr.retry_cnt = timing->retry_cnt;
        attr.rnr_retry = timing->rnr_retry;
        attr.max_rd_atomic = 4;
        mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    }
    return ibv_modify_qp(qp, &attr, mask);
}

int rig_qp_connect(struct ibv_qp *qp, uint32_t psn, const struct rig_addr *remote, int access,
                   const struct rig_timing *timing)
{
    int err = rig_qp_init(qp, access);

    if (!err)
        err = rig_qp_rtr(qp, remote, timing);
    if (!err)
        err = rig_qp_rts(qp, psn, timing);
    return err;
}

int rig_qp_error(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

    return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

enum ibv_qp_state rig_qp_state(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;

    if (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init))
        return IBV_QPS_UNKNOWN;
    return attr.qp_state;
}

int rig_poll(struct ibv_cq *cq, struct ibv_wc *wc, unsigned timeout_ms)
{
    uint64_t end = rig_now_us() + timeout_ms * 1000ull;

    for (;;) {
        int n = ibv_poll_cq(cq, 1, wc);
        if (n)
            return n < 0 ? -1 : 1;
        if (rig_now_us() >= end)
            return 0;
        sched_yield();
    }
}

uint64_t rig_now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000000ull + ts.tv_nsec / 1000;
}

uint64_t rig_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

void rig_segment_path(const char *fabric, char *path, size_t size)
{
    const char *dir = getenv("VERBENA_SHM_DIR");

    snprintf(path, size, "%s/verbena-%u-%s", dir && *dir ? dir : "/dev/shm", getuid(), fabric);
}
