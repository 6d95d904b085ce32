/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HCA_LAYOUT_H
#define HCA_LAYOUT_H

/*
 * The layout of the segment that the processes of one fabric share.
 *
 * Every reference is an offset from the start of the segment or an index into a directory, never a
 * pointer, and is checked before use (segment.h): a peer's bug must not become our crash.
 *
 * Memory in the segment belongs to one process. Peers access it only inside an epoch (epoch.h) and
 * only after finding it through a directory; it is freed after a grace period. So the death of a
 * process needs no undo log: all that it owned is freed at once.
 */

#include "util/fabric_limits.h"
#include "util/util.h"

#define SEGMENT_MAGIC   0x616e65627265561aull
#define SEGMENT_VERSION 6

#define MAX_PROCS        FABRIC_PROCESSES_MAX
#define NEAR_PORTS       8 /* one for each GID */
#define MAX_THREAD_LINES 32

#define UNIT_SHIFT 16
#define UNIT_SIZE  (1ul << UNIT_SHIFT)
#define MAX_UNITS  (1u << 19) /* 32 GiB */

#define QP_CHUNK_SHIFT 6
#define QP_INDEX_BITS  18
#define QP_CHUNKS      (1u << (QP_INDEX_BITS - QP_CHUNK_SHIFT))
#define MR_CHUNK_SHIFT 10
#define MR_INDEX_BITS  24
#define MR_CHUNKS      (1u << (MR_INDEX_BITS - MR_CHUNK_SHIFT))
#define SRQ_CHUNK_SHIFT 6
#define SRQ_INDEX_BITS  16
#define SRQ_CHUNKS      (1u << (SRQ_INDEX_BITS - SRQ_CHUNK_SHIFT))

#define ATOMIC_LOCKS  256
#define MAX_FABRIC_PORTS (1u << 13) /* nodes, times devices, times ports */
#define MCAST_ENTRIES 4096

/* 0: free, else the holder (shm_lock.c); taken over when the holder is dead. */
struct shm_lock {
    _Atomic uint32_t holder;
};

/* Odd while the thread is inside an epoch. */
struct thread_line {
    _Atomic uint32_t epoch;
    _Atomic uint32_t used;
} cache_aligned;

/* Pending asynchronous events, and the descriptor that wakes the owner. */
struct event_box {
    _Atomic uint32_t bits; /* 1 << enum ibv_event_type */
    int32_t fd;
    uint32_t id;
};

/* A device that a process has open: where its port events go. */
#define MAX_OPEN_DEVICES 16
#define MAX_PORTS        4
struct open_device {
    _Atomic uint32_t used;
    uint32_t device;
    struct event_box events[MAX_PORTS];
};

enum proc_state {
    PROC_FREE,
    PROC_ALIVE,
    PROC_LEAVING, /* unfindable, but its threads may still run */
    PROC_EXEC,    /* inside exec: alive again if that fails */
    PROC_DEAD,
};

/* A request to the owner of memory to copy for a peer that has no access. */
struct copy_request {
    _Atomic uint32_t state; /* number of the request << COPY_STATE_BITS | enum copy_state */
    uint32_t to_owner;
    uint32_t requester; /* proc_word: the staging memory is freed when it dies */
    uint32_t reserved;
    uint64_t owner_addr;
    uint64_t staging; /* offset in the segment */
    uint64_t length;
};

/* The owner changes a request from posted to busy before it reads it. Only the owner ends a busy
 * request. */
enum copy_state { COPY_IDLE, COPY_POSTED, COPY_BUSY, COPY_DONE, COPY_FAULT };
#define COPY_STATE_BITS 3

/* Whether the threads of dma/agent.h run, and which peers must let them copy. */
enum agent_use { AGENT_OFF, AGENT_FOR_ALL, AGENT_FOR_SOME };

/* The UDP port of a process for others of its host, at one of the wire's GIDs. */
struct near_port {
    uint8_t gid[16];
    _Atomic uint32_t port; /* 0: none */
};

