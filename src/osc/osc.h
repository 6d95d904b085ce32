/* SPDX-License-Identifier: BSD-2-Clause */
/* MPI windows on RDMA. A put is an RDMA write, a get an RDMA read; locks and accumulates are
 * compare- and-swap and fetch-and-add on words in the target's memory. The target does nothing.
 * docs/mpi.md explains it. */
#ifndef OSC_OSC_H
#define OSC_OSC_H

#include "mtl/rma.h"

#include <ompi_config.h>

#include <ompi/communicator/communicator.h>
#include <ompi/datatype/ompi_datatype.h>
#include <ompi/mca/osc/osc.h>
#include <ompi/request/request.h>
#include <ompi/win/win.h>

#define REGIONS_MAX 4096 /* attached to one dynamic window */

/* Memory that a process has attached to a dynamic window. */
struct osc_region {
    uint64_t base, size;
    struct rma_keys keys;
};

/* The owner's side of it. */
struct osc_attached {
    uintptr_t start, end;
    struct ibv_mr *regions[DEVICES_MAX];
};

/* The part of a window that its peers work on. Two counters for each of them follow, those of
 * osc_posted() and osc_completed(), and in a dynamic window the regions. */
struct osc_state {
    /* Shared locks in the low half; in the high half 1 plus the rank that holds it exclusively. */
    _Atomic uint64_t lock cache_aligned;
    /* Held while accumulating: 1 plus the rank of the holder. */
    _Atomic uint64_t accumulating cache_aligned;
    _Atomic uint64_t version cache_aligned; /* of the regions; odd while they change */
    uint64_t region_count;
};

/* What a process tells its peers about its part of a window. */
struct osc_info {
    uint64_t base, size, state;
    uint32_t disp_unit;
    uint32_t failed;
    struct rma_keys keys, state_keys;
};

enum osc_lock { OSC_UNLOCKED, OSC_SHARED, OSC_EXCLUSIVE, OSC_NOCHECK };

struct osc_target {
    struct rma_peer *peer;
    struct osc_info info;
    struct rma_op short_puts;            /* all of them, as one operation that never ends */
    uint32_t pending;                    /* other operations that are not complete */
    enum osc_lock lock;                  /* that this process holds */
    bool locking;                        /* a thread is taking the lock */
    bool accumulating;                   /* a thread is taking or holds the lock for accumulates */
    bool started;                        /* in the group of MPI_Win_start() */
    uint64_t posts_seen, completes_seen; /* of MPI_Win_post() and MPI_Win_complete() there */
    uint64_t posts, completes;           /* of this process, for that one */
    uint64_t version;                    /* of 'regions' */
    uint32_t region_count;
    struct osc_region *regions;
};

enum osc_access { OSC_NO_ACCESS, OSC_FENCED, OSC_STARTED, OSC_LOCKED, OSC_LOCKED_ALL };

struct osc_window {
    ompi_osc_base_module_t super;
    struct ompi_win_t *win;
    ompi_communicator_t *comm;
    int flavor, rank, ranks;
    char *memory; /* of MPI_Win_allocate() */
    size_t memory_size;
    struct osc_state *state;
    size_t state_size;
    struct ibv_mr *regions[DEVICES_MAX], *state_regions[DEVICES_MAX];
    struct osc_attached *attached; /* one for each entry of the regions */
    enum osc_access access;
    bool fence_used; /* an operation has begun since the last fence */
    uint32_t locks;  /* held by this process */
    bool exposed;    /* since MPI_Win_post() */
    ompi_group_t *post_group, *start_group;
    int *post_ranks, *start_ranks;
    uint32_t pending;
    bool failed; /* an operation failed since the last synchronization */
    struct osc_target target[];
};

static inline struct osc_window *osc_window_of(struct ompi_win_t *win)
{
    return (struct osc_window *)win->w_osc_module;
}

/* ---- component.c ---- */

extern ompi_osc_base_component_2_0_0_t mca_osc_verbena_component;

/* ---- window.c ---- */

