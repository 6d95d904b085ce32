/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/sched/vthread_index.h"

#include "hca/proc.h"
#include "sim/sched/sched.h"

#include <string.h>

#define RECHECK_NS 1000000 /* virtual: a waiting guest rechecks its own deadlines this often */

/* When the vthread continues without being woken. */
static uint64_t due_time(const struct vthread *vthread, uint32_t state)
{
    if (state == VTHREAD_READY)
        return vthread->ahead_first ? vthread->ahead_first->created : vthread->clock;
    return state == VTHREAD_WAITING || state == VTHREAD_POLLING ? vthread->deadline : SCHED_NEVER;
}

/* When a waiting guest rechecks: it may have timeouts of its own, or wait for a thread that has not
 * joined. It only does so if virtual time advances anyway. */
static uint64_t recheck_time(const struct vthread *vthread, uint32_t state)
{
    if (state == VTHREAD_POLLING && vthread->guest)
        return vthread->idle_since + round_up(RECHECK_NS, vthread->period);
    return state == VTHREAD_WAITING ? vthread->clock + RECHECK_NS : SCHED_NEVER;
}

static struct vthread *at(uint32_t id)
{
    return id ? &sched->vthreads[id - 1] : NULL;
}

/* ---- winner trees: node 1 is the root, the leaves follow the inner nodes ---- */

static uint64_t time_in(const struct vthread *vthread, const uint32_t *tree)
{
    return tree == sched->index.due ? vthread->due : vthread->recheck;
}

static uint32_t earlier(const uint32_t *tree, uint32_t one, uint32_t other)
{
    uint64_t a, b;

    if (!one || !other)
        return one ? one : other;
    a = time_in(at(one), tree);
    b = time_in(at(other), tree);
    if (a != b)
        return a < b ? one : other;
    if (at(one)->order != at(other)->order)
        return at(one)->order < at(other)->order ? one : other;
    return one < other ? one : other;
}

static void play(uint32_t *tree, uint32_t number)
{
    uint32_t node = sched->index.leaves + number;

    tree[node] = time_in(&sched->vthreads[number], tree) == SCHED_NEVER ? 0 : number + 1;
    for (node /= 2; node; node /= 2)
        tree[node] = earlier(tree, tree[2 * node], tree[2 * node + 1]);
}

/* ---- listeners ---- */

enum vthread_listeners vthread_index_listeners_of(uint32_t key)
{
    return LISTENS_BY_KEY + key * 2654435761u % (LISTENER_LISTS - LISTENS_BY_KEY);
}

static uint32_t listens_to(const struct vthread *vthread, uint32_t state)
{
    if (state == VTHREAD_POLLING)
        return vthread->guest && vthread->tries_others ? LISTENS_TO_ALL : LISTENS_NOT;
    if (state != VTHREAD_WAITING || !vthread->waits_for)
        return LISTENS_NOT;
    if (vthread->waits_for == NOTIFY_LOCK)
        return LISTENS_TO_LOCKS;
    return vthread->waits_key ? vthread_index_listeners_of(vthread->waits_key) : LISTENS_TO_ALL;
}

static void listen_to(struct vthread *vthread, uint32_t list)
{
    uint32_t id = vthread - sched->vthreads + 1, *first = &sched->index.first_listener[list];

    vthread->listens = list;
    if (list == LISTENS_NOT)
        return;
    vthread->next_listener = *first;
    vthread->previous_listener = 0;
    if (*first)
        at(*first)->previous_listener = id;
    *first = id;
}

static void stop_listening(struct vthread *vthread)
{
    if (vthread->listens == LISTENS_NOT)
        return;
    if (vthread->previous_listener)
        at(vthread->previous_listener)->next_listener = vthread->next_listener;
    else
        sched->index.first_listener[vthread->listens] = vthread->next_listener;
    if (vthread->next_listener)
        at(vthread->next_listener)->previous_listener = vthread->previous_listener;
}

struct vthread *vthread_index_first_listener(uint32_t list)
{
    return at(sched->index.first_listener[list]);
}

struct vthread *vthread_index_next_listener(const struct vthread *vthread)
{
    return at(vthread->next_listener);
}

static bool rests(uint32_t state)
{
    return state == VTHREAD_POLLING || state == VTHREAD_BLOCKED || state == VTHREAD_WAITING;
}

