/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HCA_OBJECTS_H
#define HCA_OBJECTS_H

/* The private part of each object, to which the program has a pointer. The ibv_* struct comes
 * first, so that pointers convert. */

#include "hca/layout.h"
#include "util/spinlock.h"

#include <infiniband/verbs.h>

#define HCA_MAX_SGE       64
#define HCA_MIN_INLINE    64 /* granted to every QP, as adapters do: programs rely on it */
#define HCA_MAX_INLINE    1024
#define HCA_MAX_WR        32768
#define HCA_MAX_CQE       (1 << 20)
#define HCA_MAX_DM        (1 << 20)
#define HCA_MAX_RD_ATOMIC 128
#define HCA_GRH_BYTES     40
#define HCA_GIDS          8
#define HCA_COMP_VECTORS  4
#define HCA_PKEY          0xffff

struct hca_device {
    struct ibv_device ibv;
    char zeros[256]; /* providers look for their own marks behind ibv_device */
    unsigned index;
};

struct hca_context {
    struct hca_device *device;
    int owner; /* process slot that opened it */
    unsigned node;
    uint32_t async_id;
    struct open_device *listed;
    struct hca_context *next, **link;
    struct verbs_context verbs; /* last: ibv_context is its last field */
};

struct hca_pd {
    struct ibv_pd ibv;
    uint32_t id;
    atomic_int users;
    struct hca_pd *parent; /* of a parent domain: the PD that it extends */
    struct ibv_td *td;     /* of a parent domain, or NULL */
};

struct hca_td {
    struct ibv_td ibv;
};

struct hca_mr {
    struct ibv_mr ibv;
    struct shared_mr *own;
    struct hca_dm *dm;
    atomic_int windows;
};

struct hca_mw {
    struct ibv_mw ibv;
    struct shared_mr *own;
    struct hca_mr *bound_to;
};

struct hca_dm {
    struct ibv_dm ibv;
    uint8_t *memory;
    uint64_t length;
    int owner; /* process slot */
    atomic_int users;
};

struct hca_ah {
    struct ibv_ah ibv;
    struct ibv_ah_attr attr;
};

struct hca_xrcd {
    struct ibv_xrcd ibv;
    uint64_t id;
    atomic_int users;
};

struct hca_channel {
    struct ibv_comp_channel ibv;
    uint32_t id;
    struct spinlock lock;
    struct hca_cq *cqs;
    struct hca_cq *next_to_look_at;
    struct hca_channel *next, **link;
};

/* A private copy, which no peer can change, of what a short message needs. */
struct posted_receive {
    uint64_t wr_id;
    uint64_t addr; /* of the first SGE */
    uint32_t length;
    uint32_t lkey;
    uint32_t num_sge; /* 0 as well if hca_observer has to see the completion of short messages */
    atomic_bool out; /* posted and not yet completed */
};

/* A receive queue, of a QP or an SRQ. Its owner uses these pointers, not the offsets in the
 * segment. */
struct hca_rq {
    /* one cache line that each message needs */
    struct shared_rq *shared;
    char *wqes;
    struct posted_receive *receives; /* by slot */
    uint32_t *free_slots;            /* NULL: receive i is in slot i modulo the depth */
    uint32_t depth, stride;
    uint32_t max_wr, max_sge;
    uint32_t free_count;
    struct spinlock lock;
    uint32_t *order; /* these two only with many senders */
    _Atomic uint32_t *takers;
    uint64_t size;  /* of the block in the segment */
    uint32_t min_posted_len; /* the copy that no peer can change */
    bool watched;  /* by hca_observer */
    void *checked; /* what the checks keep for it, guarded by its lock */
};

struct send_completion {
    uint64_t wr_id;
    struct hca_qp *qp;
    uint32_t sq_index;
    uint32_t byte_len;
    uint8_t status;
    uint8_t opcode;
};

struct hca_cq {
    union {
        struct ibv_cq ibv;
        struct ibv_cq_ex ex;
    };
    struct shared_cq *shared;
    int owner; /* process slot */
    struct spinlock lock;
    /* the consumer's side of the ring that peers write */
    struct cq_ring *ring;
    uint32_t ring_size;
    /* Polls read these two without the lock, as a hint. */
    _Atomic uint64_t head;
    struct cqe *_Atomic next_entry;
    uint64_t limit_published;
    /* completions of our own sends */
    struct send_completion *sends;
    uint32_t sends_capacity; /* power of two */
    _Atomic uint32_t sends_head, sends_tail;
    _Atomic uint32_t event_in_hand; /* 1: the program got an event and has not polled since */
    /* Incremented without the lock; a lost increment does no harm. */
    _Atomic uint32_t empty_polls; /* in a row */
    _Atomic uint32_t idle_polls;  /* ever */
    _Atomic uint32_t stuck_polls;
    uint32_t events_taken; /* of shared->fired */
    uint32_t events_given; /* to the program, which acknowledges them */
    uint32_t async_taken;
    atomic_int users;
    atomic_bool needs_flush;
    struct hca_cq *next_on_channel, **link_on_channel;
    struct hca_cq *next, **link;
    bool single_threaded; /* as the program has promised */
    /* the extended interface's current entry */
    struct ibv_wc current;
    uint64_t current_timestamp;
};

