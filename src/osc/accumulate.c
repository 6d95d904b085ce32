/* SPDX-License-Identifier: BSD-2-Clause */
/* Accumulates, atomic to each other whatever their types and lengths: the origin takes the target's
 * lock for accumulates, reads, computes, writes, and releases the lock. Up to the length of a
 * buffer all of this is on one rail: the data are read together with the lock, and the call does
 * not wait for what it writes. So an accumulate takes one round trip if nobody else holds the lock,
 * and two of one process to one target are executed in their order. */
#include "osc/osc.h"

#include "mtl/log.h"

#include <stdlib.h>

/* The lock word is read into the last bytes of a buffer. */
#define WORD_OFFSET (RMA_BUFFER_SIZE - sizeof(uint64_t))

struct update {
    struct osc_window *window;
    struct osc_target *target;
    struct osc_place place;
    int count; /* of the target's layout */
    ompi_datatype_t *type;
    uint64_t size;
    bool reads;
    char *buffer;             /* of rma.h */
    bool is_short;            /* the data are in it */
    struct osc_packed packed; /* else here */
};

static char *data_of(const struct update *update)
{
    return update->is_short ? update->buffer : update->packed.data;
}

static void transfer(struct update *update, struct rma_op *op, enum osc_direction direction)
{
    struct rma_copy copy = {
        .local = data_of(update),
        .regions = update->is_short ? rma_buffer_regions() : update->packed.regions,
        .remote = update->place.address,
        .rkeys = update->place.rkeys,
        .length = update->size,
    };

    osc_layout_transfer(op, &copy, update->count, update->type, direction,
                        update->is_short ? RMA_IN_ORDER : RMA_BY_POLICY);
}

static void swap_lock(struct update *update, struct rma_op *op, uint64_t from, uint64_t to)
{
    struct rma_copy word = {
        .local = update->buffer + WORD_OFFSET,
        .regions = rma_buffer_regions(),
        .remote = update->target->info.state + offsetof(struct osc_state, accumulating),
        .rkeys = update->target->info.state_rkeys,
    };

    rma_compare_swap(op, &word, from, to);
}

static uint64_t own_mark(const struct update *update)
{
    return update->window->rank + 1;
}

/* Takes the lock and reads the data. What was read without the lock is read again. */
static bool lock_and_read(struct update *update)
{
    const uint64_t *old = (uint64_t *)(update->buffer + WORD_OFFSET);
    struct osc_sync_op op;

    for (;;) {
        osc_sync_begin(&op, update->target);
        swap_lock(update, &op.op, 0, own_mark(update));
        if (update->reads && update->is_short)
            transfer(update, &op.op, OSC_READ);
        if (!osc_sync_end(&op))
            return false;
        if (!*old || *old == own_mark(update))
            break;
        if (osc_holder_failed(update->window, *old))
            return false;
        rma_wait();
    }
    if (!update->reads || update->is_short)
        return true;
    osc_sync_begin(&op, update->target);
    transfer(update, &op.op, OSC_READ);
    return osc_sync_end(&op);
}

/* Long data must have arrived before the lock is released, which takes one rail only. */
static bool write_long(struct update *update)
{
    struct osc_sync_op op;

    osc_sync_begin(&op, update->target);
    transfer(update, &op.op, OSC_WRITE);
    return osc_sync_end(&op);
}

/* Releases the lock, and the buffer when that is done. */
static bool write_and_unlock(struct update *update, bool writes)
{
    bool ok = !writes || update->is_short || write_long(update);
    struct osc_async_op *op = osc_async_begin(update->window, update->target, update->buffer);

    if (!op)
        return false;
    if (writes && update->is_short)
        transfer(update, osc_async_rma(op), OSC_WRITE);
    swap_lock(update, osc_async_rma(op), own_mark(update), 0);
    osc_async_end(op);
    update->buffer = NULL;
    return ok;
}

