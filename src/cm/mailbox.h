/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CM_MAILBOX_H
#define CM_MAILBOX_H

/* A mailbox for each process of the fabric. Callers hold shared_lock() (shared.h). */

#include "cm/address.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>

#define CM_PRIVATE_DATA_MAX 216

/* Messages of the InfiniBand CM, and two of ours, which stay in the segment. */
enum cm_message_type {
    CM_MSG_REQ,
    CM_MSG_REP,
    CM_MSG_RTU,
    CM_MSG_REJ,
    CM_MSG_DREQ,
    CM_MSG_SIDR_REQ,
    CM_MSG_SIDR_REP,    /* reason 0: found */
    CM_MSG_MIGRATED,    /* the sender's id has moved to another event channel */
    CM_MSG_ESTABLISHED, /* the passive side is connected already: send no CM_MSG_RTU */
    CM_MSG_DREP,        /* these two only over a network */
    CM_MSG_MRA,
};

/* InfiniBand CM: reasons of a REJ, status of a SIDR REP. */
enum {
    REJECT_NO_RESOURCES = 3,
    REJECT_TIMEOUT = 4,
    REJECT_INVALID_ID = 6,
    REJECT_INVALID_SERVICE_ID = 8,
    REJECT_STALE = 10,
    REJECT_INVALID_MTU = 26,
    REJECT_CONSUMER = 28,
    REJECT_VENDOR_OPTION = 35,
    SIDR_UNSUPPORTED = 1,
    SIDR_REJECT = 2,
};

/* One end of a connection: an id of a process, and the descriptor that wakes the process. */
struct cm_peer {
    uint32_t proc;
    uint32_t generation;
    uint64_t id; /* 0: not yet known */
    int32_t fd;
    uint32_t notify;
};

struct cm_message {
    uint32_t type;
    uint32_t reason;
    struct cm_peer from;
    uint64_t to; /* 0: the id created by the sender's REQ */
    struct cm_address src, dst;
    uint32_t qpn, psn, qkey;
    uint16_t lid;
    uint8_t port_index; /* counted over all adapters of the node */
    uint8_t responder_resources, initiator_depth;
    uint8_t flow_control, retry_count, rnr_retry_count;
    uint8_t srq;
    uint8_t service;     /* 0: RC, 1: UC */
    uint8_t path_mtu;    /* enum ibv_mtu, 0: the sender's */
    uint8_t ack_timeout; /* 0: the default */
    uint8_t gid_index;   /* over a network: of the GID at which the message arrived, */
    uint8_t gid[16];     /* and its sender's GID */
    struct ibv_ece ece;
    uint8_t private_data[CM_PRIVATE_DATA_MAX];
};

/* Messages head..tail are complete: an index moves only after the message has been written. */
struct mailbox {
    uint32_t generation; /* of the process that reads it */
    _Atomic uint32_t head, tail;
    _Atomic uint64_t ring;
};

/* Empties this process's mailbox and makes this process its reader. */
void mailbox_reset(void);

bool mailbox_peer_alive(const struct cm_peer *peer);
void mailbox_self(struct cm_peer *self);

/* Returns 0, ESRCH when the peer is gone, ENOMEM. */
int mailbox_send(const struct cm_peer *to, const struct cm_message *message, bool wake);
bool mailbox_receive(struct cm_message *message);

#endif