struct hca_srq {
    struct ibv_srq ibv;
    struct hca_rq rq;
    struct shared_srq *shared;
    int owner;
    uint32_t srqn;
    bool is_xrc;
    struct hca_pd *pd;
    struct hca_cq *cq;
    struct hca_xrcd *xrcd;
    atomic_int users;
    uint32_t async_taken;
    struct hca_srq *next, **link;
};

/* A send WQE. When queued, its inline data, if any, follows the SGEs. */
struct send_wqe {
    struct send_wqe *next;
    uint64_t wr_id;
    uint64_t remote_addr;
    uint64_t compare_add;
    uint64_t swap;
    struct ibv_sge *sge;
    uint32_t num_sge;
    uint32_t rkey;
    uint32_t imm;
    uint32_t remote_qpn;
    uint32_t remote_qkey;
    uint32_t srqn;
    uint32_t sq_index;
    uint16_t flags;
    uint8_t opcode;
    uint8_t sl;
    uint16_t dlid;
    uint8_t has_grh;
    uint8_t sgid_index;
    union ibv_gid dgid;
    struct ibv_mw *mw;
    struct ibv_mw_bind_info bind;
    const void *caller; /* where the program called the verb that posted it */
};

/* A completion queue of a peer, and the ring with its tickets below `limit`. */
struct cq_route {
    struct shared_cq *cq;
    struct cq_ring *ring;
    uint64_t limit;
    uint32_t mask;
};

/* The cached destination of short messages of a connected QP, and the values that must be unchanged
 * for it to be valid. */
struct send_route {
    struct shared_qp *peer;
    struct shared_rq *rq;
    struct cq_route cq;
    uint64_t chunk;
    uint32_t dest_qpn;
    uint32_t slot_mask;
};

struct mapping;

/* The same for short RDMA writes: the memory behind a key that this process has mapped. */
struct write_route {
    struct shared_qp *peer;
    const struct shared_mr *mr;
    const struct mapping *mapping;
    uint64_t qp_chunk, mr_chunk;
    uint64_t serial; /* of the mapping */
    uint32_t dest_qpn, rkey;
    uint64_t first, length; /* remote addresses */
    char *memory;           /* of the first one */
};

enum stall_reason { NOT_STALLED, STALL_RNR, STALL_NO_RESPONSE, STALL_NO_ROOM };

struct wr_builder;

/* The fields of every send come first and fill two cache lines, which matters with many QPs. */
struct hca_qp {
    union {
        struct ibv_qp ibv;
        struct ibv_qp_ex ex;
    };
    struct shared_qp *shared cache_aligned;
    struct hca_pd *pd;
    struct send_wqe *pending; /* queued sends */
    struct spinlock sq_lock;
    uint32_t sq_posted;
    _Atomic uint32_t sq_freed;
    uint16_t every_send_flags;
    uint8_t sl;
    atomic_bool alone; /* in a thread domain, and without pending sends: one thread at most is here */
    struct ibv_qp_cap cap;
    /* Index + 1 of a send that the peer can see but whose completion is not in our CQ yet; else 0.
     * Written with the send queue's lock held. */
    _Atomic uint32_t publishing;
    struct send_route route cache_aligned;
    struct write_route write_route cache_aligned;
    uint64_t last_write; /* remote address of the last RDMA write */
    struct hca_rq rq cache_aligned; /* shared == NULL with an SRQ or without receives */
    struct send_wqe **pending_end;
    enum stall_reason stall;
    unsigned retries_left;
    uint64_t retry_at;
    uint16_t dest_lid;  /* of the peer; 0: no port of this fabric */
    uint32_t peer_word; /* proc_word of the peer, when last seen */
    int owner;
    struct hca_qp *next_stalled;
    struct hca_xrcd *xrcd;
    struct ibv_qp_attr attr; /* as last set, for queries */
    struct ibv_qp_init_attr init;
    bool flushed;
    bool was_ready;        /* has been in RTS */
    bool in_thread_domain; /* one thread at a time posts */
    _Atomic uint32_t own_state, own_dest_qpn; /* as published, where no other process can write */
    uint8_t odd_looks; /* of qp_look_for_damage(), in a row, with the same counts */
    uint64_t odd_counts;
    uint32_t async_taken;
    atomic_int opened; /* further handles of an XRC target */
    atomic_int groups; /* multicast groups it is attached to */
    bool mcast_loopback; /* receives its own multicast messages */
    struct wr_builder *builder;
    void *engine_qp; /* what the engine keeps for it; guarded by the send queue's lock */
    void *checked;   /* what the checks keep for it; guarded by the same lock */
    uint64_t connection; /* the connection manager's, which can lose it; 0: none */
    void (*lose_connection)(uint64_t connection);
    struct hca_qp *next, **link;
};

static inline struct hca_context *to_context(struct ibv_context *c)
{
    return container_of(c, struct hca_context, verbs.context);
}

#endif
