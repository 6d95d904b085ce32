/* A queue pair of the modelled world: its transport, what was posted to it, and where it stands with
 * the adapter. */
#ifndef SIM_QUEUE_H
#define SIM_QUEUE_H

#include "hca/objects.h"
#include "sim/marks.h"
#include "sim/models/context.h"
#include "sim/models/server.h"
#include "sim/world.h"
#include "transport/transport.h"

#define MESSAGE_INLINE HCA_MAX_INLINE

/* Memory that a request names, found and checked when it was posted. */
struct stretch {
    uint64_t address;
    uint32_t length;
    uint32_t kind; /* enum place_kind */
};

/* A work request on the send queue. */
struct request {
    struct transport_wqe wqe; /* its 'data' is the message itself */
    struct queue *queue;
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
    struct request *next_over;
    bool reported; /* its process knows that it is over, or need not */
    union ibv_gid dgid;
    uint64_t original; /* result of an atomic */
    uint8_t *copy;     /* of its payload, when the program may have changed the buffer since */
    uint32_t stretches;
    struct stretch list[HCA_MAX_SGE];
    uint8_t inline_data[MESSAGE_INLINE];
};

struct flight;

struct queue {
    struct transport_qp transport; /* first */
    struct cached context;
    struct shared_qp *shared;
    uint32_t qpn;
    uint32_t proc;    /* slot, and word, of its process */
    uint32_t process;
    uint64_t qp; /* hca_qp in that process */
    struct port *port;
    uint16_t peer_lid;
    uint8_t sl;

    struct request **ring; /* by number, from 'completed' to 'posted' */
    uint32_t mask;
    uint32_t posted, rung, fetched, completed;
    uint32_t held; /* posted in SQD, whose doorbells ring in RTS */
    bool fetching;
    uint32_t send_entry, receive_entry; /* segments that a request has room for */
    struct request *over_first, *over_last; /* over, and not yet reported, in order */
    uint32_t users; /* lists, events and packets that name it */

    struct queue *next_ready;
    bool is_ready;     /* in the port's list */
    bool is_served;    /* an engine is at it */
    bool has_response; /* a read's answer, due */
    bool waits_for_ack;
    bool ack_event;  /* the end of that is in the event queue */
    bool answer_due; /* a read's answer will be, by an event */
    struct flight *sending_first, *sending_last; /* started, not yet at the link, in order */
    struct server lock; /* the context is held by packets in and out */
    struct flight *arrived_first, *arrived_last; /* not yet taken, in order */
    uint64_t receive_ready; /* packets that arrive are taken in order, not before this */
    uint64_t timer_at; /* event in the queue, or 0 */

    /* what the transport said while a packet was taken, see receive.c */
    struct request *pulled_over; /* an unreliable message whose last packet was pulled */
    struct flight *arriving;
    uint64_t visible; /* when its payload is in memory */
    bool took_payload;
    bool took_receive;
    bool refused_receive; /* it completes with an error */

    uint32_t receive_capacity; /* of the receive that the arriving message claimed */
    uint32_t receive_segments;
    struct stretch receive_list[HCA_MAX_SGE];
    uint32_t srqn; /* that it takes receives from, or 0 */
    uint32_t claimed_srqn;
    uint64_t delivering; /* when the last message of those on their way is visible */
    struct shared_rq *receive_queue;
    bool remote_device_memory; /* what the peer writes to or reads from */
    bool dead;
    struct shared_cq *send_cq;
};

/* The modelled queue of a QP, made when it is first used; NULL if there is no memory. */
struct queue *queue_of(struct hca_qp *qp);
struct queue *queue_by_number(uint32_t qpn);

/* The QP has become ready to receive, or to send. */
void queue_begin(struct hca_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to);

/* The QP leaves the states in which it sends, or is destroyed. */
void queue_drop(struct hca_qp *qp);

/* Takes over a request; the doorbell rings 'latency' ns later. */
void queue_post(struct hca_qp *qp, const struct send_wqe *wqe);

/* Makes completions that have arrived visible to this process. */
void queue_drain_inbox(void);

static inline struct request *queue_message(const struct queue *queue, uint32_t index)
{
    return queue->ring[index & queue->mask];
}

/* Where byte 'offset' of the stretches is. */
static inline uint64_t stretch_address(const struct stretch *list, uint32_t count, uint64_t offset)
{
    for (uint32_t i = 0; i < count; i++) {
        if (offset < list[i].length)
            return list[i].address + offset;
        offset -= list[i].length;
    }
    return 0;
}

void queue_release(struct queue *queue);
void message_release(struct request *message);

/* The transport is done with an unreliable message: its last packet has left. */
void message_over(struct request *message);

/* A whole message becomes visible in the memory of the process that gets it. */
void queue_deliver(struct flight *last);
/* The completion of a request becomes visible. */
void queue_complete(struct request *message);
void queue_timeout(struct queue *queue, uint64_t event_time);
/* The time that an answer was to be waited for is over. */
void queue_ack_waited(struct queue *queue);
void queue_respond(struct queue *queue);

/* After the transport was entered: its timer, its answers, what it may send. */
void queue_settle(struct queue *queue);

extern const struct transport_ops queue_transport_ops;

#endif