struct proc_slot {
    _Atomic uint32_t state;
    _Atomic uint32_t generation;
    int32_t pid;
    uint32_t node;
    uint64_t start_time;
    uint64_t pid_namespace, user_namespace; /* inodes; `pid` has a meaning in the first only */
    uint32_t locked;       /* proc_lock.h tells whether it runs */
    uint32_t wake_by_name; /* its descriptors are raised through wake_file.h */
    uint32_t wake_files;   /* the highest id of those files */
    /* Incremented by peers that changed an object of ours: a QP moved to error, an async event. */
    _Atomic uint32_t attention cache_aligned;
    /* The futex of the service thread, and whether the copy agent is needed. */
    _Atomic uint32_t doorbell;
    _Atomic uint32_t agent_wanted;
    _Atomic uint32_t agent_running; /* enum agent_use */
    _Atomic uint32_t swaps; /* odd during an exchange in which accesses by the kernel fail */
    _Atomic uint32_t maps_memory; /* it maps memory of peers */
    _Atomic uint32_t share_asked; /* a region of its has been copied enough: SHARE_PENDING */
    struct near_port near[NEAR_PORTS];
    struct shm_lock copy_lock;
    struct copy_request copy;
    struct open_device open[MAX_OPEN_DEVICES];
    struct thread_line threads[MAX_THREAD_LINES];
} cache_aligned;

/* What has passed a port. */
struct traffic {
    _Atomic uint64_t xmit_bytes, xmit_packets, rcv_bytes, rcv_packets;
};

struct mcast_entry {
    uint8_t gid[16];
    uint32_t lid;
    uint32_t qpn; /* 0: free */
};

/* Each directory maps index >> chunk shift to the offset of the chunk. */
struct segment {
    uint64_t magic;
    uint32_t version;
    uint32_t size_check; /* sizeof(struct segment): detects builds with another layout */
    _Atomic uint32_t ready;
    uint32_t nodes, devices, ports;
    /* Determines the first LID, QPN, key etc. of this fabric. Fabrics differ, so that numbers from
     * a peer on another fabric are invalid here. */
    uint64_t seed;
    uint16_t first_lid;
    uint16_t guid_part;
    _Atomic uint32_t strong_fences; /* a process has no membarrier(2): every epoch needs a fence */
    _Atomic uint32_t reap_count;

    struct shm_lock arena_lock cache_aligned;
    uint32_t units_used; /* high water, in units */
    struct shm_lock proc_lock;
    struct shm_lock mcast_lock;
    _Atomic uint32_t mcast_high;
    _Atomic uint32_t proc_high;
    _Atomic uint64_t next_xrcd;
    _Atomic uint32_t qp_generation; /* delays the reuse of QP numbers */
    _Atomic uint32_t ports_down; /* count of the bits in port_down, which is indexed by LID */
    _Atomic uint32_t port_down[MAX_FABRIC_PORTS / 32];
    _Atomic uint64_t sim_root; /* of a modelled fabric */
    struct shm_lock sim_lock;
    _Atomic uint64_t next_share;
    _Atomic uint32_t share_drops; /* incremented when mapped regions become invalid */
    _Atomic uint32_t connected_sends; /* 1: a connected queue pair has sent something */
    _Atomic uint32_t idle_told;       /* 1: a process has warned that none has */
    _Atomic uint64_t cm_root; /* tables of the connection manager, created on first use */
    struct shm_lock atomic_locks[ATOMIC_LOCKS];

    _Atomic uint64_t qp_dir[QP_CHUNKS];
    _Atomic uint64_t srq_dir[SRQ_CHUNKS];
    _Atomic uint64_t mr_dir[MR_CHUNKS];
    struct mcast_entry mcast[MCAST_ENTRIES];
    struct traffic port_traffic[MAX_FABRIC_PORTS]; /* of QPs that have gone, by LID */
    _Atomic uint16_t unit_owner[MAX_UNITS]; /* process slot + 1, 0: free */
    /* Last: memory is reserved for those up to proc_high only, in groups (segment_reserve_procs()). */
    struct proc_slot procs[MAX_PROCS] cache_aligned;
};

/* ---- registered memory ---- */

/* Kinds up to MR_USER have local keys; from MR_USER on, `addr` is a virtual address of the
 * owner. */
