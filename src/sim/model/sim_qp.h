/* SPDX-License-Identifier: BSD-2-Clause */
/* A modelled QP: its transport state, the WQEs posted to its send queue, and the state of the
 * adapter that concerns it. */
#ifndef SIM_MODEL_SIM_QP_H
#define SIM_MODEL_SIM_QP_H

#include "hca/objects.h"
#include "hca/rq.h"
#include "sim/model/dcqcn.h"
#include "sim/model/icm.h"
#include "sim/model/marks.h"
#include "sim/model/model.h"
#include "sim/model/server.h"
#include "transport/transport.h"

#define SIM_WQE_INLINE HCA_MAX_INLINE

#define SIM_QP_WINDOW    4096 /* packets */
#define SIM_QP_ACK_EVERY 64   /* packets */

/* An SGE whose key was checked when its WQE was posted. */
struct sim_sge {
    uint64_t address;
    uint32_t length;
    uint32_t kind; /* enum mem_kind */
};

/* A WQE on the send queue. */
struct sim_wqe {
    struct transport_wqe transport; /* its 'data' points back to this struct */
    struct sim_qp *qp;
    uint64_t wr_id;
    uint64_t length;
    uint32_t sq_index;
    uint16_t flags;
    uint8_t opcode;
    uint8_t sl;
    uint16_t dlid; /* UD */
    uint8_t has_grh;
    uint8_t status; /* enum transport_status, once the transport has completed the WQE */
    bool delivered;
    bool in_device_memory;
    uint32_t refcount; /* events and packets that point here */
    uint64_t marks[MARK_COUNT];
    struct sim_wqe *next_done;
    bool reported; /* its completion was reported, or it needs none */
    union ibv_gid dgid;
    uint64_t original; /* result of an atomic */
    uint8_t *snapshot; /* payload, if the program may have changed its buffer since posting */
    uint32_t num_sge;
    struct sim_sge sge[HCA_MAX_SGE];
    uint8_t inline_data[SIM_WQE_INLINE];
};

struct sim_packet;
struct sim_qp;

/* Whoever drives the model without processes (owned_qp.h) is told what happens on its QPs. */
struct sim_qp_owner {
    /* The CQE of a signaled WQE, or of one that failed, is in memory. */
    void (*completed)(struct sim_wqe *wqe);
    /* The message of which this is the last packet is in memory. */
    void (*delivered)(const struct sim_packet *last);
    void (*failed)(struct sim_qp *qp, enum transport_status why);
    uint8_t timeout, retry_count; /* of its QPs, as in struct ibv_qp_attr */
};

/* What every packet needs is together, in a few cache lines: of a thousand nodes, the processor's
 * caches hold little. */
struct sim_qp {
    struct transport_qp transport; /* first */
    struct sim_port *port;
    struct icm_context context;
    uint32_t refcount;            /* lists, events and packets that point here */
    uint32_t qpn;
    uint32_t proc; /* slot of its process in the segment */
    uint16_t peer_lid;
    uint8_t sl;
    uint8_t max_send_sge, max_recv_sge;
    bool receives;           /* its process may know it before packets find it */
    bool dead;               /* flushed or destroyed; events and packets may still point here */
    bool is_ready;           /* in the port's list of ready QPs */
    bool in_engine;          /* assigned to a send engine */
    bool draining;           /* its engine waits until its packets have left */
    bool response_ready;     /* a read or atomic response may be sent now */
    bool response_scheduled; /* EVENT_RESPOND is in the event queue */
    bool waits_for_context;  /* a doorbell */
    bool waits_for_ack;
    bool ack_scheduled;        /* EVENT_ACK is in the event queue */
    bool ack_event_scheduled;  /* EVENT_ACK_TURNAROUND is in the event queue */
    bool pace_event_scheduled; /* EVENT_PACED is in the event queue */
    bool remote_device_memory; /* the peer reads or writes device memory */
    /* Set by transport callbacks while receive_engine.c processes 'arriving'. */
    bool accepted_payload;
    bool consumed_recv;
    bool recv_failed; /* the receive completes with an error */
    struct sim_packet *arriving;
    uint64_t response_visible_at; /* when the payload of a response is in memory */

    /* Send queue. The indices run freely: completed <= fetched <= requested <= rung <= posted. */
    struct sim_wqe **ring;
    uint32_t mask;
    uint32_t posted, rung, requested, fetched, completed;
    uint32_t announced; /* posted WQEs for which a doorbell is on its way or has arrived */
    uint32_t fetches;   /* under way; together they bring WQEs up to 'requested' */
    uint64_t fetched_at; /* fetches end in order, none before this time */
    struct sim_qp *next_ready;
    struct sim_packet *sending_first, *sending_last; /* started, not yet handed to the link */

