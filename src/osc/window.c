/* SPDX-License-Identifier: BSD-2-Clause */
/* Creating and freeing windows. Creation is collective: the processes connect their rails, so that
 * nothing has to be agreed on later, and tell each other where their memory is. */
#include "osc/osc.h"

#include "mtl/log.h"
#include "mtl/openmpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* ---- the state, as peers address it ---- */

static uint64_t counters_of(const struct osc_target *target)
{
    return target->info.state + sizeof(struct osc_state);
}

uint64_t osc_posted(const struct osc_window *window, const struct osc_target *target, int by)
{
    return counters_of(target) + by * sizeof(uint64_t);
}

uint64_t osc_completed(const struct osc_window *window, const struct osc_target *target, int by)
{
    return counters_of(target) + (window->ranks + by) * sizeof(uint64_t);
}

uint64_t osc_regions(const struct osc_window *window, const struct osc_target *target)
{
    return counters_of(target) + 2 * window->ranks * sizeof(uint64_t);
}

static size_t state_size(const struct osc_window *window)
{
    size_t regions =
        window->flavor == MPI_WIN_FLAVOR_DYNAMIC ? REGIONS_MAX * sizeof(struct osc_region) : 0;

    return sizeof(struct osc_state) + 2 * window->ranks * sizeof(uint64_t) + regions;
}

/* ---- memory ---- */

/* Pages of their own: the adapter can map them for its peers. */
static void *map(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory != MAP_FAILED)
        return memory;
    mtl_log("cannot map %zu bytes for a window", size);
    return NULL;
}

static bool provide_memory(struct osc_window *window, void **base, size_t size)
{
    if (window->flavor == MPI_WIN_FLAVOR_DYNAMIC) {
        window->attached = calloc(REGIONS_MAX, sizeof(*window->attached));
        return window->attached != NULL;
    }
    if (window->flavor == MPI_WIN_FLAVOR_ALLOCATE) {
        window->memory_size = size ? size : 1;
        window->memory = map(window->memory_size);
        if (!window->memory)
            return false;
        *base = window->memory;
    }
    return !size || !rma_register(*base, size, window->regions);
}

static bool provide_state(struct osc_window *window)
{
    window->state_size = state_size(window);
    window->state = map(window->state_size);
    return window->state && !rma_register(window->state, window->state_size, window->state_regions);
}

static void fill_info(struct osc_window *window, const void *base, size_t size, int disp_unit,
                      struct osc_info *info)
{
    *info = (struct osc_info){ .base = (uintptr_t)base,
                               .size = size,
                               .state = (uintptr_t)window->state,
                               .disp_unit = disp_unit,
                               .keys = rma_keys_of(window->regions),
                               .state_keys = rma_keys_of(window->state_regions) };
}

/* ---- peers ---- */

static bool open_peers(struct osc_window *window, struct rma_hello *hellos)
{
    for (int i = 0; i < window->ranks; i++) {
        struct rma_peer *peer = rma_peer_of(ompi_comm_peer_lookup(window->comm, i));

        if (!peer)
            return false;
        window->target[i].peer = peer;
        rma_begin(&window->target[i].short_puts, peer, NULL);
        rma_say_hello(peer, &hellos[i]);
    }
    return true;
}

static bool connect_peers(struct osc_window *window, const struct rma_hello *hellos)
{
    for (int i = 0; i < window->ranks; i++) {
        if (!hellos[i].rail_count || rma_connect(window->target[i].peer, &hellos[i]))
            return false;
    }
    return true;
}

/* Every process takes part in both collectives, whatever has failed before. When the second is
 * over, all processes are connected. */
