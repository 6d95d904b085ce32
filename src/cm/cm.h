#ifndef CM_CM_H
#define CM_CM_H

/*
 * The connection manager inside one process: ids, event channels, queued events.
 *
 * cm_lock() takes the process's own mutex, then the fabric's (wire.h), and empties the mailbox, so
 * that whoever holds it knows all that has been sent. Verbs calls are made without it.
 */

#include "cm/exported.h"
#include "cm/wire.h"
#include "util/util.h"

#include <errno.h>
#include <pthread.h>

enum cm_state {
    CM_IDLE,
    CM_BOUND,
    CM_ADDR_RESOLVED,
    CM_ROUTE_RESOLVED,
    CM_LISTENING,
    CM_REQUEST_SENT,
    CM_REQUEST_RECEIVED,
    CM_REPLY_SENT,
    CM_REPLY_RECEIVED,
    CM_CONNECTED,
    CM_DISCONNECTED, /* or refused, or never reached */
    CM_INHERITED,    /* its process has forked: the parent's */
};

/* Reasons of the InfiniBand CM for a rejection, and the states of a datagram service look-up. */
enum {
    REJECT_NO_RESOURCES = 3,
    REJECT_TIMEOUT = 4,
    REJECT_INVALID_SERVICE_ID = 8,
    REJECT_CONSUMER = 28,
    REJECT_VENDOR_OPTION = 35,
    LOOKUP_UNSUPPORTED = 1,
    LOOKUP_REFUSED = 2,
};

/* Events that rdma-core has had since version 59. */
#define CM_EVENT(n)                ((enum rdma_cm_event_type)(RDMA_CM_EVENT_TIMEWAIT_EXIT + (n)))
#define CM_EVENT_ADDRINFO_RESOLVED CM_EVENT(1)
#define CM_EVENT_ADDRINFO_ERROR    CM_EVENT(2)
#define CM_EVENT_USER              CM_EVENT(3)

#define CM_IPOIB_QKEY 0x0b1b

struct cm_watch {
    struct wire_peer peer;
    int pidfd; /* -1: the kernel gives none, ask from time to time */
    unsigned ids;
    struct cm_watch *next;
};

/* channel.fd is an epoll descriptor: readable when the eventfd is, when a peer has died, or when
 * the timer of one of the ids is over. */
struct cm_channel {
    struct rdma_event_channel channel;
    int owner; /* pid: a forked child shares the descriptors, and must leave them alone */
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
    struct cm_id *owner; /* whose destruction waits for the acknowledgement */
    struct cm_group *group;
    uint8_t private_data[WIRE_PRIVATE_MAX];
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
    struct cm_place place, dst_place;
    int binding; /* -1: none */
    bool reuse, v6_only;
    int ack_timeout; /* -1: the default */

    struct wire_peer peer;
    struct cm_watch *watch;
    uint64_t due;                /* when the timer of this state is over; 0: none */
    uint64_t waited;             /* by an unanswered request, ns */
    struct wire_message *unsent; /* a request that found its listener's backlog full */
    bool peer_knows;             /* that the connection stands */

    uint32_t psn;
    bool peer_known; /* it has told us the following */
    uint32_t remote_psn, remote_qpn;
    uint16_t remote_lid;
    uint8_t responder_resources, initiator_depth, retry_count, rnr_retry_count;
    struct ibv_ece local_ece, remote_ece;
    struct ibv_sa_path_rec path;
    struct rdma_addrinfo *addrinfo; /* found, and not asked for yet */