int osc_window_create(struct ompi_win_t *win, void **base, size_t size, int disp_unit,
                      ompi_communicator_t *comm, int flavor);
int osc_window_free(struct ompi_win_t *win);

/* Addresses in the state of a target. */
uint64_t osc_posted(const struct osc_window *window, const struct osc_target *target, int by);
uint64_t osc_completed(const struct osc_window *window, const struct osc_target *target, int by);
uint64_t osc_regions(const struct osc_window *window, const struct osc_target *target);

/* ---- layout.c: data in memory, as MPI describes them ---- */

struct osc_layout {
    char *base;
    int count;
    ompi_datatype_t *type;
    uint64_t size;   /* of the data */
    bool contiguous; /* the data are at 'start' */
    char *start;
};

struct osc_layout osc_layout(const void *base, int count, ompi_datatype_t *type);
void osc_layout_pack(const struct osc_layout *layout, void *to);
void osc_layout_unpack(const struct osc_layout *layout, const void *from);

/* The bytes from 'base' on that the layout spans. */
void osc_layout_span(int count, ompi_datatype_t *type, int64_t *first, int64_t *end);

/* One RDMA for each contiguous part of the target's layout. copy->local has the data, packed;
 * copy->remote is where the target's layout begins, and changes. */
enum osc_direction { OSC_WRITE, OSC_READ };
void osc_layout_transfer(struct rma_op *op, struct rma_copy *copy, int count, ompi_datatype_t *type,
                         enum osc_direction direction, enum rma_route route);

/* ---- copy.c: puts and gets ---- */

int osc_put(const void *origin, int origin_count, ompi_datatype_t *origin_type, int target,
            ptrdiff_t disp, int target_count, ompi_datatype_t *target_type, struct ompi_win_t *win);
int osc_get(void *origin, int origin_count, ompi_datatype_t *origin_type, int target,
            ptrdiff_t disp, int target_count, ompi_datatype_t *target_type, struct ompi_win_t *win);
int osc_rput(const void *origin, int origin_count, ompi_datatype_t *origin_type, int target,
             ptrdiff_t disp, int target_count, ompi_datatype_t *target_type, struct ompi_win_t *win,
             struct ompi_request_t **request);
int osc_rget(void *origin, int origin_count, ompi_datatype_t *origin_type, int target,
             ptrdiff_t disp, int target_count, ompi_datatype_t *target_type, struct ompi_win_t *win,
             struct ompi_request_t **request);

/* An operation that the caller waits for. */
struct osc_sync_op {
    struct rma_op op;
    bool over;
};
void osc_sync_begin(struct osc_sync_op *op, struct osc_target *target);
bool osc_sync_end(struct osc_sync_op *op); /* waits; false if it failed */

/* An operation that completes on its own, counted in 'pending', with a buffer of rma.h or NULL. */
struct osc_async_op;
struct osc_async_op *osc_async_begin(struct osc_window *window, struct osc_target *target,
                                     void *buffer);
struct rma_op *osc_async_rma(struct osc_async_op *op);
void osc_async_end(struct osc_async_op *op);

/* A word of the target's state, and where its value goes to or comes from: memory in a buffer of
 * rma.h. The second begins an operation on it, with a buffer of its own. */
struct rma_copy osc_word(const struct osc_target *target, uint64_t where, void *buffer);
struct osc_async_op *osc_async_begin_word(struct osc_window *window, struct osc_target *target,
                                          uint64_t where, struct rma_copy *word);

/* Memory for packed data: a buffer of rma.h, or registered heap memory. */
struct osc_packed {
    char *data;
    uint64_t room; /* of the heap memory */
    struct ibv_mr *const *regions;
    struct registration *registration;
};
bool osc_packed_get(struct osc_packed *packed, uint64_t size);
void osc_packed_put(struct osc_packed *packed);

/* Frees what is kept for later. */
void osc_copies_free(void);

/* ---- accumulate.c ---- */

