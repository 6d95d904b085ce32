#ifndef HCA_ENGINE_H
#define HCA_ENGINE_H

/* What carries out work requests. The objects know it by this table only. */

#include "hca/objects.h"

/* Calls of the verbs API that take time in a modelled fabric. The amount is what the cost depends on:
 * entries of a queue, segments of a request, bytes of a region. */
enum hca_call {
    CALL_POST_SEND,
    CALL_POST_RECEIVE,
    CALL_CREATE_QP,
    CALL_DESTROY_QP,
    CALL_DESTROY_CONNECTED_QP,
    CALL_MODIFY_QP,
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
    bool multicast;         /* delivers to groups */
    /* Carries out a request now, or keeps it: the queue's lock is held, the request is valid. */
    void (*send)(struct hca_qp *qp, struct send_wqe *wqe);
    /* The same for a plain send of one piece of at most CQE_INLINE bytes on an RC QP in RTS with
     * nothing waiting, if that is easily done; false: nothing has happened. */
    bool (*send_fast)(struct hca_qp *qp, const struct ibv_sge *sge, unsigned flags);
    /* Tries again what had to wait. */
    void (*progress)(void);
    /* The QP leaves the states in which it sends: forget what it had waiting. */
    void (*drop)(struct hca_qp *qp);
    /* We joined the fabric, before the first object. */
    int (*start)(void);
    /* We leave it: nothing of the engine may run from here on. */
    void (*stop)(void);
    /* Others cannot reach our memory or descriptors themselves. */
    void (*start_copy_agent)(void);
    /* Memory of ours gets a key, but has none yet; or had one, and nobody uses it any more. */
    void (*attach_memory)(struct shared_mr *mr);
    void (*detach_memory)(struct shared_mr *mr);

    /* Of a modelled fabric; the live engine has none of these. */
    /* The call takes its time, and is made when that is over. */
    void (*charge)(enum hca_call call, uint64_t amount);
    /* Around every poll; 'count' completions were found. */
    void (*poll_begin)(void);
    void (*poll_end)(int count);
    /* This thread sleeps in the kernel until something of its process changes; false: nothing can
     * happen now. */
    bool (*sleep)(void);
    /* The QP has entered RTR or RTS. */
    void (*entered)(struct hca_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to);
    uint32_t (*mtu)(void); /* of the link, bytes */
    uint64_t (*device_memory)(void); /* bytes that ibv_alloc_dm() has */
    /* This memory of ours is no longer registered. */
    void (*deregistered)(uint64_t address, uint64_t length);
};

extern const struct hca_engine *hca_engine;

static inline void hca_charge(enum hca_call call, uint64_t amount)
{
    if (unlikely(hca_engine->charge != NULL))
        hca_engine->charge(call, amount);
}

/* Of every port: the largest that the link carries. */
static inline enum ibv_mtu hca_link_mtu(void)
{
    enum ibv_mtu mtu = IBV_MTU_4096;

    while (hca_engine->mtu && mtu > IBV_MTU_256 && 128u << mtu > hca_engine->mtu())
        mtu--;
    return mtu;
}

/* Set by the engine while something waits; read by every poll. */
extern atomic_uint hca_waiting;

#endif
