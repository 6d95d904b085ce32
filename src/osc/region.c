/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the memory of a target is. A dynamic window has a table of the regions that its owner has
 * attached; peers read it before each operation, if its version has changed. */
#include "osc/osc.h"

#include <stdlib.h>

static struct osc_region *own_regions(struct osc_window *window)
{
    return (struct osc_region *)(uintptr_t)osc_regions(window, &window->target[window->rank]);
}

/* Reads memory of the target's state. */
static bool read_state(struct osc_target *target, uint64_t address, void *to, uint64_t length)
{
    struct osc_packed packed;
    struct rma_copy copy = { .remote = address,
                             .rkeys = target->info.state_rkeys,
                             .length = length };
    struct osc_sync_op op;
    bool ok;

    if (!osc_packed_get(&packed, length))
        return false;
    copy.local = packed.data;
    copy.regions = packed.regions;
    osc_sync_begin(&op, target);
    rma_read(&op.op, &copy, RMA_IN_ORDER);
    ok = osc_sync_end(&op);
    if (ok)
        memcpy(to, packed.data, length);
    osc_packed_put(&packed);
    return ok;
}

/* The version and the count. */
static bool read_version(struct osc_target *target, uint64_t version[2])
{
    return read_state(target, target->info.state + offsetof(struct osc_state, version), version,
                      2 * sizeof(uint64_t));
}

/* Reads the table again until it has not changed meanwhile. */
static int update_regions(struct osc_window *window, struct osc_target *target)
{
    uint64_t before[2], after[2];

    if (!read_version(target, after))
        return mtl_unreachable();
    while (after[0] != target->version) {
        struct osc_region *regions;

        memcpy(before, after, sizeof(before));
        if (before[1] > REGIONS_MAX)
            return OMPI_ERROR;
        regions = realloc(target->regions, (before[1] + 1) * sizeof(*regions));
        if (!regions)
            return OMPI_ERR_OUT_OF_RESOURCE;
        target->regions = regions;
        target->region_count = before[1];
        if (before[1] &&
            !read_state(target, osc_regions(window, target), regions, before[1] * sizeof(*regions)))
            return mtl_unreachable();
        if (!read_version(target, after))
            return mtl_unreachable();
        if (before[0] % 2 == 0 && before[0] == after[0])
            target->version = after[0];
    }
    return OMPI_SUCCESS;
}

static int place_dynamic(struct osc_window *window, struct osc_target *target, uint64_t first,
                         uint64_t end, struct osc_place *place)
{
    int status = update_regions(window, target);

    if (status != OMPI_SUCCESS)
        return status;
    for (uint32_t i = 0; i < target->region_count; i++) {
        const struct osc_region *region = &target->regions[i];

        if (first >= region->base && end <= region->base + region->size) {
            place->rkeys = region->rkeys;
            return OMPI_SUCCESS;
        }
    }
    return OMPI_ERR_RMA_RANGE;
}

int osc_place(struct osc_window *window, struct osc_target *target, ptrdiff_t disp, int count,
              ompi_datatype_t *type, struct osc_place *place)
{
    const struct osc_info *info = &target->info;
    int64_t first, end;

    osc_layout_span(count, type, &first, &end);
    if (window->flavor == MPI_WIN_FLAVOR_DYNAMIC) {
        place->address = disp;
        return place_dynamic(window, target, disp + first, disp + end, place);
    }
    place->address = info->base + disp * (int64_t)info->disp_unit;
    place->rkeys = info->rkeys;
    first += disp * (int64_t)info->disp_unit;
    end += disp * (int64_t)info->disp_unit;
    return first >= 0 && end >= first && (uint64_t)end <= info->size ? OMPI_SUCCESS
                                                                     : OMPI_ERR_RMA_RANGE;
}

/* ---- attaching ---- */

static void change_begin(struct osc_state *state)
{
    store_relaxed(&state->version, load_relaxed(&state->version) + 1);
    atomic_thread_fence(memory_order_seq_cst);
}

static void change_end(struct osc_state *state)
{
    store_release(&state->version, load_relaxed(&state->version) + 1);
}

/* An operation may cover several regions that touch: the entry of a new one covers its neighbours.
 */
static void cover_neighbours(struct osc_window *window, uintptr_t *start, uintptr_t *end)
{
    const struct osc_region *regions = own_regions(window);
    bool grown = true;

    while (grown) {
        grown = false;
        for (uint64_t i = 0; i < window->state->region_count; i++) {
            uintptr_t base = regions[i].base, bound = base + regions[i].size;

            if (base > *end || bound < *start || (base >= *start && bound <= *end))
                continue;
            *start = base < *start ? base : *start;
            *end = bound > *end ? bound : *end;
            grown = true;
        }
    }
}

int osc_attach(struct ompi_win_t *win, void *base, size_t size)
{
    struct osc_window *window = osc_window_of(win);
    struct osc_state *state = window->state;
    struct osc_attached *attached;
    struct osc_region *region;
    uintptr_t start = (uintptr_t)base, end = start + size;
    uint64_t index;

    if (window->flavor != MPI_WIN_FLAVOR_DYNAMIC)
        return OMPI_ERR_RMA_FLAVOR;
    if (!size)
        return OMPI_SUCCESS;
    mtl_enter();
    index = state->region_count;
    attached = &window->attached[index];
    cover_neighbours(window, &start, &end);
    if (index == REGIONS_MAX || rma_register((void *)start, end - start, attached->regions)) {
        mtl_leave();
        return OMPI_ERR_RMA_ATTACH;
    }
    attached->base = base;
    change_begin(state);
    region = &own_regions(window)[index];
    *region = (struct osc_region){ .base = start, .size = end - start };
    for (uint32_t i = 0; i < devices.count; i++)
        region->rkeys[i] = attached->regions[i]->rkey;
    state->region_count = index + 1;
    change_end(state);
    mtl_leave();
    return OMPI_SUCCESS;
}

/* The last region takes the place of the one that goes. */
static void remove_region(struct osc_window *window, uint64_t index)
{
    struct osc_state *state = window->state;
    uint64_t last = state->region_count - 1;

    change_begin(state);
    own_regions(window)[index] = own_regions(window)[last];
    state->region_count = last;
    change_end(state);
    rma_deregister(window->attached[index].regions);
    window->attached[index] = window->attached[last];
    memset(&window->attached[last], 0, sizeof(window->attached[last]));
}

int osc_detach(struct ompi_win_t *win, const void *base)
{
    struct osc_window *window = osc_window_of(win);
    uint64_t index = 0;

    if (window->flavor != MPI_WIN_FLAVOR_DYNAMIC)
        return OMPI_ERR_RMA_FLAVOR;
    mtl_enter();
    while (index < window->state->region_count && window->attached[index].base != base)
        index++;
    if (index < window->state->region_count)
        remove_region(window, index);
    mtl_leave();
    return OMPI_SUCCESS;
}
