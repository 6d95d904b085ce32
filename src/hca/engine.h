/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HCA_ENGINE_H
#define HCA_ENGINE_H

/* What executes work requests. The objects in hca/ know an engine only by this table. */

#include "hca/mad.h"
#include "hca/objects.h"

/* Verbs that take time in a modelled fabric. Their cost depends on an amount: entries of a queue,
 * SGEs of a request, bytes of a region. */
enum hca_call {
    CALL_POST_SEND,
    CALL_POST_NEXT_SEND, /* a further WQE of the same call */
    CALL_POST_RECEIVE,
    CALL_CREATE_QP,
    CALL_DESTROY_QP,
    CALL_DESTROY_CONNECTED_QP,
    CALL_MODIFY_QP,
    CALL_PREPARE_QP, /* modify it: the next state on its way to RTS */
    CALL_CREATE_CQ,
    CALL_DESTROY_CQ,
    CALL_CREATE_SRQ,
    CALL_DESTROY_SRQ,
    CALL_REGISTER,
    CALL_DEREGISTER,
    CALL_ALLOC_PD,
    CALL_CREATE_AH,
    CALL_BIND_WINDOW,
    CALL_EVENT,
    CALL_KINDS,
};

struct hca_engine {
    const char *name;
    uintptr_t base_address; /* where the segment has to be mapped, 0: anywhere */
    bool multicast;         /* supports multicast groups */
    /* Executes a valid WQE now, or queues it. The caller holds the send queue's lock. */
    void (*send)(struct hca_qp *qp, struct send_wqe *wqe);
    /* Ends a call that has posted WQEs with send(). May be NULL. */
    void (*send_end)(struct hca_qp *qp);
    /* Executes a plain send of one SGE of at most CQE_INLINE bytes, on an RC QP in RTS with nothing
     * queued. False: nothing was done, and the caller uses send(). */
    bool (*send_fast)(struct hca_qp *qp, const struct ibv_sge *sge, unsigned flags);
    /* The same for an RDMA write of any length, which gives the work request. May be NULL. */
    bool (*write_fast)(struct hca_qp *qp, const struct ibv_send_wr *wr, unsigned flags);
    /* Retries WQEs that are queued. */
    void (*progress)(void);
    /* The QP is reset, in error or destroyed: discards queued WQEs, in error with flush
     * completions. */
    void (*sq_flush)(struct hca_qp *qp);
    /* The process has joined the fabric; no object exists yet. */
    int (*start)(void);
    /* The process leaves the fabric: nothing of the engine may run afterwards. */
    void (*stop)(void);
    /* Peers cannot reach our memory or descriptors themselves. */
    void (*start_copy_agent)(void);
    /* Called before a region's key becomes valid, and after its last use. May be NULL. */
    void (*attach_memory)(struct shared_mr *mr);
    void (*detach_memory)(struct shared_mr *mr);
    /* Peers have used regions of ours so much that they should map them. May be NULL. */
    void (*share_memory)(void);

    /* The program is about to wait for events. May be NULL. */
    void (*program_sleeps)(void);

    /* What has passed the port since the fabric exists. */
    void (*port_traffic)(uint16_t lid, struct traffic *sum);

    /* The rest is NULL in the live engine. */
    /* An engine with Ethernet ports has a table of GIDs. False: that entry is empty. */
    bool (*gid)(unsigned index, union ibv_gid *gid);
    /* The name of the fabric if the environment gives none. False: "default". */
    bool (*fabric)(char *name, size_t size);
    /* Sends a management datagram. False: it cannot be sent there. */
    bool (*send_mad)(const struct hca_mad *mad);
    /* Charges a call's duration to the calling thread. */
    void (*charge)(enum hca_call call, uint64_t amount);
    /* The same for a call that posts a list of sends: threads that post to one QP take turns. */
    void (*charge_sends)(struct hca_qp *qp, const struct ibv_send_wr *list);
    /* The same for receives, which are posted when it returns. */
    void (*charge_receives)(struct hca_qp *qp, const struct ibv_recv_wr *list);
    /* Called around every poll, which found `count` completions. False: the poll is over, and has
     * found nothing. */
    bool (*poll_begin)(struct hca_cq *cq);
    void (*poll_end)(int count);
    /* Blocks the calling thread until something of its process changes. False: nothing can
     * change. */
    bool (*sleep)(void);
    /* The QP has entered RTR or RTS. */
    void (*qp_modified)(struct hca_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to);
    /* The calling thread does nothing for this time. It holds no lock. */
    void (*pause)(uint64_t ns);
    uint32_t (*mtu)(void);           /* of the link, in bytes */
    uint64_t (*device_memory)(void); /* bytes available to ibv_alloc_dm() */
    /* This memory of ours is no longer registered. */
    void (*deregistered)(uint64_t address, uint64_t length);
};

extern const struct hca_engine *hca_engine;

static inline void hca_charge(enum hca_call call, uint64_t amount)
{
    if (unlikely(hca_engine->charge != NULL))
        hca_engine->charge(call, amount);
}

static inline bool hca_is_ethernet(void)
{
    return hca_engine->gid;
}

/* The largest MTU that the link of every port supports. */
static inline enum ibv_mtu hca_link_mtu(void)
{
    enum ibv_mtu mtu = IBV_MTU_4096;

    while (hca_engine->mtu && mtu > IBV_MTU_256 && 128u << mtu > hca_engine->mtu())
        mtu--;
    return mtu;
}

/* How many QPs have WQEs queued in the engine. Every poll reads it. */
extern atomic_uint hca_waiting;

#endif
