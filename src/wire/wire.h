/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_WIRE_H
#define WIRE_WIRE_H

/* The wire engine: RoCEv2 over UDP. A process has one socket for each of its interface's addresses,
 * and keeps the transport state of its QPs in its own memory, guarded by the lock of each QP's send
 * queue. Whichever thread polls receives; a service thread does so while none polls, and runs the
 * timers. */

#include "dma/deliver.h"
#include "hca/engine.h"
#include "transport/roce_datagram.h"
#include "transport/transport.h"
#include "util/netif.h"

#include <sys/uio.h>

extern const struct hca_engine wire_engine;

/* ---- ports: the interface, its GIDs and their sockets ---- */

struct wire_gid {
    uint8_t raw[16];
    union netif_address address;
    int fd;
    int near_fd; /* a port that other processes of the host know */
    atomic_bool gone; /* the interface has lost the address */
};

struct wire_port {
    struct netif netif;
    atomic_uint count; /* grows while the port is open: entries stay where they are */
    struct wire_gid gids[HCA_GIDS];
    int changes_fd;    /* tells of new and lost addresses */
    int forward_fd;    /* packets that other processes of the host received for us */
    bool segmentation; /* UDP_SEGMENT works */
};

extern struct wire_port wire_port;

/* Opens the sockets. Returns 0 or an errno value, with the reason logged. */
int wire_port_open(void);
void wire_port_close(void);
bool wire_port_gid(unsigned index, union ibv_gid *gid);
/* For the service thread: follows changes of the interface's addresses. */
void wire_port_follow(void);
uint32_t wire_port_mtu(void);
/* All processes on an interface share a fabric, which has its name. */
bool wire_port_fabric(char *name, size_t size);

/* The unconnected socket from which datagrams to `to` are sent. */
int wire_port_source(const struct wire_gid *from, const union netif_address *to);
/* Another socket, bound to the same address, or -1. */
int wire_port_twin(const struct wire_gid *from, const union netif_address *to);

/* The socket address of a GID, as seen from GID `from`. False: not of its family. */
bool wire_port_address(const struct wire_gid *from, const uint8_t gid[16],
                       union netif_address *address);

/* If the QP belongs to a process of this host, the address of that process. Inside an epoch. */
void wire_port_find_near(const uint8_t gid[16], uint32_t qpn, union netif_address *address);

/* ---- paths: sockets that are connected to a peer ---- */

#define WIRE_PATHS 4 /* each is one more socket to look into */

struct wire_path {
    const struct wire_gid *from;
    union netif_address to;
    int fd;
    bool may_hold_others;    /* packets from elsewhere, from before it was connected */
    unsigned short_ones;     /* datagrams in a row; these three are guarded by the receive lock */
    bool found_one;          /* when it was looked into last */
    struct spinlock lock;    /* innermost; guards the rest */
    atomic_bool known;       /* the identification is right */
    uint16_t identification; /* of the next datagram, over IPv4 */
    uint64_t tried_at;
    unsigned failures;
    uint16_t segment, last_segment; /* the socket's own, and that of the last datagram */
    unsigned repeats;
};

extern struct wire_path wire_paths[WIRE_PATHS];
extern atomic_uint wire_path_count; /* grows while the port is open */

/* The path to this address, or NULL: there are enough. */
struct wire_path *wire_path_find(const struct wire_gid *from, const union netif_address *to);
/* Reserves the path for one datagram. False: another thread uses it, or its identification is not
 * known; then the datagram leaves from the port's own socket. */
bool wire_path_take(struct wire_path *path);
void wire_path_release(struct wire_path *path, bool sent);
/* With the path reserved: whether its socket cuts so many bytes into segments of this length (0: not
 * at all) without being told. It learns the length that comes up again and again. */
bool wire_path_cuts(struct wire_path *path, size_t bytes, uint16_t segment);
/* Packets were lost, perhaps because their ICRC did not match the identification. */
void wire_path_doubt(struct wire_path *path);
void wire_path_close(void);

/* ---- sending: frames of one QP, in as few system calls as possible ---- */

#define WIRE_BATCH_FRAMES 64 /* the kernel's limit */
#define WIRE_BATCH_BYTES \
    65000 /* before it is cut: less than 64 KiB with the IP and UDP headers */

struct wire_batch {
    uint8_t *buffer; /* frames, one behind the other: the kernel takes one piece faster than many */
    size_t bytes, frame_bytes;
    unsigned frames;
    bool closed; /* its last frame is shorter than the others */
    const struct wire_gid *from;
    union netif_address to;
    struct wire_path *path;  /* reserved for these frames */
    uint16_t identification; /* of the first frame */
};

