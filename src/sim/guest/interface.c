#include "sim/guest/interface.h"

#include "hca/proc.h"
#include "hca/segment.h"
#include "sim/compute.h"
#include "sim/engine.h"
#include "sim/place.h"

#include <sched.h>

/* A hand-over between threads of one core is several times faster than between cores, and only one
 * runs anyway. */
static void run_on_common_core(void)
{
    cpu_set_t set;

    if (world->guest_core < 0)
        world->guest_core = sched_getcpu();
    CPU_ZERO(&set);
    CPU_SET(world->guest_core, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

static bool begin(struct entity *reserved)
{
    hca_engine = &sim_engine;
    if (segment_attach() || world_attach())
        return false;
    run_on_common_core();
    if (!reserved)
        return turn_arrive();
    turn_take(reserved);
    return true;
}

static void before_exec(void)
{
    turn_ending();
    proc_leave();
}

static void spin(void)
{
    turn_spin(world->parameters.host.poll_empty, turn_changes(), TURN_NEVER);
}

static void name(struct entity *entity, int pid)
{
    entity->pid = pid;
    entity->known_by_pid = true;
}

__attribute__((visibility("default"))) const struct guest_turns verbena_guest_turns = {
    .begin = begin,
    .before_exec = before_exec,
    .ending = turn_ending,
    .takes_part = turn_takes_part,
    .watch_strangers = place_watch_strangers,
    .step_out = turn_step_out,
    .activity = turn_activity,
    .on_resume = turn_on_resume,
    .number = turn_number,
    .now = turn_now,
    .charge = turn_charge,
    .glance = turn_glance,
    .spin = spin,
    .idle = turn_idle,
    .wait = turn_wait,
    .stir = turn_stir,
    .reserve = turn_reserve,
    .take = turn_take,
    .give_back = turn_give_back,
    .name = name,
    .leave = turn_leave,
    .computes = compute_begin,
    .look = compute_look,
    .computes_on = compute_go_on,
    .waited = compute_waited,
};
