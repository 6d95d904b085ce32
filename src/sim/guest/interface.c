/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/guest/interface.h"

#include "hca/observer.h"
#include "hca/proc.h"
#include "hca/segment.h"
#include "sim/engine.h"
#include "sim/model/model.h"
#include "sim/sched/compute.h"
#include "sim/sched/vthread_table.h"
#include "sim/attach.h"

#include <sched.h>

/* Only one thread runs at a time, and switching on one core is several times faster than between
 * cores. */
static void run_on_common_core(void)
{
    cpu_set_t set;

    if (sched->guest_core < 0)
        sched->guest_core = sched_getcpu();
    CPU_ZERO(&set);
    CPU_SET(sched->guest_core, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

static bool begin(struct vthread *reserved)
{
    hca_engine = &sim_engine;
    if (segment_attach() || sim_attach())
        return false;
    run_on_common_core();
    if (!reserved)
        return sched_join_guest();
    sched_adopt(reserved);
    return true;
}

static void before_exec(void)
{
    sched_exiting();
    proc_exec_begin();
}

static void exec_failed(void)
{
    proc_exec_failed();
    sched_exec_failed();
}

static void spin_wait(void)
{
    sched_spin_wait(model->parameters.host.poll_empty, sched_changes(), SCHED_NEVER);
}

static void set_pid(struct vthread *vthread, int pid)
{
    vthread->pid = pid;
    vthread->known_by_pid = true;
}

static void see_faults(void)
{
    hca_faults_seen = true;
}

static bool memory_touched(const void *address, size_t length, const void *pc)
{
    return hca_observer && hca_observer->memory_touched &&
           hca_observer->memory_touched(address, length, pc);
}

__attribute__((visibility("default"))) const struct guest_sched verbena_guest_sched = {
    .begin = begin,
    .before_exec = before_exec,
    .exec_failed = exec_failed,
    .exiting = sched_exiting,
    .joined = sched_joined,
    .watch_unreserved = vthread_watch_unreserved,
    .detach = sched_detach,
    .activity = sched_activity,
    .on_resume = sched_on_resume,
    .guest_number = sched_guest_number,
    .now = sched_now,
    .charge = sched_charge,
    .charge_clock_read = sched_charge_clock_read,
    .spin_wait = spin_wait,
    .poll_idle = sched_poll_idle,
    .wait = sched_wait,
    .found_ready = sched_found_ready,
    .notify = sched_notify,
    .reserve = sched_reserve,
    .adopt = sched_adopt,
    .unreserve = sched_unreserve,
    .set_pid = set_pid,
    .leave = sched_leave,
    .compute_begin = compute_begin,
    .compute_sample = compute_sample,
    .compute_resume = compute_resume,
    .compute_discard = compute_discard,
    .see_faults = see_faults,
    .memory_touched = memory_touched,
};
