/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts and gets. Short data go through a registered buffer, long contiguous data directly from and
 * to the user's memory, others through a packed copy. */
#include "osc/osc.h"

#include "mtl/log.h"
#include "mtl/registration.h"

#include <stdlib.h>

/* Longer data are registered where they are, and not copied. */
#define COPY_LIMIT 4096

/* ---- operations ---- */

static void sync_over(struct rma_op *op)
{
    container_of(op, struct osc_sync_op, op)->over = true;
}

void osc_sync_begin(struct osc_sync_op *op, struct osc_target *target)
{
    op->over = false;
    rma_begin(&op->op, target->peer, sync_over);
}

bool osc_sync_end(struct osc_sync_op *op)
{
    rma_end(&op->op);
    while (!op->over)
        rma_wait();
    return !op->op.failed;
}

struct osc_async_op {
    struct rma_op rma;
    struct osc_async_op *next; /* among the spare ones */
    struct osc_window *window;
    struct osc_target *target;
    struct osc_packed packed;
    bool unpacks; /* a get: 'origin' gets the packed data */
    struct osc_layout origin;
    struct osc_request *request;
};

static struct osc_async_op *spare;

static void async_over(struct rma_op *rma)
{
    struct osc_async_op *op = container_of(rma, struct osc_async_op, rma);

    op->window->failed |= rma->failed;
    if (op->unpacks) {
        if (!rma->failed)
            osc_layout_unpack(&op->origin, op->packed.data);
        OMPI_DATATYPE_RELEASE(op->origin.type);
    }
    osc_packed_put(&op->packed);
    op->target->pending--;
    op->window->pending--;
    if (op->request)
        osc_request_complete(op->request, rma->failed ? mtl_unreachable() : MPI_SUCCESS);
    op->next = spare;
    spare = op;
}

struct osc_async_op *osc_async_begin(struct osc_window *window, struct osc_target *target,
                                     void *buffer)
{
    struct osc_async_op *op = spare;

    if (op)
        spare = op->next;
    else
        op = malloc(sizeof(*op));
    if (!op) {
        mtl_log("out of memory: a one-sided operation fails");
        return NULL;
    }
    rma_begin(&op->rma, target->peer, async_over);
    op->window = window;
    op->target = target;
    op->packed = (struct osc_packed){ .data = buffer };
    op->unpacks = false;
    op->request = NULL;
    window->pending++;
    target->pending++;
    return op;
}

struct rma_op *osc_async_rma(struct osc_async_op *op)
{
    return &op->rma;
}

void osc_async_end(struct osc_async_op *op)
{
    rma_end(&op->rma);
}

/* ---- words of a target's state ---- */

struct rma_copy osc_word(const struct osc_target *target, uint64_t where, void *buffer)
{
    return (struct rma_copy){ .local = buffer,
                              .regions = rma_buffer_regions(),
                              .remote = where,
                              .keys = target->info.state_keys,
                              .length = sizeof(uint64_t) };
}

struct osc_async_op *osc_async_begin_word(struct osc_window *window, struct osc_target *target,
                                          uint64_t where, struct rma_copy *word)
{
    void *buffer = rma_buffer_get();
    struct osc_async_op *op = osc_async_begin(window, target, buffer);

    if (!op)
        rma_buffer_put(buffer);
    *word = osc_word(target, where, buffer);
    return op;
}

/* ---- packed data ---- */

/* The largest heap memory so far: registering memory costs more than copying it. */
static struct osc_packed kept;

bool osc_packed_get(struct osc_packed *packed, uint64_t size)
{
    packed->registration = NULL;
    packed->regions = rma_buffer_regions();
    if (size <= RMA_BUFFER_SIZE) {
        packed->data = rma_buffer_get();
        return true;
    }
    packed->room = round_up(size, PAGE);
    if (kept.room >= size) {
        *packed = kept;
        kept = (struct osc_packed){ .room = 0 };
        return true;
    }
    packed->data = aligned_alloc(PAGE, packed->room);
    if (!packed->data) {
        mtl_log("out of memory: cannot pack %lu bytes", size);
        return false;
    }
    packed->registration = registration_get(packed->data, size);
    if (!packed->registration) {
        free(packed->data);
        return false;
    }
    packed->regions = packed->registration->regions;
    return true;
}

static void release(struct osc_packed *packed)
{
    if (packed->registration)
        registration_put(packed->registration);
    free(packed->data);
    *packed = (struct osc_packed){ .room = 0 };
}

void osc_copies_free(void)
{
    release(&kept);
    for (struct osc_async_op *op = spare, *next; op; op = next) {
        next = op->next;
        free(op);
    }
    spare = NULL;
}

/* User memory has a registration only; inline data have nothing. */
void osc_packed_put(struct osc_packed *packed)
{
    if (!packed->registration) {
        if (packed->data)
            rma_buffer_put(packed->data);
        return;
    }
    if (packed->data && packed->room > kept.room) {
        release(&kept);
        kept = *packed;
    } else {
        release(packed);
    }
}

/* ---- puts and gets ---- */

struct transfer {
    struct osc_layout origin;
    int target;
    ptrdiff_t disp;
    int target_count;
    ompi_datatype_t *target_type;
    enum osc_direction direction;
};

/* Its data go inline. */
static bool is_short_put(const struct transfer *transfer)
{
    return transfer->direction == OSC_WRITE && transfer->origin.contiguous &&
           transfer->origin.size <= (uint64_t)mtl.parameters.inline_limit;
}