void wire_batch_begin(struct wire_batch *batch);
/* Begins a frame of `length` bytes or less. Returns space for it, or NULL, and the IPv4
 * identification that it will have. */
uint8_t *wire_batch_frame(struct wire_batch *batch, const struct wire_gid *from,
                          const union netif_address *to, struct wire_path *path, size_t length,
                          uint16_t *identification);
/* The frame has been written, so many bytes. */
void wire_batch_add(struct wire_batch *batch, size_t length);
void wire_batch_end(struct wire_batch *batch);

/* ---- receiving ---- */

/* A packet that has arrived, and how. */
struct wire_arrival {
    uint64_t time;
    const struct wire_gid *to;
    struct roce_flow flow;
    uint16_t identification; /* of the first packet of its datagram: a guess, until one is decoded */
    bool checked;            /* the ICRCs of its datagram */
    struct packet packet;
};

/* Receives and processes what waits in the sockets, `all` of them or those that are likely to have
 * something. Returns how many packets, or 0 if another thread is receiving. Responses are owed
 * until wire_receive_answer(). */
unsigned wire_receive(bool all);
/* Some thread is receiving. */
bool wire_receive_is_busy(void);
bool wire_receive_owes(void);
/* Another long datagram is likely to come at once, and one acknowledgement then serves both. For a
 * caller that receives again soon. */
bool wire_receive_expects_more(void);
/* Without `wait`, QPs that another thread uses still owe theirs afterwards. */
void wire_receive_answer(bool wait);
/* With the receive lock held: that QP may have something to send. */
void wire_receive_touch(uint32_t qpn);

/* Passes packets to the process that owns their QPs: `length` bytes, each packet but the last of
 * `segment`. */
#define WIRE_FORWARD_HEAD 64 /* bytes in front of them */
void wire_forward_send(unsigned proc, unsigned gid, const struct roce_flow *flow,
                       const uint8_t *bytes, size_t length, size_t segment);
int wire_forward_open(void);
/* Takes forwarded packets from the socket. Returns their length, or 0. The process that received
 * them has checked their ICRCs. */
size_t wire_forward_take(uint8_t *buffer, size_t size, unsigned *gid, struct roce_flow *flow,
                         const uint8_t **frames, size_t *segment);

/* ---- queue pairs ---- */

#define WIRE_READ_BYTES \
    (64u << 10) /* a longer read is asked for in parts, which bounds the answer */

#define WIRE_SLOTS 256 /* transport work requests that may be outstanding; a power of two */

/* A posted WQE. SGEs and inline data follow. */
struct wire_wqe {
    struct wire_wqe *next;
    struct send_wqe send;
    uint32_t length;
    enum ibv_wc_status bad; /* fails with this status when it is the oldest */
    bool unreadable;        /* its payload has gone: it fails with a protection error */
    union netif_address to; /* of a datagram */
    struct ibv_sge sge[];
};

/* A WQE, or a part of a long read, as a work request of the transport. */
struct wire_slot {
    struct transport_wqe transport;
    struct wire_wqe *wqe; /* NULL: it has failed already */
    uint32_t offset;
    bool last;
};

struct wire_peer;

struct wire_qp {
    struct transport_qp transport;
    struct transport_counters counters;
    struct responder_resource resources[RESPONDER_MAX_RESOURCES];
    struct hca_qp *hca;
    struct shared_qp *shared;
    struct wire_qp *next, **link;
    const struct wire_gid *from;
    uint8_t peer_gid[16]; /* of a connected QP, with its address */
    union netif_address to;
    struct wire_path *path; /* NULL: none */

    struct wire_slot slots[WIRE_SLOTS];
    uint32_t fetched, completed; /* slots: completed <= fetched */
    struct wire_wqe *next_wqe, **end;
    uint32_t next_offset;  /* in next_wqe: parts before it are in slots */
    struct wire_wqe *sent; /* UC or UD: its last packet was just pulled */
    uint64_t deadline;     /* of the transport or of a probe, for the service thread */
    uint64_t probe_ns;     /* how long to wait for an acknowledgement before the next probe */
    uint32_t probed_psn;   /* unacknowledged when probe_ns was set */
    uint64_t waits_since;  /* the last progress; 0: nothing is unacknowledged */
    uint64_t ack_gap_ns;

    struct wire_peer *peer; /* of a reliable QP */
    int64_t in_flight;      /* bytes; guarded by the peer's lock, like the next two */
    bool waits;
    struct wire_qp *waiting_next;
    uint64_t losses;      /* that the peer knows of */
    uint32_t full_window; /* packets, if the peer has room */
    uint8_t full_reads;

    const struct wire_arrival *arrival; /* while the transport processes it */
    struct deliver_target target;       /* of the message that is being received */
    bool refused;                       /* the last response was a NAK */
};