    unsigned reported, completed; /* events given out, and acknowledged */
    struct cm_group *groups;
    struct ibv_qp_init_attr *child_attr; /* a passive endpoint makes QPs for its requests */
    void *connect_data;
    uint8_t connect_len;
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

/* In the port space of IP over InfiniBand, all use the key of its broadcast group. */
static inline uint32_t cm_qkey(const struct cm_id *cm)
{
    return cm->id.ps == RDMA_PS_IPOIB ? CM_IPOIB_QKEY : RDMA_UDP_QKEY;
}

/* ---- state.c: the lock, the table of ids ---- */

int cm_attach(void);
void cm_lock(void);
void cm_unlock(void);
/* Gives the lock up, sleeps until an event has been acknowledged, takes it again. */
void cm_wait_acknowledged(void);
void cm_wake_acknowledged(void);

int cm_register(struct cm_id *cm);
void cm_unregister(struct cm_id *cm);
struct cm_id *cm_find(uint64_t handle);
/* The id that came of a peer's request, before the peer knows its handle. */
struct cm_id *cm_find_request(const struct wire_peer *from);

/* ---- channel.c ---- */

struct cm_channel *channel_create(void);
void channel_destroy(struct cm_channel *channel);
void channel_add_id(struct cm_channel *channel, struct cm_id *cm);
void channel_remove_id(struct cm_id *cm);

void channel_push(struct cm_channel *channel, struct cm_event *event);
struct cm_event *channel_pop(struct cm_channel *channel);
/* The next event of that owner, or NULL. */
struct cm_event *channel_pop_of(struct cm_channel *channel, struct cm_id *owner);
void channel_move_events(struct cm_channel *from, struct cm_channel *to, struct cm_id *owner);

/* Turns deaths of peers, and timers that are over, into events. */
void channel_look(struct cm_channel *channel);
/* Some peer's death shows in no descriptor. */
bool channel_must_poll(const struct cm_channel *channel);
/* Sleeps, without cm_lock, until the channel may have something. -1 with errno. */
int channel_wait(struct cm_channel *channel, bool look_again);
/* Around all that a thread does to get an event. Does not return from a channel that has been
 * destroyed meanwhile: as with the kernel, such a wait just never ends. */
void channel_enter(struct cm_channel *channel);
void channel_leave(struct cm_channel *channel);

/* Watches over the peer of a connection: its death becomes an event. False: it is dead already. */
bool channel_watch(struct cm_id *cm);
void channel_unwatch(struct cm_id *cm);
void channel_set_due(struct cm_id *cm, uint64_t due);

/* ---- event.c ---- */

struct cm_event *event_make(struct cm_id *cm, enum rdma_cm_event_type type, int status);
void event_set_private(struct cm_event *event, const void *data, uint8_t length);
void event_queue(struct cm_event *event);
/* Makes and queues one; without memory for it the id is left as it is. */
void event_post(struct cm_id *cm, enum rdma_cm_event_type type, int status);
/* For ids that work synchronously: waits for the event that ends the call just made. */
int event_complete(struct cm_id *cm, enum rdma_cm_event_type expected);
void event_drop_own(struct cm_id *cm);

/* ---- id.c ---- */

struct cm_id *id_make(struct cm_channel *channel, void *context, enum rdma_port_space ps,
                      enum ibv_qp_type qp_type);
void id_free(struct cm_id *cm);
int id_create(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
              enum rdma_port_space ps, enum ibv_qp_type qp_type);
int id_use_device(struct cm_id *cm, const struct cm_place *place);
void id_publish_addresses(struct cm_id *cm);
void id_fill_path(struct cm_id *cm, uint16_t dlid);
int id_migrate(struct cm_id *cm, struct rdma_event_channel *channel);

/* ---- connect.c ---- */

void connect_self(struct cm_id *cm, struct wire_peer *self);
/* Whatever there is of a connection ends, and the peer is told. */
void connect_end(struct cm_id *cm);
void connect_peer_died(struct cm_id *cm);
void connect_timer_over(struct cm_id *cm);
void connect_moved(struct cm_id *cm);
/* The connection is over on this side, by whatever cause. */
void connect_closed(struct cm_id *cm, enum rdma_cm_event_type type, int status);
/* Moves the QP to where it can send, tells the peer, and makes the event ESTABLISHED. */
void connect_finish_reply(struct cm_event *event);

/* ---- receive.c ---- */

void receive_message(const struct wire_message *message);
/* How much private data a message carries, always: the rest is zeros. */
unsigned receive_private_size(uint32_t type, uint16_t family);

/* ---- qp.c ---- */

int qp_to_rts(struct cm_id *cm, struct ibv_qp *qp);
void qp_to_error(struct cm_id *cm);

/* ---- multicast.c ---- */

void multicast_attach(struct cm_event *event);
void multicast_leave_all(struct cm_id *cm);

#endif