void vthread_index_update(struct vthread *vthread)
{
    uint32_t number = vthread - sched->vthreads, state = load_acquire(&vthread->state);
    uint64_t due = due_time(vthread, state), recheck = recheck_time(vthread, state);
    bool changed = due != vthread->due, rechanged = recheck != vthread->recheck;
    uint32_t list = listens_to(vthread, state);

    sched->index.resting += rests(state) - vthread->resting;
    vthread->resting = rests(state);
    vthread->due = due;
    vthread->recheck = recheck;
    if (changed)
        play(sched->index.due, number);
    if (rechanged)
        play(sched->index.recheck, number);
    if (list != vthread->listens) {
        stop_listening(vthread);
        listen_to(vthread, list);
    }
}

/* ---- the whole ---- */

static void build_tree(uint32_t *tree, uint32_t high)
{
    uint32_t leaves = sched->index.leaves;

    for (uint32_t i = 0; i < leaves; i++)
        tree[leaves + i] =
            i < high && time_in(&sched->vthreads[i], tree) != SCHED_NEVER ? i + 1 : 0;
    for (uint32_t node = leaves - 1; node; node--)
        tree[node] = earlier(tree, tree[2 * node], tree[2 * node + 1]);
}

static uint32_t *list_of_pid(int32_t pid)
{
    return &sched->index.first_of_pid[(uint32_t)pid % MAX_PROCS];
}

/* Into the lists of its process. */
static void add_to_process(struct vthread *vthread)
{
    uint32_t id = vthread - sched->vthreads + 1;
    uint32_t *of_proc = &sched->index.first_of_proc[vthread->proc];
    uint32_t *of_pid = list_of_pid(proc_slot(vthread->proc)->pid);

    vthread->next_of_proc = *of_proc;
    *of_proc = id;
    vthread->next_of_pid = *of_pid;
    *of_pid = id;
}

/* A thread that joins meanwhile marks the index as stale when it is ready. */
static void build(void)
{
    struct vthread_index *index = &sched->index;
    uint32_t high = load_acquire(&sched->vthread_high);

    index->leaves = 1;
    while (index->leaves < high)
        index->leaves *= 2;
    index->resting = 0;
    memset(index->first_of_proc, 0, sizeof(index->first_of_proc));
    memset(index->first_of_pid, 0, sizeof(index->first_of_pid));
    memset(index->first_listener, 0, sizeof(index->first_listener));
    for (uint32_t i = 0; i < high; i++) {
        struct vthread *vthread = &sched->vthreads[i];
        uint32_t state = load_acquire(&vthread->state);

        vthread->due = due_time(vthread, state);
        vthread->recheck = recheck_time(vthread, state);
        vthread->resting = rests(state);
        index->resting += vthread->resting;
        listen_to(vthread, listens_to(vthread, state));
        if (state != VTHREAD_FREE && vthread->proc < MAX_PROCS)
            add_to_process(vthread);
    }
    build_tree(index->due, high);
    build_tree(index->recheck, high);
}

void vthread_index_stale(void)
{
    store_release(&sched->index.stale, true);
}

void vthread_index_refresh(void)
{
    if (unlikely(load_acquire(&sched->index.stale))) {
        atomic_exchange(&sched->index.stale, false);
        build();
    }
}

struct vthread *vthread_index_due(void)
{
    return at(sched->index.due[1]);
}

struct vthread *vthread_index_recheck(void)
{
    return at(sched->index.recheck[1]);
}

struct vthread *vthread_index_first_of(uint32_t proc)
{
    return proc < MAX_PROCS ? at(sched->index.first_of_proc[proc]) : NULL;
}

struct vthread *vthread_index_next_of(const struct vthread *vthread)
{
    return at(vthread->next_of_proc);
}

struct vthread *vthread_index_first_of_pid(int32_t pid)
{
    return at(*list_of_pid(pid));
}

struct vthread *vthread_index_next_of_pid(const struct vthread *vthread)
{
    return at(vthread->next_of_pid);
}

bool vthread_index_is_alone(const struct vthread *me)
{
    vthread_index_refresh();
    for (struct vthread *vthread = vthread_index_first_of(me->proc); vthread;
         vthread = vthread_index_next_of(vthread)) {
        if (vthread != me && load_acquire(&vthread->state) != VTHREAD_FREE &&
            vthread->process == me->process)
            return false;
    }
    return true;
}