/* ---- peers: hosts, each with one receive buffer for all QPs ---- */

/* The peer with this GID, or NULL without memory: then there is no limit. */
struct wire_peer *wire_peer_find(const uint8_t gid[16]);
void wire_peer_forget(void);
/* Bytes that the QP may have on their way, including those that are. */
int64_t wire_peer_room(const struct wire_qp *qp);
bool wire_peer_has_waiting(const struct wire_peer *peer);
/* The QP has so many bytes on their way now, and may have learned of a loss. */
void wire_peer_note(struct wire_qp *qp, int64_t in_flight, bool lost, uint64_t now);
/* The QP wants to send when there is room. */
void wire_peer_wait(struct wire_qp *qp);
void wire_peer_leave(struct wire_qp *qp);
/* With the receive lock held, without that of a QP: the first QPs that wait may send. */
void wire_peer_wake(struct wire_peer *peer);

/* Of the engine's table. */
void wire_qp_post(struct hca_qp *qp, struct send_wqe *wqe);
void wire_qp_modified(struct hca_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to);
void wire_qp_flush(struct hca_qp *qp);

/* Passes packets to their QP, inside an epoch, with its send queue locked in between. */
void wire_qp_receive_begin(struct hca_qp *qp);
void wire_qp_receive(struct hca_qp *qp, const struct wire_arrival *arrival);
void wire_qp_receive_end(struct hca_qp *qp, uint64_t now);
/* Sends what the QP has to send, inside an epoch. False: another thread uses the QP, and this one
 * does not wait. */
bool wire_qp_kick(struct hca_qp *qp, bool wait);
/* In a forked child: the QPs, and what other threads held, are the parent's. */
void wire_qp_forget(void);
void wire_receive_forget(void);
void wire_batch_forget(void);
/* Runs the timers that are due. Returns when the next one is. */
uint64_t wire_qp_timers(uint64_t now);

extern const struct transport_ops wire_transport_ops;
/* Puts the next WQE, or the next part of it, into a slot. False: there is none. */
bool wire_qp_fetch(struct wire_qp *qp);
/* Leaves out the rest of next_wqe. */
void wire_qp_skip(struct wire_qp *qp);
void wire_qp_complete(struct wire_qp *qp, struct wire_wqe *wqe, enum ibv_wc_status status);

/* ---- memory ---- */

/* Copy between `bytes` and registered memory. `key` is the key by which it was found. */
bool wire_memory_write(const struct mem_ref *ref, uint32_t key, const void *bytes, size_t length);
bool wire_memory_read(const struct mem_ref *ref, uint32_t key, void *bytes, size_t length);
/* The address of memory of this process, or NULL. Valid until the end of the epoch. Since the
 * program may unmap it without deregistration, it is accessed in fault_survive(). */
uint8_t *wire_memory_own(const struct mem_ref *ref, uint32_t key);
/* The same for bytes of a WQE's gather list, if they are in one piece. */
const uint8_t *wire_memory_gathered(const struct wire_qp *qp, const struct wire_wqe *wqe,
                                    uint64_t offset, size_t length);
/* Bytes of a WQE's gather list, or into its scatter list. */
bool wire_memory_gather(const struct wire_qp *qp, const struct wire_wqe *wqe, uint64_t offset,
                        void *bytes, size_t length);
bool wire_memory_scatter(const struct wire_qp *qp, const struct wire_wqe *wqe, uint64_t offset,
                         const void *bytes, size_t length);
/* The same for response data: `region` is what check_remote() returned. */
const uint8_t *wire_memory_responded(const struct wire_qp *qp,
                                     const struct packet_payload *payload);
bool wire_memory_response(const struct wire_qp *qp, const struct packet_payload *payload,
                          void *bytes);

/* ---- the service thread ---- */

int wire_service_start(void);
void wire_service_stop(void);
/* It waits for the sockets that there were when it began to wait. */
void wire_service_wake(void);
/* A timer must run at that time. */
void wire_service_timer(uint64_t deadline);
/* The thread looks several times a millisecond whether something is left to do. */
bool wire_service_looks(void);
/* The program polls, so that the service thread need not. */
extern atomic_uint wire_service_polls;

/* ---- injected faults ---- */

int wire_inject_read(void);
/* Calls `deliver` for each frame that arrives in place of this one, the `index`th of a datagram. */
void wire_inject(struct wire_arrival *arrival, const uint8_t *bytes, size_t length, uint16_t index,
                 void (*deliver)(struct wire_arrival *arrival, const uint8_t *bytes, size_t length,
                                 uint16_t index));
extern bool wire_injects;

#endif
