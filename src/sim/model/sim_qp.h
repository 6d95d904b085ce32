/* A queue pair of the modelled world: its transport, what was posted to it, and where it stands with
 * the adapter. */
#ifndef SIM_QUEUE_H
#define SIM_QUEUE_H

#include "hca/objects.h"
#include "hca/rq.h"
#include "sim/model/marks.h"
#include "sim/model/icm.h"
#include "sim/model/server.h"
#include "sim/model/model.h"
#include "transport/transport.h"

#define SIM_WQE_INLINE HCA_MAX_INLINE

/* Memory that a request names, found and checked when it was posted. */
struct sim_sge {
    uint64_t address;
    uint32_t length;
    uint32_t kind; /* enum mem_kind */
};

/* A work request on the send queue. */
struct sim_wqe {
    struct transport_wqe transport; /* its 'data' is the message itself */
    struct sim_qp *qp;
    uint64_t wr_id;
    uint64_t length;
    uint32_t sq_index;
    uint16_t flags;
    uint8_t opcode;
    uint8_t sl;
    uint16_t dlid; /* of a datagram */
    uint8_t has_grh;
    uint8_t status; /* enum transport_status, when it is over */
    bool carried_out;
    bool in_device_memory;
    uint32_t users; /* events and packets that still name it */
    uint64_t marks[MARK_COUNT];
    struct sim_wqe *next_over;
    bool reported; /* its process knows that it is over, or need not */
    union ibv_gid dgid;
    uint64_t original; /* result of an atomic */
    uint8_t *copy;     /* of its payload, when the program may have changed the buffer since */
    uint32_t num_sge;
    struct sim_sge list[HCA_MAX_SGE];
    uint8_t inline_data[SIM_WQE_INLINE];
};

struct sim_packet;

struct sim_qp {
    struct transport_qp transport; /* first */
    struct cached qpc;
    struct shared_qp *shared;
    uint32_t qpn;
    uint32_t proc;    /* slot, and word, of its process */
    uint32_t process;
    uint64_t hca_qp; /* hca_qp in that process */
    struct sim_port *port;
    uint16_t peer_lid;
    uint8_t sl;

    struct sim_wqe **ring; /* by number, from 'completed' to 'posted' */
    uint32_t mask;
    uint32_t posted, rung, fetched, completed;
    uint32_t held; /* posted in SQD, whose doorbells ring in RTS */
    bool fetching;
    uint32_t send_entry, receive_entry; /* segments that a request has room for */
    struct sim_wqe *over_first, *over_last; /* over, and not yet reported, in order */
    uint32_t users; /* lists, events and packets that name it */

    struct sim_qp *next_ready;
    bool is_ready;     /* in the port's list */
    bool is_served;    /* an engine is at it */
    bool has_response; /* a read's answer, due */
    bool waits_for_ack;
    bool ack_event;  /* the end of that is in the event queue */
    bool answer_due; /* a read's answer will be, by an event */
    struct sim_packet *sending_first, *sending_last; /* started, not yet at the link, in order */
    struct server lock; /* the context is held by packets in and out */
    struct sim_packet *arrived_first, *arrived_last; /* not yet taken, in order */
    uint64_t receive_ready; /* packets that arrive are taken in order, not before this */
    uint64_t timer_at; /* event in the queue, or 0 */

    /* what the transport said while a packet was taken, see receive.c */
    struct sim_wqe *pulled_over; /* an unreliable message whose last packet was pulled */
    struct sim_packet *arriving;
    uint64_t visible; /* when its payload is in memory */
    bool took_payload;
    bool took_receive;
    bool refused_receive; /* it completes with an error */

    struct rq_room receive_room; /* of the receive that the arriving message claimed */
    uint32_t receive_segments;
    struct sim_sge receive_list[HCA_MAX_SGE];
    uint32_t srqn; /* that it takes receives from, or 0 */
    uint32_t claimed_srqn;
    uint64_t delivering; /* when the last message of those on their way is visible */
    struct shared_rq *receive_queue;
    bool remote_device_memory; /* what the peer writes to or reads from */
    bool dead;
    struct shared_cq *send_cq;
};

/* The modelled queue of a QP, made when it is first used; NULL if there is no memory. */
struct sim_qp *sim_qp_get(struct hca_qp *hqp);
struct sim_qp *sim_qp_find(uint32_t qpn);

/* The QP has become ready to receive, or to send. */
void sim_qp_modified(struct hca_qp *hqp, enum ibv_qp_state from, enum ibv_qp_state to);

/* The QP leaves the states in which it sends, or is destroyed. */
void sim_qp_flush(struct hca_qp *hqp);

/* Takes over a request; the doorbell rings 'latency' ns later. */
void sim_qp_post(struct hca_qp *hqp, const struct send_wqe *swqe, uint64_t called_at);

/* Adds the counters of all QPs to the model's. */
void sim_qp_fold_all_counters(void);

/* Makes completions that have arrived visible to this process. */
void sim_qp_drain_cqes(void);

static inline struct sim_wqe *sim_qp_wqe(const struct sim_qp *qp, uint32_t index)
{
    return qp->ring[index & qp->mask];
}

/* Where byte 'offset' of the stretches is. */
static inline uint64_t sim_sge_address(const struct sim_sge *list, uint32_t count, uint64_t offset)
{
    for (uint32_t i = 0; i < count; i++) {
        if (offset < list[i].length)
            return list[i].address + offset;
        offset -= list[i].length;
    }
    return 0;
}

void sim_qp_put(struct sim_qp *qp);
void sim_wqe_put(struct sim_wqe *wqe);

/* The transport is done with an unreliable message: its last packet has left. */
void sim_wqe_sent(struct sim_wqe *wqe);

/* A whole message becomes visible in the memory of the process that gets it. */
void payload_deliver(struct sim_packet *last);
/* The completion of a request becomes visible. */
void sim_qp_complete(struct sim_wqe *wqe);
void sim_qp_timeout(struct sim_qp *qp, uint64_t event_time);
/* The time that an answer was to be waited for is over. */
void sim_qp_ack_waited(struct sim_qp *qp);
void sim_qp_respond(struct sim_qp *qp);

/* After the transport was entered: its timer, its answers, what it may send. */
void sim_qp_settle(struct sim_qp *qp);

extern const struct transport_ops sim_qp_transport_ops;

#endif
