/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/guest/interface.h"

#include "hca/proc.h"
#include "hca/segment.h"
#include "sim/engine.h"
#include "sim/model/model.h"
#include "sim/sched/compute.h"
#include "sim/sched/vthread_table.h"
#include "sim/attach.h"

#include <sched.h>

/* A hand-over between threads of one core is several times faster than between cores, and only one
 * runs anyway. */
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
    sched_not_ending();
}

static void spin(void)
{
    sched_spin_wait(model->parameters.host.poll_empty, sched_changes(), SCHED_NEVER);
}

static void name(struct vthread *vthread, int pid)
{
    vthread->pid = pid;
    vthread->known_by_pid = true;
}

__attribute__((visibility("default"))) const struct guest_sched verbena_guest_sched = {
    .begin = begin,
    .before_exec = before_exec,
    .exec_failed = exec_failed,
    .ending = sched_exiting,
    .takes_part = sched_joined,
    .watch_strangers = vthread_watch_unannounced,
    .step_out = sched_step_out,
    .activity = sched_activity,
    .on_resume = sched_on_resume,
    .number = sched_guest_number,
    .now = sched_now,
    .charge = sched_charge,
    .glance = sched_look_at_clock,
    .spin = spin,
    .idle = sched_poll_idle,
    .wait = sched_wait,
    .stir = sched_notify,
    .reserve = sched_reserve,
    .take = sched_adopt,
    .give_back = sched_unreserve,
    .name = name,
    .leave = sched_leave,
    .computes = compute_begin,
    .look = compute_look,
    .computes_on = compute_go_on,
    .waited = compute_waited,
};