static int begin(struct update *update, struct ompi_win_t *win, int rank, ptrdiff_t disp, int count,
                 ompi_datatype_t *type)
{
    size_t size;
    int status;

    ompi_datatype_type_size(type, &size);
    *update = (struct update){ .window = osc_window_of(win),
                               .count = count,
                               .type = type,
                               .size = size * count,
                               .reads = true };
    update->target = &update->window->target[rank];
    update->is_short = update->size <= WORD_OFFSET;
    status = osc_may_access(update->window, update->target);
    if (status == OMPI_SUCCESS)
        status = osc_place(update->window, update->target, disp, count, type, &update->place);
    if (status != OMPI_SUCCESS)
        return status;
    if (!update->is_short && !osc_packed_get(&update->packed, update->size))
        return OMPI_ERR_OUT_OF_RESOURCE;
    mtl_charge(mtl.costs.send);
    mtl.counters.accumulates++;
    update->buffer = rma_buffer_get();
    while (update->target->accumulating)
        rma_wait();
    update->target->accumulating = true;
    return OMPI_SUCCESS;
}

static void end(struct update *update)
{
    update->target->accumulating = false;
    if (update->buffer)
        rma_buffer_put(update->buffer);
    if (!update->is_short)
        osc_packed_put(&update->packed);
}

/* ---- computing ---- */

/* Types with gaps, such as MPI_DOUBLE_INT, cannot be reduced in their packed form. */
static int reduce_with_gaps(struct ompi_op_t *op, ompi_datatype_t *type, int count,
                            const char *packed, char *result)
{
    ptrdiff_t lb, extent;
    struct osc_layout layout;
    char *memory;

    ompi_datatype_get_extent(type, &lb, &extent);
    memory = calloc(2 * count, extent);
    if (!memory)
        return OMPI_ERR_OUT_OF_RESOURCE;
    layout = osc_layout(memory, count, type);
    osc_layout_unpack(&layout, packed);
    layout = osc_layout(memory + count * extent, count, type);
    osc_layout_unpack(&layout, result);
    PMPI_Reduce_local(memory, memory + count * extent, count, type, op);
    osc_layout_pack(&layout, result);
    free(memory);
    return OMPI_SUCCESS;
}

static int reduce(struct ompi_op_t *op, ompi_datatype_t *type, uint64_t size, char *packed,
                  char *result)
{
    ompi_datatype_t *basic = ompi_datatype_get_single_predefined_type_from_args(type);
    ptrdiff_t lb, extent;
    size_t width;

    if (!basic)
        return MPI_ERR_TYPE;
    ompi_datatype_type_size(basic, &width);
    ompi_datatype_get_extent(basic, &lb, &extent);
    if ((size_t)extent != width)
        return reduce_with_gaps(op, basic, size / width, packed, result);
    mtl_charge_copy(size);
    PMPI_Reduce_local(packed, result, size / width, basic, op);
    return OMPI_SUCCESS;
}

/* Replaces the data of the target by the result. */
static int compute(const struct update *update, const struct osc_layout *origin,
                   struct ompi_op_t *op)
{
    char *packed;
    int status;

    if (op == MPI_REPLACE) {
        osc_layout_pack(origin, data_of(update));
        return OMPI_SUCCESS;
    }
    if (origin->contiguous)
        return reduce(op, update->type, update->size, origin->start, data_of(update));
    packed = malloc(origin->size);
    if (!packed)
        return OMPI_ERR_OUT_OF_RESOURCE;
    osc_layout_pack(origin, packed);
    status = reduce(op, update->type, update->size, packed, data_of(update));
    free(packed);
    return status;
}

/* The caller holds the component's lock. 'result' may be NULL. */
static int run(struct update *update, const struct osc_layout *origin,
               const struct osc_layout *result, struct ompi_op_t *op)
{
    bool writes = op != MPI_NO_OP;
    int status = OMPI_SUCCESS;

    update->reads = result || op != MPI_REPLACE;
    if (!lock_and_read(update))
        return mtl_unreachable();
    if (result)
        osc_layout_unpack(result, data_of(update));
    if (writes)
        status = compute(update, origin, op);
    if (!write_and_unlock(update, writes && status == OMPI_SUCCESS))
        return mtl_unreachable();
    return status;
}

