/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/attach.h"

#include "check/deadlock.h"
#include "hca/arena.h"
#include "hca/proc.h"
#include "hca/shm_lock.h"
#include "sim/memory/pool.h"
#include "sim/model/model.h"
#include "sim/observe/observe.h"
#include "sim/sched/compute.h"
#include "sim/sched/sched.h"
#include "util/log.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct sim_state {
    struct pool_memory memory;
    struct sched sched;
    struct model model;
    struct observe observe;
};

static void deadlocked(uint64_t now, const struct sched_reason *why)
{
    static const struct sched_reason unknown = { "waits", -1, true };

    why = why ? why : &unknown;
    deadlock_report(now, why->what, why->fd, why->outside);
}

static const struct sched_hooks hooks = {
    .dispatch = model_dispatch,
    .before_switch = observe_flush,
    .deadlocked = deadlocked,
};

static void set_pointers(struct sim_state *state)
{
    pool_memory = state ? &state->memory : NULL;
    sched = state ? &state->sched : NULL;
    model = state ? &state->model : NULL;
    observe = state ? &state->observe : NULL;
}

static int read_parameters(void)
{
    struct parameters *parameters = &model->parameters;
    char error[512];

    if (parameters_read(getenv("VERBENA_ADAPTER"), getenv("VERBENA_SET"), parameters, error,
                        sizeof(error))) {
        log_error("%s", error);
        return EINVAL;
    }
    sched->wake_send_ns = llround(parameters->host.wake_send);
    sched->wake_recv_ns = llround(parameters->host.wake_recv);
    return 0;
}

static int read_faults(void)
{
    const char *text = getenv("VERBENA_FAULTS");
    char error[512];

    if (!text || !faults_read(text, &model->faults, error, sizeof(error)))
        return 0;
    log_error("%s", error);
    return EINVAL;
}

static int read_compute(void)
{
    const char *text = getenv("VERBENA_COMPUTE");
    double factor = 0;
    char error[512];

    if (text && compute_read(text, &factor, error, sizeof(error))) {
        log_error("%s", error);
        return EINVAL;
    }
    compute_set(factor);
    return 0;
}

static int create(struct sim_state **created)
{
    struct sim_state *state = arena_alloc_permanent(sizeof(*state));
    int err;

    if (!state)
        return ENOMEM;
    set_pointers(state);
    sched->guest_core = -1;
    err = read_parameters();
    if (!err)
        err = read_faults();
    if (!err)
        err = observe_init();
    if (!err)
        err = model_init();
    *created = state;
    return err;
}

static int attach(void)
{
    uint64_t root = load_acquire(&seg->sim_root);
    struct sim_state *state = NULL;
    int err = 0;

    if (root) {
        state = (struct sim_state *)((char *)seg + root);
        set_pointers(state);
    } else {
        err = create(&state);
        if (!err)
            store_release(&seg->sim_root, seg_offset(state));
    }
    if (!err)
        err = observe_join(!root);
    if (err)
        set_pointers(NULL);
    return err;
}

int sim_attach(void)
{
    int err = read_compute();

    if (err)
        return err;
    if ((uintptr_t)seg != SIM_BASE_ADDRESS) {
        log_error("cannot map the modelled fabric at %#llx: the address range is in use",
                  SIM_BASE_ADDRESS);
        return ENOMEM;
    }
    sched_set_hooks(&hooks);
    shm_lock(&seg->sim_lock);
    err = attach();
    shm_unlock(&seg->sim_lock);
    return err;
}
