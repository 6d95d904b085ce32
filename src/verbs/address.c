/* SPDX-License-Identifier: BSD-2-Clause */
/* Address handles and multicast groups. */

#include "hca/shm_lock.h"
#include "verbs/verbs.h"

#include "check/check.h"
#include "hca/addr.h"
#include "hca/epoch.h"
#include "hca/qp.h"
#include "hca/table.h"

#include <string.h>

EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    if (attr->port_num < 1 || attr->port_num > seg->ports || attr->sl > 15 ||
        (attr->is_global && attr->grh.sgid_index >= HCA_GIDS) || (!attr->is_global && !attr->dlid))
        return fail(EINVAL);
    if (hca_is_ethernet() && !attr->is_global)
        return fail(EINVAL);
    int err = check_call(VERB_CREATE_AH);
    if (err)
        return fail(err);
    hca_charge(CALL_CREATE_AH, 0);
    struct hca_ah *ah = calloc(1, sizeof(*ah));
    if (!ah)
        return fail(ENOMEM);
    ah->ibv.context = pd->context;
    ah->ibv.pd = pd;
    ah->attr = *attr;
    atomic_fetch_add(&real_pd(pd)->users, 1);
    if (!hca_is_ethernet() && attr->dlid < ADDR_MCAST_LID && attr->grh.dgid.raw[0] != 0xff)
        addr_warn_if_foreign(attr, "address handle");
    return &ah->ibv;
}

EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
    atomic_fetch_sub(&real_pd(ah->pd)->users, 1);
    free(ah);
    return 0;
}

/* Of a datagram over Ethernet: an IPv6 header, or an IPv4 header in its last 20 bytes. */
static void source_gid(const struct ibv_grh *grh, union ibv_gid *gid)
{
    const uint8_t *ipv4 = (const uint8_t *)(grh + 1) - 20;

    *gid = grh->sgid;
    if (be32toh(grh->version_tclass_flow) >> 28 == 6 || ipv4[0] != 0x45)
        return;
    memset(gid, 0, sizeof(*gid));
    gid->raw[10] = gid->raw[11] = 0xff;
    memcpy(gid->raw + 12, ipv4 + 12, 4);
}

static bool is_ipv4(const union ibv_gid *gid)
{
    return !gid->global.subnet_prefix && gid->raw[10] == 0xff && gid->raw[11] == 0xff;
}

/* The entry of our table whose address is of the same family. */
static uint8_t sgid_index_for(const union ibv_gid *peer)
{
    union ibv_gid own;

    for (unsigned i = 0; hca_is_ethernet() && i < HCA_GIDS; i++)
        if (hca_engine->gid(i, &own) && is_ipv4(&own) == is_ipv4(peer))
            return i;
    return 0;
}

EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
                               struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
    uint32_t flow = be32toh(grh ? grh->version_tclass_flow : 0);

    memset(attr, 0, sizeof(*attr));
    attr->dlid = wc->slid;
    attr->sl = wc->sl;
    attr->src_path_bits = wc->dlid_path_bits;
    attr->port_num = port_num;
    if (!(wc->wc_flags & IBV_WC_GRH))
        return 0;
    attr->is_global = 1;
    source_gid(grh, &attr->grh.dgid);
    attr->grh.sgid_index = sgid_index_for(&attr->grh.dgid);
    attr->grh.hop_limit = 0xff;
    attr->grh.flow_label = flow & 0xfffff;
    attr->grh.traffic_class = flow >> 20 & 0xff;
    return 0;
}

EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
                                            struct ibv_grh *grh, uint8_t port_num)
{
    struct ibv_ah_attr attr;

    if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr))
        return NULL;
    return ibv_create_ah(pd, &attr);
}

/* ---- multicast ---- */

static struct mcast_entry *find_member(const union ibv_gid *gid, uint32_t lid, uint32_t qpn)
{
    uint32_t end = load_relaxed(&seg->mcast_high);

    for (uint32_t i = 0; i < end && i < MCAST_ENTRIES; i++) {
        struct mcast_entry *e = &seg->mcast[i];
        if (e->qpn == qpn && (!qpn || (e->lid == lid && !memcmp(e->gid, gid, sizeof(e->gid)))))
            return e;
    }
    if (qpn || end >= MCAST_ENTRIES)
        return NULL;
    store_release(&seg->mcast_high, end + 1);
    return &seg->mcast[end];
}

/* Members whose process died stay listed, but their QPs are no longer found. */
static void drop_departed(void)
{
    epoch_enter();
    for (uint32_t i = 0; i < load_relaxed(&seg->mcast_high) && i < MCAST_ENTRIES; i++)
        if (seg->mcast[i].qpn && !shared_qp_find(seg->mcast[i].qpn))
            seg->mcast[i].qpn = 0;
    epoch_exit();
}

EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    int err = 0;

    if (qp->qp_type != IBV_QPT_UD || gid->raw[0] != 0xff)
        return EINVAL;
    if (!hca_engine->multicast)
        return EOPNOTSUPP;
    shm_lock(&seg->mcast_lock);
    drop_departed();
    if (!find_member(gid, lid, qp->qp_num)) {
        struct mcast_entry *e = find_member(gid, lid, 0);
        if (e) {
            memcpy(e->gid, gid, sizeof(e->gid));
            e->lid = lid;
            e->qpn = qp->qp_num;
            atomic_fetch_add(&((struct hca_qp *)qp)->groups, 1);
        } else {
            err = ENOMEM;
        }
    }
    shm_unlock(&seg->mcast_lock);
    return err;
}

EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    shm_lock(&seg->mcast_lock);
    struct mcast_entry *e = find_member(gid, lid, qp->qp_num);
    if (e) {
        e->qpn = 0;
        atomic_fetch_sub(&((struct hca_qp *)qp)->groups, 1);
    }
    shm_unlock(&seg->mcast_lock);
    return e ? 0 : EINVAL;
}