static int exchange(struct osc_window *window, void **base, size_t size, int disp_unit)
{
    struct mca_coll_base_comm_coll_t *coll = window->comm->c_coll;
    struct rma_hello *hellos = calloc(2 * window->ranks, sizeof(*hellos));
    struct osc_info *infos = calloc(window->ranks, sizeof(*infos));
    struct osc_info *own;
    bool ok = false;
    int status = OMPI_ERR_OUT_OF_RESOURCE;

    if (!hellos || !infos)
        goto free;
    mtl_enter();
    ok = !rma_buffers_open() && provide_memory(window, base, size) && provide_state(window) &&
         open_peers(window, hellos);
    mtl_leave();
    if (!ok)
        memset(hellos, 0, window->ranks * sizeof(*hellos));
    status =
        coll->coll_alltoall(hellos, sizeof(*hellos), MPI_BYTE, hellos + window->ranks,
                            sizeof(*hellos), MPI_BYTE, window->comm, coll->coll_alltoall_module);
    if (status != OMPI_SUCCESS)
        goto free;
    mtl_enter();
    ok = ok && connect_peers(window, hellos + window->ranks);
    mtl_leave();
    own = &infos[window->rank];
    if (ok)
        fill_info(window, base ? *base : NULL, size, disp_unit, own);
    own->failed = !ok;
    status = coll->coll_allgather(MPI_IN_PLACE, 0, MPI_BYTE, infos, sizeof(*infos), MPI_BYTE,
                                  window->comm, coll->coll_allgather_module);
    for (int i = 0; i < window->ranks && status == OMPI_SUCCESS; i++) {
        window->target[i].info = infos[i];
        if (infos[i].failed)
            status = OMPI_ERR_OUT_OF_RESOURCE;
    }
free:
    free(infos);
    free(hellos);
    return status;
}

/* ---- windows ---- */

static const ompi_osc_base_module_t functions = {
    .osc_win_attach = osc_attach,
    .osc_win_detach = osc_detach,
    .osc_free = osc_window_free,
    .osc_put = osc_put,
    .osc_get = osc_get,
    .osc_accumulate = osc_accumulate,
    .osc_compare_and_swap = osc_compare_and_swap,
    .osc_fetch_and_op = osc_fetch_and_op,
    .osc_get_accumulate = osc_get_accumulate,
    .osc_rput = osc_rput,
    .osc_rget = osc_rget,
    .osc_raccumulate = osc_raccumulate,
    .osc_rget_accumulate = osc_rget_accumulate,
    .osc_fence = osc_fence,
    .osc_start = osc_start,
    .osc_complete = osc_complete,
    .osc_post = osc_post,
    .osc_wait = osc_wait,
    .osc_test = osc_test,
    .osc_lock = osc_lock,
    .osc_unlock = osc_unlock,
    .osc_lock_all = osc_lock_all,
    .osc_unlock_all = osc_unlock_all,
    .osc_sync = osc_sync,
    .osc_flush = osc_flush,
    .osc_flush_all = osc_flush_all,
    .osc_flush_local = osc_flush,
    .osc_flush_local_all = osc_flush_all,
};

static void window_release(struct osc_window *window)
{
    mtl_enter();
    for (uint64_t i = 0; window->attached && window->state && i < window->state->region_count; i++)
        rma_deregister(window->attached[i].regions);
    rma_deregister(window->regions);
    rma_deregister(window->state_regions);
    mtl_leave();
    free(window->attached);
    if (window->state)
        munmap(window->state, window->state_size);
    if (window->memory)
        munmap(window->memory, window->memory_size);
    for (int i = 0; i < window->ranks; i++)
        free(window->target[i].regions);
    if (window->comm)
        ompi_comm_free(&window->comm);
    free(window);
}

int osc_window_create(struct ompi_win_t *win, void **base, size_t size, int disp_unit,
                      ompi_communicator_t *comm, int flavor)
{
    int ranks = ompi_comm_size(comm), status;
    struct osc_window *window = calloc(1, sizeof(*window) + ranks * sizeof(struct osc_target));
    char name[MPI_MAX_OBJECT_NAME];

    if (!window)
        return OMPI_ERR_OUT_OF_RESOURCE;
    window->super = functions;
    window->win = win;
    window->flavor = flavor;
    window->rank = ompi_comm_rank(comm);
    window->ranks = ranks;
    status = ompi_comm_dup(comm, &window->comm);
    if (status == OMPI_SUCCESS)
        status = exchange(window, base, size, disp_unit);
    if (status != OMPI_SUCCESS) {
        window_release(window);
        return status;
    }
    win->w_osc_module = &window->super;
    snprintf(name, sizeof(name), "verbena window %u", openmpi_context(window->comm));
    ompi_win_set_name(win, name);
    return OMPI_SUCCESS;
}

int osc_window_free(struct ompi_win_t *win)
{
    struct osc_window *window = osc_window_of(win);
    struct mca_coll_base_comm_coll_t *coll = window->comm->c_coll;

    if ((window->access != OSC_NO_ACCESS && window->access != OSC_FENCED) || window->exposed)
        return OMPI_ERR_RMA_SYNC;
    mtl_enter();
    osc_drain(window, NULL);
    mtl_leave();
    coll->coll_barrier(window->comm, coll->coll_barrier_module);
    window_release(window);
    return OMPI_SUCCESS;
}