/* ---- the calls ---- */

int osc_get_accumulate(const void *origin, int origin_count, ompi_datatype_t *origin_type,
                       void *result, int result_count, ompi_datatype_t *result_type, int rank,
                       ptrdiff_t disp, int count, ompi_datatype_t *type, struct ompi_op_t *op,
                       struct ompi_win_t *win)
{
    bool fetches = result_type != NULL, writes = op != MPI_NO_OP;
    struct osc_layout from = { 0 }, to = { 0 };
    struct update update;
    size_t size;
    int status;

    ompi_datatype_type_size(type, &size);
    if (writes)
        from = osc_layout(origin, origin_count, origin_type);
    if (fetches)
        to = osc_layout(result, result_count, result_type);
    if ((writes && from.size != size * count) || (fetches && to.size != size * count))
        return MPI_ERR_TRUNCATE;
    if (!size || !count)
        return OMPI_SUCCESS;
    mtl_enter();
    status = begin(&update, win, rank, disp, count, type);
    if (status == OMPI_SUCCESS) {
        status = run(&update, &from, fetches ? &to : NULL, op);
        end(&update);
    }
    mtl_leave();
    return status;
}

int osc_accumulate(const void *origin, int origin_count, ompi_datatype_t *origin_type, int target,
                   ptrdiff_t disp, int target_count, ompi_datatype_t *target_type,
                   struct ompi_op_t *op, struct ompi_win_t *win)
{
    return osc_get_accumulate(origin, origin_count, origin_type, NULL, 0, NULL, target, disp,
                              target_count, target_type, op, win);
}

int osc_fetch_and_op(const void *origin, void *result, ompi_datatype_t *type, int target,
                     ptrdiff_t disp, struct ompi_op_t *op, struct ompi_win_t *win)
{
    return osc_get_accumulate(origin, 1, type, result, 1, type, target, disp, 1, type, op, win);
}

int osc_compare_and_swap(const void *origin, const void *compare, void *result,
                         ompi_datatype_t *type, int rank, ptrdiff_t disp, struct ompi_win_t *win)
{
    struct osc_layout from = osc_layout(origin, 1, type), to = osc_layout(result, 1, type);
    struct update update;
    int status;

    mtl_enter();
    status = begin(&update, win, rank, disp, 1, type);
    if (status == OMPI_SUCCESS) {
        bool ok = lock_and_read(&update), equal = false;

        if (ok) {
            osc_layout_unpack(&to, update.buffer);
            equal = !memcmp(update.buffer, compare, update.size);
            if (equal)
                osc_layout_pack(&from, update.buffer);
            ok = write_and_unlock(&update, equal);
        }
        status = ok ? OMPI_SUCCESS : mtl_unreachable();
        end(&update);
    }
    mtl_leave();
    return status;
}

int osc_raccumulate(const void *origin, int origin_count, ompi_datatype_t *origin_type, int target,
                    ptrdiff_t disp, int target_count, ompi_datatype_t *target_type,
                    struct ompi_op_t *op, struct ompi_win_t *win, struct ompi_request_t **request)
{
    *request = &ompi_request_empty;
    return osc_accumulate(origin, origin_count, origin_type, target, disp, target_count,
                          target_type, op, win);
}

int osc_rget_accumulate(const void *origin, int origin_count, ompi_datatype_t *origin_type,
                        void *result, int result_count, ompi_datatype_t *result_type, int target,
                        ptrdiff_t disp, int target_count, ompi_datatype_t *target_type,
                        struct ompi_op_t *op, struct ompi_win_t *win,
                        struct ompi_request_t **request)
{
    *request = &ompi_request_empty;
    return osc_get_accumulate(origin, origin_count, origin_type, result, result_count, result_type,
                              target, disp, target_count, target_type, op, win);
}