int osc_accumulate(const void *origin, int origin_count, ompi_datatype_t *origin_type, int target,
                   ptrdiff_t disp, int target_count, ompi_datatype_t *target_type,
                   struct ompi_op_t *op, struct ompi_win_t *win);
int osc_get_accumulate(const void *origin, int origin_count, ompi_datatype_t *origin_type,
                       void *result, int result_count, ompi_datatype_t *result_type, int target,
                       ptrdiff_t disp, int target_count, ompi_datatype_t *target_type,
                       struct ompi_op_t *op, struct ompi_win_t *win);
int osc_fetch_and_op(const void *origin, void *result, ompi_datatype_t *type, int target,
                     ptrdiff_t disp, struct ompi_op_t *op, struct ompi_win_t *win);
int osc_compare_and_swap(const void *origin, const void *compare, void *result,
                         ompi_datatype_t *type, int target, ptrdiff_t disp, struct ompi_win_t *win);
int osc_raccumulate(const void *origin, int origin_count, ompi_datatype_t *origin_type, int target,
                    ptrdiff_t disp, int target_count, ompi_datatype_t *target_type,
                    struct ompi_op_t *op, struct ompi_win_t *win, struct ompi_request_t **request);
int osc_rget_accumulate(const void *origin, int origin_count, ompi_datatype_t *origin_type,
                        void *result, int result_count, ompi_datatype_t *result_type, int target,
                        ptrdiff_t disp, int target_count, ompi_datatype_t *target_type,
                        struct ompi_op_t *op, struct ompi_win_t *win,
                        struct ompi_request_t **request);

/* ---- region.c: memory of a target ---- */

struct osc_place {
    uint64_t address;
    struct rma_keys keys;
};

/* Where a displacement is, if 'count' elements fit there. Returns an error code of Open MPI. */
int osc_place(struct osc_window *window, struct osc_target *target, ptrdiff_t disp, int count,
              ompi_datatype_t *type, struct osc_place *place);
int osc_attach(struct ompi_win_t *win, void *base, size_t size);
int osc_detach(struct ompi_win_t *win, const void *base);

/* ---- epoch.c: fences, and post, start, complete, wait ---- */

/* Checks that operations on the target are allowed now, and takes its lock if that is due. */
int osc_may_access(struct osc_window *window, struct osc_target *target);
/* Waits until all operations on the target, or on all if it is NULL, are complete. */
int osc_drain(struct osc_window *window, struct osc_target *target);
/* Waits until a counter of this process, which the target writes, has reached a value. */
int osc_wait_counter(struct osc_target *target, const _Atomic uint64_t *counter, uint64_t value);

/* Ends the epoch that a fence began, unless operations have begun in it. */
void osc_leave_fence(struct osc_window *window);
int osc_fence(int assert, struct ompi_win_t *win);
int osc_start(struct ompi_group_t *group, int assert, struct ompi_win_t *win);
int osc_complete(struct ompi_win_t *win);
int osc_post(struct ompi_group_t *group, int assert, struct ompi_win_t *win);
int osc_wait(struct ompi_win_t *win);
int osc_test(struct ompi_win_t *win, int *flag);

/* ---- lock.c: passive target ---- */

int osc_lock_take(struct osc_window *window, struct osc_target *target, enum osc_lock kind);
/* Whether a lock will never be released: the process whose mark is in it, 1 plus its rank, is dead.
 */
bool osc_holder_failed(const struct osc_window *window, uint64_t mark);
int osc_lock(int type, int target, int assert, struct ompi_win_t *win);
int osc_unlock(int target, struct ompi_win_t *win);
int osc_lock_all(int assert, struct ompi_win_t *win);
int osc_unlock_all(struct ompi_win_t *win);
int osc_flush(int target, struct ompi_win_t *win);
int osc_flush_all(struct ompi_win_t *win);
int osc_sync(struct ompi_win_t *win);

/* ---- request.c ---- */

struct osc_request {
    ompi_request_t super;
};

struct osc_request *osc_request_new(struct ompi_win_t *win);
void osc_request_complete(struct osc_request *request, int error);

#endif
