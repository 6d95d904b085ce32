/* SPDX-License-Identifier: BSD-2-Clause */
/* The virtual-time calls of verbena.h. */

#include "verbs/verbs.h"

#include "sim/engine.h"
#include "sim/model/model.h"
#include "sim/sched/sched.h"
#include "verbena.h"

/* Joins the fabric on first use. */
static bool in_virtual_time(void)
{
    if (likely(hca_engine != &sim_engine))
        return false;
    return sched || (!ensure_attached() && !hca_engine->start());
}

EXPORT int verbena_is_virtual(void)
{
    return in_virtual_time();
}

EXPORT uint64_t verbena_now(void)
{
    return in_virtual_time() ? sched_read_clock() : 0;
}

EXPORT void verbena_compute(uint64_t ns)
{
    if (in_virtual_time())
        sched_charge(ns);
}

EXPORT void verbena_copy(uint64_t bytes)
{
    if (in_virtual_time())
        sched_charge(model->parameters.host.copy_call + bytes / model->parameters.host.copy_rate);
}

EXPORT int verbena_parameter(const char *key, double *value)
{
    if (!in_virtual_time() || parameter_number(&model->parameters, key, value))
        return ENOENT;
    return 0;
}

EXPORT uint32_t verbena_changes(void)
{
    return in_virtual_time() ? sched_changes() : 0;
}

EXPORT int verbena_spin(uint32_t changes, uint64_t until)
{
    return in_virtual_time() && sched_spin_wait(model->parameters.host.poll_empty, changes, until);
}

EXPORT void verbena_poll_only(struct ibv_cq *cq)
{
    if (in_virtual_time())
        sched_poll_only(cq ? ((struct hca_cq *)cq)->shared : NULL);
}

EXPORT void verbena_polls_on(int on)
{
    if (in_virtual_time())
        sched_polls_on(on);
}

EXPORT uint64_t verbena_stalled(void)
{
    return in_virtual_time() ? sched_stalled_ms() : 0;
}

EXPORT uint64_t verbena_icm_memory(void)
{
    return in_virtual_time() ? sim_icm_host_bytes() : 0;
}

EXPORT void verbena_memory_written(int pid)
{
    if (in_virtual_time())
        sched_memory_written(pid);
}

EXPORT void verbena_barrier_begin(uint32_t count)
{
    if (in_virtual_time())
        sched_barrier_begin(count);
}

EXPORT void verbena_barrier_end(int all)
{
    if (in_virtual_time())
        sched_barrier_end(all);
}

EXPORT void verbena_leave(void)
{
    if (sched)
        sched_leave();
}