enum mr_kind { MR_NONE, MR_DEVICE, MR_NULL, MR_USER, MW_TYPE_1, MW_TYPE_2 };

/* A null region reads as zeros and discards writes. `addr` is followed by MR_NULL_SPAN zeros, the
 * longest message, and then by as many bytes to write to. */
#define MR_NULL_SPAN (1ull << 31)

struct shared_mr {
    _Atomic uint32_t key; /* 0: invalid */
    uint32_t access;
    uint64_t iova;
    uint64_t addr; /* virtual address in the owner, or segment offset (MR_DEVICE) */
    uint64_t length;
    uint32_t pd;
    uint16_t proc;
    uint8_t kind;
    uint8_t next_tag;
    uint32_t index;
    union {
        uint32_t bound_qpn; /* MW_TYPE_2 */
        uint32_t share_at;  /* MR_USER: offset of its share_map, in cache lines */
    };
    _Atomic uint32_t touched; /* a peer has used it: deregistration needs a grace period */
    _Atomic uint32_t unmapped; /* in the owner's copy: the program has unmapped a part of it */
    _Atomic uint64_t share;   /* serial number of its share_map, or pending; 0: peers copy it */
} cache_aligned;
_Static_assert(sizeof(struct shared_mr) == CACHE_LINE, "a key costs one cache line");

/* `share` of a region that peers may map once they have used it enough: each copy counts its
 * nanoseconds down, and whoever reaches 0 asks the owner. */
#define SHARE_PENDING  (1ull << 63)
#define SHARE_EXAMINED (1ull << 62) /* mapping it needs an exchange, which costs more */
#define SHARE_LEFT     (SHARE_EXAMINED - 1)

/* The pieces of a region's memory in files of its owner, or the one piece in a System V segment.
 * Written by the owner. */
#define SHARE_PIECES 8
struct share_piece {
    uint64_t inode; /* of a System V segment, its id */
    uint64_t offset;
    uint64_t length;
    int32_t fd;             /* -1: a System V segment */
    uint32_t ipc_namespace; /* in which the id has a meaning */
};
struct share_map {
    uint64_t serial;
    uint64_t start, length; /* whole pages in the owner */
    uint32_t count;
    _Atomic uint32_t mapped; /* by some peer */
    struct share_piece pieces[SHARE_PIECES];
} cache_aligned;

/* ---- receive queues, of a QP or an SRQ ---- */

struct recv_wqe {
    uint32_t num_sge;
    uint32_t reach; /* leading bytes that its keys covered when it was posted */
    struct {
        uint64_t addr;
        uint32_t length;
        uint32_t lkey;
    } sge[];
};

struct shared_rq {
    uint32_t depth; /* a power of two */
    uint32_t max_sge;
    uint64_t wqes; /* offsets */
    /* For a queue with many senders, whose receives complete out of order; else 0. */
    uint64_t order; /* ring of twice the depth: receive number -> slot, uint32_t */
    uint64_t taker; /* slot -> process that took it and has not completed it, uint32_t */
    /* written by the owner */
    _Atomic uint32_t posted cache_aligned;
    /* written by senders; many senders lock, a connected QP has only one */
    struct shm_lock lock cache_aligned;
    _Atomic uint32_t head;
    uint32_t posted_seen;
    _Atomic uint32_t limit;
    /* The shortest receive ever posted here; only the owner lowers it. A sender of a message up to
     * this length need not read the receive's WQE, whose cache line is a miss for both. */
    _Atomic uint32_t min_posted_len;
    uint32_t claimed; /* by incomplete messages, in a modelled fabric */
};

/* ---- completion queues ---- */

#define CQE_INLINE  80
#define CQE_DGID_AT 64 /* in data, of a datagram with GRH */

enum cqe_flags {
    CQE_SOLICITED = 1,
    CQE_IMM = 2,
    CQE_INV = 4,
    CQE_GRH = 8,
    CQE_IN_BOUNCE = 16, /* payload in a bounce block: offset of the chunk, index of the block */
    CQE_IN_LINE = 32,   /* payload in data */
    CQE_HOLE = 64,      /* its producer died, or its QP was reset: skip */
    CQE_ORPHAN = 128,   /* its QP was reset, but its receive goes back to the SRQ */
    CQE_GRH_PLACED = 256, /* the header of a datagram is in the receive already */
};