    struct sim_packet *arrived_first, *arrived_last; /* not yet processed */
    uint64_t rx_earliest;   /* arriving packets are processed in order, none before this time */
    uint64_t translated_at; /* payload is written in order, and acknowledged, from this time on */
    uint64_t timer_at;      /* time of the EVENT_TIMEOUT in the event queue, or 0 */
    struct icm_line *read_line, *written_line; /* of the MTT, at last */
    uint64_t last_delivery_at; /* messages become visible in order, none before this time */
    uint64_t completed_at;     /* sends complete in order, none before this time */
    struct sim_wqe *done_first, *done_last; /* completed by the transport, not yet reported */
    struct sim_wqe *pulled_last_wqe;        /* UC or UD: its last packet was just pulled */
    const struct sim_qp_owner *owner;       /* NULL: a process */
    void *owner_data;

    /* From here on, a QP of an owner has only what it uses. */
    struct dcqcn dcqcn;     /* the rate of its packets, on Ethernet links */
    uint64_t next_cnp_at;   /* it sends no CNP before */
    struct server qpc_lock; /* packets in and out hold the QP context, for hca.qpc_lock_time */
    /* The receive WQE that the arriving message claimed. */
    struct rq_capacity recv_capacity;
    uint32_t recv_num_sge;
    uint32_t srqn; /* of its SRQ, or 0 */
    uint32_t claimed_srqn;
    uint32_t hidden_receives; /* posted by a process that is ahead; packets do not find them yet */
    struct sim_sge recv_sge[HCA_MAX_SGE];
    uint64_t atomic_done_at[RESPONDER_MAX_RESOURCES]; /* when the result of an atomic may be sent */
    struct responder_resource resources[RESPONDER_MAX_RESOURCES];
    struct shared_qp *shared;
    struct shared_cq *send_cq;
    uint32_t process;      /* proc_word() of its process */
    uint64_t hca_qp;       /* struct hca_qp, in the address space of that process */
    uint64_t locked_until; /* by the call of a thread that posts */
};

/* Returns the modelled QP, creating it on first use; NULL if out of memory. */
struct sim_qp *sim_qp_get(struct hca_qp *hqp);
struct sim_qp *sim_qp_find(uint32_t qpn);
/* The QP is in RTR: packets find it from now on. */
void sim_qp_begin_to_receive(struct sim_qp *qp);
/* Where the table of QPs has the one with this number. */
struct sim_qp **sim_qp_slot(uint32_t qpn);

/* So many receives are about to be posted, by a thread that may be ahead: packets find them from its
 * present time on. */
void sim_qp_hide_receives(struct sim_qp *qp, uint32_t count);

/* The QP has changed its state to RTR or RTS. */
void sim_qp_modified(struct hca_qp *hqp, enum ibv_qp_state from, enum ibv_qp_state to);

/* The QP has left the states in which it sends, or is being destroyed. */
void sim_qp_flush(struct hca_qp *hqp);

/* Posts a WQE. 'called_at' is when the program called ibv_post_send. */
void sim_qp_post(struct hca_qp *hqp, const struct send_wqe *swqe, uint64_t called_at);

/* Rings the doorbell for WQEs that were posted since the last one, unless the QP is in SQD. */
void sim_qp_ring(struct hca_qp *hqp);

/* Writes the pending send CQEs of this process to its CQs. */
void sim_qp_drain_cqes(void);
bool sim_qp_has_cqes(void);

static inline struct sim_wqe *sim_qp_wqe(const struct sim_qp *qp, uint32_t index)
{
    return qp->ring[index & qp->mask];
}

/* The address of byte 'offset' of an SGE list, or 0 beyond its end. */
static inline uint64_t sim_sge_address(const struct sim_sge *list, uint32_t count, uint64_t offset)
{
    for (uint32_t i = 0; i < count; i++) {
        if (offset < list[i].length)
            return list[i].address + offset;
        offset -= list[i].length;
    }
    return 0;
}

/* Drop one reference. */
void sim_qp_put(struct sim_qp *qp);
void sim_wqe_put(struct sim_wqe *wqe);

/* The last packet of a UC or UD message has left the port. */
void sim_wqe_sent(struct sim_wqe *wqe);

/* Event handlers. */
void sim_qp_complete(struct sim_wqe *wqe);
void sim_qp_timeout(struct sim_qp *qp, uint64_t event_time);
void sim_qp_ack_turnaround_done(struct sim_qp *qp);
void sim_qp_respond(struct sim_qp *qp);
void sim_qp_ack(struct sim_qp *qp);

/* Whether a read or atomic response, or an acknowledgement behind them, may be sent now. */
bool sim_qp_may_respond(const struct sim_qp *qp);

/* Call after every entry into the transport: schedules its timer, its responses and the end of an
 * ACK turnaround. */
void sim_qp_schedule_work(struct sim_qp *qp);

extern const struct transport_ops sim_qp_transport_ops;

#endif