/* The memory that RDMA works on, for the length of the operation. */
static bool choose_memory(struct osc_async_op *op, const struct transfer *transfer,
                          struct rma_copy *copy)
{
    const struct osc_layout *origin = &transfer->origin;
    bool writes = transfer->direction == OSC_WRITE;

    if (is_short_put(transfer)) {
        copy->local = origin->start;
        return true;
    }
    if (origin->contiguous && origin->size > COPY_LIMIT) {
        op->packed.registration = registration_get(origin->start, origin->size);
        if (!op->packed.registration)
            return false;
        copy->local = origin->start;
        copy->regions = op->packed.registration->regions;
        return true;
    }
    if (!osc_packed_get(&op->packed, origin->size)) {
        op->packed = (struct osc_packed){ .data = NULL };
        return false;
    }
    copy->local = op->packed.data;
    copy->regions = op->packed.regions;
    if (writes) {
        osc_layout_pack(origin, copy->local);
    } else {
        op->unpacks = true;
        op->origin = *origin;
        OMPI_DATATYPE_RETAIN(origin->type);
    }
    return true;
}

static void count(enum osc_direction direction)
{
    mtl_charge(mtl.costs.send);
    if (direction == OSC_WRITE)
        mtl.counters.puts++;
    else
        mtl.counters.gets++;
}

static int start(struct osc_window *window, struct osc_target *target,
                 const struct transfer *transfer, struct osc_request *request)
{
    struct rma_copy copy = { .length = transfer->origin.size };
    struct osc_async_op *op;
    struct osc_place place;
    int status = osc_place(window, target, transfer->disp, transfer->target_count,
                           transfer->target_type, &place);

    if (status != OMPI_SUCCESS)
        return status;
    copy.remote = place.address;
    copy.keys = place.keys;
    if (!request && is_short_put(transfer)) {
        count(transfer->direction);
        copy.local = transfer->origin.start;
        osc_layout_transfer(&target->short_puts, &copy, transfer->target_count,
                            transfer->target_type, OSC_WRITE, RMA_BY_POLICY);
        return OMPI_SUCCESS;
    }
    op = osc_async_begin(window, target, NULL);
    if (!op)
        return OMPI_ERR_OUT_OF_RESOURCE;
    count(transfer->direction);
    op->request = request;
    if (choose_memory(op, transfer, &copy))
        osc_layout_transfer(&op->rma, &copy, transfer->target_count, transfer->target_type,
                            transfer->direction, RMA_BY_POLICY);
    else
        op->rma.failed = true;
    osc_async_end(op);
    return OMPI_SUCCESS;
}

/* The side that data go to may be longer than the other. */
static bool fits(struct transfer *transfer)
{
    struct osc_layout *origin = &transfer->origin;
    uint64_t there;
    size_t size;

    ompi_datatype_type_size(transfer->target_type, &size);
    there = size * transfer->target_count;
    if (transfer->direction == OSC_WRITE)
        return origin->size <= there;
    if (origin->size < there)
        return false;
    origin->size = there;
    return true;
}

static int move(struct transfer *transfer, struct ompi_win_t *win, struct osc_request *request)
{
    struct osc_window *window = osc_window_of(win);
    struct osc_target *target = &window->target[transfer->target];
    int status;

    if (!fits(transfer))
        return MPI_ERR_TRUNCATE;
    mtl_enter();
    status = osc_may_access(window, target);
    if (status == OMPI_SUCCESS && transfer->origin.size)
        status = start(window, target, transfer, request);
    else if (status == OMPI_SUCCESS && request)
        osc_request_complete(request, MPI_SUCCESS);
    mtl_leave();
    return status;
}

static int move_with_request(struct transfer *transfer, struct ompi_win_t *win,
                             struct ompi_request_t **request)
{
    struct osc_request *own = osc_request_new(win);
    int status;

    if (!own)
        return OMPI_ERR_OUT_OF_RESOURCE;
    status = move(transfer, win, own);
    if (status == OMPI_SUCCESS)
        *request = &own->super;
    else
        OBJ_RELEASE(own);
    return status;
}

int osc_put(const void *origin, int origin_count, ompi_datatype_t *origin_type, int target,
            ptrdiff_t disp, int target_count, ompi_datatype_t *target_type, struct ompi_win_t *win)
{
    return move(&(struct transfer){ osc_layout(origin, origin_count, origin_type), target, disp,
                                    target_count, target_type, OSC_WRITE },
                win, NULL);
}

int osc_get(void *origin, int origin_count, ompi_datatype_t *origin_type, int target,
            ptrdiff_t disp, int target_count, ompi_datatype_t *target_type, struct ompi_win_t *win)
{
    return move(&(struct transfer){ osc_layout(origin, origin_count, origin_type), target, disp,
                                    target_count, target_type, OSC_READ },
                win, NULL);
}

int osc_rput(const void *origin, int origin_count, ompi_datatype_t *origin_type, int target,
             ptrdiff_t disp, int target_count, ompi_datatype_t *target_type, struct ompi_win_t *win,
             struct ompi_request_t **request)
{
    return move_with_request(&(struct transfer){ osc_layout(origin, origin_count, origin_type),
                                                 target, disp, target_count, target_type,
                                                 OSC_WRITE },
                             win, request);
}

int osc_rget(void *origin, int origin_count, ompi_datatype_t *origin_type, int target,
             ptrdiff_t disp, int target_count, ompi_datatype_t *target_type, struct ompi_win_t *win,
             struct ompi_request_t **request)
{
    return move_with_request(&(struct transfer){ osc_layout(origin, origin_count, origin_type),
                                                 target, disp, target_count, target_type,
                                                 OSC_READ },
                             win, request);
}
