/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMA and atomics on the memory of other processes, without their help. The rails are queue pairs
 * of their own, connected when a window is created; the policy plans them like those of messages.
 * Calls need the lock of the component. Those that say so release it while they wait. */
#ifndef MTL_RMA_H
#define MTL_RMA_H

#include "mtl/connection.h"

#define RMA_BUFFER_SIZE 8192
#define RMA_DEPTH       64 /* work requests in flight on each rail */

struct rma_rail {
    struct rma_peer *peer;
    struct ibv_qp *qp;
    const struct path *path;
    uint32_t index;
    uint32_t outstanding; /* work requests */
    bool up;
};

struct rma_peer {
    struct rma_peer *next; /* in the hash table */
    struct endpoint *endpoint;
    bool connected;
    struct rails_set set;
    uint32_t rail_count;
    struct rma_rail rail[RAILS_MAX];
};

/* What two processes tell each other to connect their rails. */
struct rma_hello {
    uint32_t rail_count; /* 0: this process failed */
    uint32_t qps[RAILS_MAX];
};

/* An operation: any number of work requests to one peer. */
struct rma_op {
    struct rma_peer *peer;
    void (*done)(
        struct rma_op *op); /* called once, when all are complete; may free the operation */
    uint32_t left;
    bool failed;
};

/* Registered local memory, and memory of the peer. */
struct rma_copy {
    void *local;
    struct ibv_mr *const *regions; /* one for each device; NULL if the data fit inline */
    uint64_t remote;
    const uint32_t *rkeys;
    uint64_t length;
};

/* By policy, a copy may be striped and overtake others. Copies and atomics in order take one rail,
 * and are executed one after the other. */
enum rma_route { RMA_BY_POLICY, RMA_IN_ORDER };

/* ---- rma.c: peers ---- */

/* Whether the first device has atomics. */
bool rma_supported(void);

/* The peer and its queue pairs, created on first use; NULL after logging why. */
struct rma_peer *rma_peer_of(struct ompi_proc_t *proc);
void rma_say_hello(const struct rma_peer *peer, struct rma_hello *hello);
/* Both sides must be connected before an operation begins. Returns 0 or an errno value. */
int rma_connect(struct rma_peer *peer, const struct rma_hello *hello);
bool rma_in_use(void);
void rma_free(void);

/* Memory that peers may read, write and do atomics on. Returns 0, or an errno value after logging.
 */
int rma_register(void *start, size_t length, struct ibv_mr *regions[DEVICES_MAX]);
void rma_deregister(struct ibv_mr *regions[DEVICES_MAX]);

/* Registered buffers of RMA_BUFFER_SIZE bytes. rma_buffer_get() may wait until one is free. */
int rma_buffers_open(void);
void *rma_buffer_get(void);
void rma_buffer_put(void *buffer);
struct ibv_mr *const *rma_buffer_regions(void);

/* ---- rma_op.c: operations ---- */

/* The caller adds work requests between begin and end. */
void rma_begin(struct rma_op *op, struct rma_peer *peer, void (*done)(struct rma_op *op));
void rma_end(struct rma_op *op);

/* These may wait until the rail has room. */
void rma_write(struct rma_op *op, const struct rma_copy *copy, enum rma_route route);
void rma_read(struct rma_op *op, const struct rma_copy *copy, enum rma_route route);

/* Atomics on 8 bytes of remote memory, in order; the old value goes to copy->local. A
 * compare-and-swap is repeated if its rail fails: its old value may then be the new one. */
void rma_fetch_add(struct rma_op *op, const struct rma_copy *copy, uint64_t value);
void rma_compare_swap(struct rma_op *op, const struct rma_copy *copy, uint64_t compare,
                      uint64_t swap);

/* Makes progress, with the lock released. */
void rma_wait(void);

/* Repeats requests whose rail has failed. Returns how many. */
int rma_progress(void);

void rma_completed(const struct ibv_wc *completion, struct work *work);

/* Returns whether the peer can be reached, by an empty write. Waits. */
bool rma_is_alive(struct rma_peer *peer);

void rma_ops_free(void);

#endif
