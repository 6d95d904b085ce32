/* SPDX-License-Identifier: BSD-2-Clause */
/* Two processes connected with rdma_cm, and the steps that the cases share. */
#ifndef TESTS_CM_PAIR_H
#define TESTS_CM_PAIR_H

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cm_case {
    const char *name;
    void (*passive)(void);
    void (*active)(void); /* NULL: a case with one process */
    char dies;            /* 'p' or 'a': that side kills itself */
};

extern const struct cm_case connect_cases[], datagram_cases[], fault_cases[], endpoint_cases[];

/* Ends this side with the reason. */
void fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));

#define CHECK(condition)                                                 \
    do {                                                                 \
        if (!(condition))                                                \
            fail(__FILE__, __LINE__, "%s, errno %d", #condition, errno); \
    } while (0)
#define CHECK_ERRNO(call, wanted)                                                    \
    do {                                                                             \
        errno = 0;                                                                   \
        if ((call) != -1 || errno != (wanted))                                       \
            fail(__FILE__, __LINE__, "%s: errno %d, not %s", #call, errno, #wanted); \
    } while (0)

bool run_case(const struct cm_case *c);

/* Messages to the peer outside the fabric. */
void tell(uint64_t value);
uint64_t hear(void);

#define STEP_MS 5000
bool readable(int fd, int timeout_ms);
struct rdma_cm_event *expect_at(const char *file, int line, struct rdma_event_channel *channel,
                                enum rdma_cm_event_type type);
/* Gets the next event, which must have the given type. */
#define EXPECT(channel, type) expect_at(__FILE__, __LINE__, channel, type)
/* Gets and acknowledges the next event. */
#define EXPECT_ACK(channel, type) rdma_ack_cm_event(EXPECT(channel, type))

struct rdma_event_channel *open_channel(void);
/* Listens on a free port of 127.0.0.1 and sends the port to the peer. */
struct rdma_cm_id *open_listener(struct rdma_event_channel *channel, enum rdma_port_space ps,
                                 int backlog);
/* Gets the port from the peer, resolves address and route. */
struct rdma_cm_id *open_route(struct rdma_event_channel *channel, enum rdma_port_space ps);
struct rdma_cm_id *resolve(struct rdma_event_channel *channel, enum rdma_port_space ps,
                           const char *ip, uint16_t port);
struct sockaddr *ip_address(const char *ip, uint16_t port);
void make_qp(struct rdma_cm_id *id);
void close_id(struct rdma_cm_id *id);

struct rdma_conn_param conn_param(const void *data, uint8_t length);

/* Connect both sides, each with a QP, up to ESTABLISHED. */
struct rdma_cm_id *connect_passive(struct rdma_event_channel *channel, struct rdma_cm_id *listener);
struct rdma_cm_id *connect_active(struct rdma_event_channel *channel);

/* One message over the connection. */
void send_text(struct rdma_cm_id *id, const char *text);
void receive_text(struct rdma_cm_id *id, const char *text, size_t skip);

#endif