/* Published by storing `mark` last: sequence << 32 | status << 24 | opcode << 16 | flags. */
struct cqe {
    _Atomic uint64_t mark;
    uint32_t qpn;
    uint32_t slot;
    uint32_t length;
    uint32_t imm;
    uint32_t src_qp;
    uint32_t srqn; /* 0: the QP's own receive queue */
    uint64_t timestamp;
    uint16_t slid;
    uint8_t sl;
    uint8_t reserved[5];
    uint8_t data[CQE_INLINE];
} cache_aligned;

/* A ring holds tickets below `limit`; LIMIT_FROZEN set means that later ones go to `next`. */
#define LIMIT_FROZEN (1ull << 63)
struct cq_ring {
    uint32_t size; /* power of two */
    _Atomic uint64_t next;
    _Atomic uint64_t limit cache_aligned;
    struct cqe entries[] cache_aligned;
};

enum cq_armed { CQ_UNARMED, CQ_ARMED_SOLICITED, CQ_ARMED_ANY };

struct shared_cq {
    uint16_t proc;
    uint8_t has_channel;
    uint8_t wants_timestamps;
    _Atomic uint32_t capacity;
    _Atomic uint32_t overrun;
    int32_t channel_fd;
    uint32_t channel_id;
    _Atomic uint64_t ring;
    struct shm_lock grow_lock;
    _Atomic uint64_t tail cache_aligned; /* next ticket, taken by producers */
    _Atomic uint64_t head_seen;          /* the producers' copy of head; may be stale */
    _Atomic uint64_t head cache_aligned; /* consumed, published occasionally */
    _Atomic uint32_t armed cache_aligned;
    _Atomic uint32_t fired;
    struct event_box events;
};

/* ---- queue pairs and shared receive queues ---- */

/* The last request of its peer that a QP has refused. */
struct refusal {
    uint64_t addr, length;
    uint32_t rkey;
    uint32_t access; /* 0: none was refused */
    uint32_t not_enabled; /* by the QP's access flags; otherwise by the key or the address */
};

struct shared_qp {
    _Atomic uint32_t qpn; /* 0: not in use; index | generation << QP_INDEX_BITS */
    _Atomic uint32_t state;
    uint16_t proc;
    uint8_t type;
    uint8_t port;
    /* Atomic: the owner may change these while peers read them. */
    _Atomic uint16_t lid;
    uint32_t pd;
    _Atomic uint32_t dest_qpn;
    _Atomic uint32_t access;
    _Atomic uint32_t qkey;
    uint64_t rq; /* offset of its own receive queue, 0 with an SRQ */
    uint64_t recv_cq;
    uint32_t srqn;
    _Atomic uint8_t min_rnr_timer;
    uint8_t reserved[3];
    uint64_t xrcd;
    _Atomic uint32_t comm_est cache_aligned; /* a first message has arrived */
    struct event_box events;
    struct refusal refusal; /* for messages only */
    /* Of the QP's own requests, counted by its owner; of its peers' requests, counted by them. */
    struct traffic requests cache_aligned;
    struct traffic responses cache_aligned;
} cache_aligned;

struct shared_srq {
    _Atomic uint32_t srqn; /* 0: not in use */
    uint16_t proc;
    uint8_t is_xrc;
    uint8_t reserved;
    uint32_t pd;
    uint64_t rq;
    uint64_t xrcd;
    uint64_t cq; /* XRC */
    struct event_box events;
} cache_aligned;

/* ---- bounce blocks: payloads too large for a completion entry, too small for a system call
 * ---- */

#define BOUNCE_BYTES  8192
#define BOUNCE_BLOCKS 7

struct bounce_block {
    _Atomic uint32_t busy;
    uint8_t data[BOUNCE_BYTES] cache_aligned;
};

/* Belongs to the receiver, so that a message outlives its sender; used by one sender. */
struct bounce_chunk {
    uint32_t sender; /* proc_word */
    struct bounce_block blocks[BOUNCE_BLOCKS] cache_aligned;
};

#endif
