/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CM_CM_H
#define CM_CM_H

/*
 * The connection manager inside one process: ids, event channels, queued events.
 *
 * cm_lock() takes the process's own mutex, then the fabric's lock (shared.h), and empties the
 * mailbox: its holder has handled every message sent so far. Make verbs calls without it.
 */

#include "cm/exported.h"
#include "cm/shared.h"
#include "hca/engine.h"
#include "util/util.h"

#include <errno.h>
#include <pthread.h>

enum cm_state {
    CM_IDLE,
    CM_BOUND,
    CM_ADDR_RESOLVED,
    CM_ROUTE_RESOLVED,
    CM_LISTENING,
    CM_REQ_SENT,
    CM_REQ_RCVD,
    CM_REP_SENT,
    CM_REP_RCVD,
    CM_CONNECTED,
    CM_DREQ_SENT,
    CM_DISCONNECTED, /* or rejected, or unreachable */
    CM_INHERITED,    /* inherited through fork: belongs to the parent */
};

/* Events added in rdma-core 59. */
#define CM_EVENT(n)                ((enum rdma_cm_event_type)(RDMA_CM_EVENT_TIMEWAIT_EXIT + (n)))
#define CM_EVENT_ADDRINFO_RESOLVED CM_EVENT(1)
#define CM_EVENT_ADDRINFO_ERROR    CM_EVENT(2)
#define CM_EVENT_USER              CM_EVENT(3)

#define CM_IPOIB_QKEY              0x0b1b
#define CM_HOP_LIMIT               64

struct cm_watch {
    struct cm_peer peer;
    int pidfd; /* -1: not available, poll for the death of the peer */
    unsigned ids;
    struct cm_watch *next;
};

/* channel.fd is an epoll descriptor: readable when the eventfd is, when a peer has died, or when
 * the timer of an id has expired. */
struct cm_channel {
    struct rdma_event_channel channel;
    int owner; /* pid: a forked child shares the descriptors and must not use them */
    int eventfd;
    int timerfd;
    uint32_t notify;
    struct cm_event *events, **events_end;
    struct cm_watch *watches;
    struct cm_id *ids;
    uint64_t timer_due; /* 0: not armed */
    unsigned waiters;   /* threads inside rdma_get_cm_event */
    bool destroyed;
};

struct cm_group {
    struct cm_group *next;
    struct cm_address address;
    union ibv_gid mgid;
    uint16_t mlid;
    bool send_only;
    bool attached;
    bool left;
    void *context;
    unsigned reported, completed;
};

struct cm_event {
    struct rdma_cm_event event;
    struct cm_event *next;
    struct cm_id *owner; /* rdma_destroy_id() of it waits for the acknowledgement */
    struct cm_group *group;
    uint8_t private_data[CM_PRIVATE_DATA_MAX];
};

/* What an id needs to exchange datagrams with its peer: mad_transport.c. */
struct cm_mad_state {
    uint32_t local_id, remote_id; /* 0: not yet known */
    uint64_t transaction;
    uint64_t due; /* when `last` is repeated; 0: never */
    uint64_t interval, longest_interval;
    unsigned retries_left, max_retries;
    enum cm_message_type last_type;
    uint8_t last[MAD_BYTES];
};

struct cm_id {
    struct rdma_cm_id id;
    uint64_t handle;
    enum cm_state state;
    struct cm_channel *channel;
    struct cm_id *next_on_channel, **channel_link;
    bool sync;
    bool active;

    struct cm_address src, dst;
    struct cm_dev_addr dev_addr, dst_dev_addr;
    int binding; /* -1: none */
    bool reuse, v6_only;
    int ack_timeout; /* -1: the default */

    struct cm_peer peer;
    struct cm_watch *watch;
    uint64_t due;              /* when the timer of this state expires; 0: none */
    uint64_t waited;           /* ns since the REQ was sent */
    struct cm_message *unsent; /* a REQ held back: the listener's backlog is full */
    bool peer_knows;           /* that the connection is established */

    uint32_t psn;
    bool peer_known; /* the fields up to remote_ece are valid */
    uint32_t remote_psn, remote_qpn;
    uint16_t remote_lid;
    uint8_t remote_gid[16];             /* over Ethernet */
    uint8_t path_mtu, peer_ack_timeout; /* 0: the defaults */
    uint8_t responder_resources, initiator_depth, retry_count, rnr_retry_count;
    struct ibv_ece local_ece, remote_ece;
    struct ibv_sa_path_rec path;
    struct rdma_addrinfo *addrinfo; /* resolved, not yet queried */

    unsigned reported, completed; /* events returned, and acknowledged */
    struct cm_group *groups;
    struct ibv_qp_init_attr *child_attr; /* a passive endpoint creates a QP for each REQ */
    void *connect_data;
    uint8_t connect_len;
    struct cm_mad_state mad;
};

static inline struct cm_id *to_cm(struct rdma_cm_id *id)
{
    return container_of(id, struct cm_id, id);
}

static inline struct cm_channel *to_channel(struct rdma_event_channel *channel)
{
    return container_of(channel, struct cm_channel, channel);
}

static inline int cm_fail(int err)
{
    if (err)
        errno = err;
    return err ? -1 : 0;
}

static inline bool cm_is_ud(const struct cm_id *cm)
{
    return cm->id.qp_type == IBV_QPT_UD;
}

/* The IPoIB port space uses the Q_Key of the IPoIB broadcast group. */
static inline uint32_t cm_qkey(const struct cm_id *cm)
{
    return cm->id.ps == RDMA_PS_IPOIB ? CM_IPOIB_QKEY : RDMA_UDP_QKEY;
}

