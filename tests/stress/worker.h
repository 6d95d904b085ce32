/* SPDX-License-Identifier: BSD-2-Clause */
/* One process of the stress test: its endpoints, and what it shares with the watcher. */
#ifndef TESTS_STRESS_WORKER_H
#define TESTS_STRESS_WORKER_H

#include "plan.h"
#include "rig.h"

#include <pthread.h>
#include <stdatomic.h>

#define MAX_CQS       3
#define MAX_ENDPOINTS (2 * MAX_LINKS)
#define MAX_INLINE    64u
#define REPORT_BYTES  512

/* Written by one endpoint, read by its peer and by the watcher, also after the writer's death. */
struct side_board {
    _Atomic uint32_t completed_receives; /* messages whose send completed with success */
    _Atomic uint32_t received;
    _Atomic uint32_t posted;
    _Atomic uint32_t retired;
};

struct board {
    struct side_board side[MAX_LINKS][2];
    _Atomic int failed;
    char report[REPORT_BYTES];
};

enum oob_type { OOB_HELLO, OOB_READY, OOB_DONE, OOB_AGAIN, OOB_AGAIN_READY, OOB_AGAIN_DONE };

struct wire {
    struct rig_addr addr;
    struct rig_addr xrc_recv;
    uint32_t srqn;
    uint32_t remote_key;
    uint32_t read_key;
    uint32_t cell_key;
    uint64_t landing;
    uint64_t big;
    uint64_t read_area;
    uint64_t cells;
    uint64_t cas_cell;
};

struct oob {
    enum oob_type type;
    int link;
    struct wire wire;
};

/* Receive buffers: of one queue pair, or of a shared receive queue. */
struct recv_pool {
    uint8_t *base;
    struct ibv_mr *mr;
    uint32_t count;
    uint32_t stride;
    struct ibv_qp *qp;
    struct ibv_srq *srq;
    uint32_t posted;
    uint32_t outstanding;
};

struct pending {
    struct op op;
    struct ibv_mr *own_mr;
    uint32_t receives_through; /* receives of the peer used up to and including this operation */
};

enum link_state { LINK_HELLO, LINK_WIRED, LINK_RUN, LINK_MOURN, LINK_FLUSH, LINK_OVER };

struct endpoint {
    struct worker *worker;
    const struct plan_link *link;
    const struct plan_side *plan;
    int side;
    int index;
    enum link_state state;
    struct ibv_qp *qp;
    struct ibv_qp *xrc_recv;
    struct ibv_ah *ah;
    uint32_t psn;
    struct wire mine;
    struct wire theirs;
    bool have_hello;
    bool peer_ready;
    bool peer_done;
    bool done_sent;
    bool broken;    /* an error was seen, here or there */
    bool tx_failed; /* a send completed with an error */
    uint64_t broken_since;
    uint32_t done_at_round;

    struct op_walk tx;
    bool tx_exhausted;
    struct op next_op;
    bool have_next;
    struct pending *ring;
    uint32_t head;
    uint32_t tail;
    uint32_t receives_used;
    uint64_t cell_seen[FADD_CELLS];

    struct op_walk rx;
    uint32_t rx_total;
    uint32_t rx_count;
    struct op rx_unchecked[WRITES_PER_RECV];
    int rx_unchecked_count;
    struct recv_pool recvs;
    uint32_t flushed;

    uint8_t *send_area;
    struct ibv_mr *send_mr[2];
    uint8_t *landing_area;
    size_t landing_bytes;
    struct ibv_mr *landing_mr;
    uint8_t *read_area;
    struct ibv_mr *read_mr;
};

struct peer {
    int fd;
    bool dead;
    struct oob again;
    bool have_again;
    bool again_ready;
    bool again_done;
};

struct worker {
    const struct plan *plan;
    const struct plan_proc *proc;
    struct board *board;
    int me;
    struct rig rig;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq[MAX_CQS];
    unsigned unacked[MAX_CQS];
    struct ibv_xrcd *xrcd;
    struct recv_pool srq_pool;
    struct recv_pool xrc_pool;
    uint64_t *cells;
    struct ibv_mr *cell_mr;
    struct peer peer[MAX_PROCS];
    struct endpoint endpoint[MAX_ENDPOINTS];
    int endpoints;
    bool someone_died;
    bool awaits_credit;    /* which causes no event */
    uint32_t empty_rounds; /* rounds of polling in which all CQs were empty */
    pthread_t churn;
    atomic_bool churn_stop;
};

/* Records the reason for the watcher and ends the process. */
void worker_fail(struct worker *worker, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), noreturn));
void endpoint_fail(struct endpoint *ep, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/* resources.c */
void *worker_memory(struct worker *worker, size_t bytes);
void worker_memory_free(struct worker *worker, void *mem, size_t bytes);
void worker_open(struct worker *worker);
void worker_close(struct worker *worker);
void endpoint_open(struct endpoint *ep);
void endpoint_connect(struct endpoint *ep);
void endpoint_close(struct endpoint *ep);
struct recv_pool *endpoint_pool(struct endpoint *ep);
uint32_t endpoint_stride(const struct plan_link *link);

/* traffic.c */
void pool_post(struct worker *worker, struct recv_pool *pool, uint32_t first, uint32_t count);
bool endpoint_send_more(struct endpoint *ep);
void endpoint_send_probe(struct endpoint *ep);
void worker_completion(struct worker *worker, const struct ibv_wc *wc);

/* check.c */
void check_receive(struct endpoint *ep, const struct ibv_wc *wc, uint8_t *buf, uint32_t size);
void check_result(struct endpoint *ep, const struct op *op, const uint8_t *buf);
void check_landing(struct endpoint *ep);
void check_cells(struct worker *worker);

/* worker.c */
int worker_run(const struct plan *plan, struct board *board, int me, const int *fds);

#endif