/* ---- state.c: the lock, the table of ids ---- */

int cm_attach(void);
void cm_lock(void);
void cm_unlock(void);
/* Gives up if another thread keeps the lock: for a process that ends. */
bool cm_lock_briefly(void);
/* Releases the lock, sleeps until an event is acknowledged, takes the lock again. */
void cm_wait_acknowledged(void);
void cm_wake_acknowledged(void);

int cm_register(struct cm_id *cm);
void cm_unregister(struct cm_id *cm);
struct cm_id *cm_find(uint64_t handle);
/* The id created by a peer's REQ, before the peer knows its handle. */
struct cm_id *cm_find_request(const struct cm_peer *from);
/* The next id of the table; `cursor` begins with 0. */
struct cm_id *cm_next(uint32_t *cursor);

/* ---- channel.c ---- */

struct cm_channel *channel_create(void);
void channel_destroy(struct cm_channel *channel);
void channel_add_id(struct cm_channel *channel, struct cm_id *cm);
void channel_remove_id(struct cm_id *cm);

void channel_push(struct cm_channel *channel, struct cm_event *event);
struct cm_event *channel_pop(struct cm_channel *channel);
/* The next event of `owner`, or NULL. */
struct cm_event *channel_pop_of(struct cm_channel *channel, struct cm_id *owner);
void channel_move_events(struct cm_channel *from, struct cm_channel *to, struct cm_id *owner);

/* Turns deaths of peers and expired timers into events. */
void channel_check(struct cm_channel *channel);
/* Whether the death of some peer raises no descriptor. */
bool channel_must_poll(const struct cm_channel *channel);
/* Sleeps, without cm_lock, until the channel may have an event. Returns 0, or -1 with errno. */
int channel_wait(struct cm_channel *channel, bool must_poll);
/* Bracket everything a thread does to get an event. channel_leave() never returns if the channel
 * has been destroyed meanwhile: as in the kernel, such a wait never ends. */
void channel_enter(struct cm_channel *channel);
void channel_leave(struct cm_channel *channel);

/* Turns the death of the peer into an event. False: the peer is dead already. */
bool channel_watch(struct cm_id *cm);
void channel_unwatch(struct cm_id *cm);
void channel_set_due(struct cm_id *cm, uint64_t due);

/* ---- event.c ---- */

struct cm_event *event_make(struct cm_id *cm, enum rdma_cm_event_type type, int status);
void event_set_private(struct cm_event *event, const void *data, uint8_t length);
void event_queue(struct cm_event *event);
/* Creates and queues an event. Out of memory: no event, and the id stays as it is. */
void event_post(struct cm_id *cm, enum rdma_cm_event_type type, int status);
/* For synchronous ids: waits for the event that completes the current call. */
int event_complete(struct cm_id *cm, enum rdma_cm_event_type expected);
void event_discard_own(struct cm_id *cm);

/* ---- id.c ---- */

struct cm_id *id_make(struct cm_channel *channel, void *context, enum rdma_port_space ps,
                      enum ibv_qp_type qp_type);
void id_free(struct cm_id *cm);
int id_create(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
              enum rdma_port_space ps, enum ibv_qp_type qp_type);
int id_use_device(struct cm_id *cm, const struct cm_dev_addr *dev_addr);
void id_publish_addresses(struct cm_id *cm);
void id_fill_path(struct cm_id *cm, uint16_t dlid);
void id_set_dgid(struct cm_id *cm, const struct cm_dev_addr *dev_addr);
/* The address of the peer, once a message has told it. */
void id_fill_ah(const struct cm_id *cm, struct ibv_ah_attr *attr);
int id_migrate(struct cm_id *cm, struct rdma_event_channel *channel);

/* ---- connect.c ---- */

void connect_self(struct cm_id *cm, struct cm_peer *self);
/* Ends the connection, in whatever state it is, and notifies the peer. */
void connect_end(struct cm_id *cm);
/* Tells the peer that its answer to our request is no longer wanted. */
void connect_withdraw(struct cm_id *cm);
void connect_peer_died(struct cm_id *cm);
void connect_timer_over(struct cm_id *cm);
void connect_moved(struct cm_id *cm);
/* The connection has ended on this side. */
/* Ends an established connection as a fault of the network does: neither side has asked for it. */
void connect_lose(struct cm_id *cm);
/* The same, if the id still exists; the QP is in error already, or will be. */
void connect_lose_by_handle(uint64_t handle);
void connect_closed(struct cm_id *cm, enum rdma_cm_event_type type, int status);
/* Moves the QP to RTS, notifies the peer, and turns the event into ESTABLISHED. */
void connect_finish_reply(struct cm_event *event);

/* ---- receive.c ---- */

/* Handles a message from the mailbox. */
void receive_message(const struct cm_message *message);
/* Makes an id and an event of a REQ or SIDR REQ for our listener `m->to`. Returns 0, or why the
 * request is refused. */
uint32_t receive_request(const struct cm_message *m, struct cm_id **child);
/* Handles any other message for an id. */
void receive_for(struct cm_id *cm, const struct cm_message *m);
/* Bytes of private data in a message of this type: always all of them, padded with zeros. */
unsigned receive_private_size(uint32_t type, uint16_t family);

/* ---- qp.c ---- */

int qp_to_rts(struct cm_id *cm, struct ibv_qp *qp);
void qp_to_error(struct cm_id *cm);
uint8_t qp_ack_timeout(const struct cm_id *cm);

/* ---- multicast.c ---- */

void multicast_attach(struct cm_event *event);
void multicast_leave_all(struct cm_id *cm);

#endif
