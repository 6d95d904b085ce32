/* SPDX-License-Identifier: BSD-2-Clause */
#include "replay/replay.h"

#include "replay/fabric.h"
#include "replay/rank.h"
#include "replay/stuck.h"
#include "sim/model/hca.h"
#include "sim/model/prefetch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define EVENTS_PER_CHECK (1u << 18)
#define PROGRESS_NS      1000000000ull
#define STEP1_AHEAD      4 /* events */
#define STEP2_AHEAD      1

struct replay_state replay_state;

static int make_ranks(struct goal *goal, char *error, size_t size)
{
    struct replay_state *state = &replay_state;

    state->messages.size = sizeof(struct message);
    state->cqes.size = sizeof(struct rank_cqe);
    state->receives.size = sizeof(struct receive);
    state->peers.size = sizeof(struct peer) + state->rails * sizeof(struct peer_rail);
    state->transfers.size = sizeof(struct transfer);
    state->sents.size = sizeof(struct sent);
    state->ranks = calloc(goal->rank_count, sizeof(*state->ranks));
    if (!state->ranks)
        return goal_fail(error, size, "out of memory for %u ranks", goal->rank_count);
    for (uint32_t i = 0; i < goal->rank_count; i++) {
        struct rank *rank = &state->ranks[i];

        rank->number = i;
        rank->node = i / state->ranks_per_node;
        rank->schedule = &goal->ranks[i];
        if (rank_init(rank) || (goal->connects && !wireup_init(rank)))
            return goal_fail(error, size, "out of memory for rank %u of %u", i, goal->rank_count);
        state->unfinished += rank->left > 0;
    }
    state->next_qpn = round_up(state->next_qpn, 2);
    return 0;
}

/* Every processor begins at time 0, with the operations that require nothing. */
static void start_rank(struct rank *rank)
{
    for (uint32_t i = 0; i < rank->schedule->cpus; i++)
        event_at(0, EVENT_CPU, &rank->cpus[i], 0);
    for (uint32_t i = 0; i < rank->schedule->count; i++) {
        if (!rank_op(rank, i)->waits)
            rank_make_ready(&rank->cpus[rank_op(rank, i)->cpu], i);
    }
}

static void dispatch(const struct event *event)
{
    switch (event->kind) {
    case EVENT_CPU:
        rank_run_cpu(event->object);
        break;
    case EVENT_SHARED:
        peer_shared_arrived(event->object);
        break;
    default:
        model_dispatch(event);
    }
}

/* What the next events need, in two steps: see sim/model/prefetch.h. */
static void look_ahead(void)
{
    const struct event_entry *near = event_ahead(STEP2_AHEAD);
    const struct event_entry *far = event_ahead(STEP1_AHEAD);

    if (near && near->kind == EVENT_CPU)
        rank_prefetch_work(near->object);
    else if (near)
        prefetch_step2(near);
    if (far && far->kind == EVENT_CPU)
        prefetch_bytes(((const struct cpu *)far->object)->rank, sizeof(struct rank));
    else if (far)
        prefetch_step1(far);
}

static void show_progress(uint64_t *shown_at)
{
    const struct replay_state *state = &replay_state;
    uint64_t now = now_ns(), ops = state->goal->ops;

    if (now - *shown_at < PROGRESS_NS)
        return;
    *shown_at = now;
    fprintf(stderr,
            "\r%3.0f%% of %" PRIu64 " operations, %.1f million events, virtual time %.6f s ",
            100.0 * (ops - state->ops_left) / ops, ops, sched->events_run / 1e6, sched->now / 1e9);
}

/* Runs events until all operations are done and no message is left, or nothing can happen any
 * more. */
static void run_events(const struct replay_settings *settings)
{
    const struct replay_state *state = &replay_state;
    uint64_t shown_at = now_ns(), time;
    bool shown = false;

    while ((state->unfinished || state->unmatched) && !state->out_of_memory && !*state->failure &&
           event_next_time(&time)) {
        struct event event;

        event_pop(&event);
        look_ahead();
        if (event.time > sched->now)
            sched->now = event.time;
        dispatch(&event);
        if (++sched->events_run % EVENTS_PER_CHECK == 0 && settings->progress) {
            uint64_t before = shown_at;

            show_progress(&shown_at);
            shown |= shown_at != before;
        }
    }
    if (shown)
        fprintf(stderr, "\r%78s\r", "");
}

static int collect(struct replay_result *result, char *error, size_t size)
{
    const struct replay_state *state = &replay_state;

    result->ranks = calloc(state->goal->rank_count, sizeof(*result->ranks));
    if (!result->ranks)
        return goal_fail(error, size, "out of memory for the results of %u ranks",
                         state->goal->rank_count);
    for (uint32_t i = 0; i < state->goal->rank_count; i++) {
        const struct rank *rank = &state->ranks[i];

        result->ranks[i] = (struct replay_rank_result){ .finish_ns = rank->finished_at,
                                                        .sent = rank->sent,
                                                        .sent_bytes = rank->sent_bytes,
                                                        .received = rank->received };
        result->messages += rank->sent;
        result->bytes += rank->sent_bytes;
        if (rank->finished_at > result->total_ns)
            result->total_ns = rank->finished_at;
    }
    for (uint32_t i = 1; i < model->port_count; i++)
        result->packets += model->ports[i].packets_out;
    result->lost = model->fabric.lost;
    snprintf(result->adapter, sizeof(result->adapter), "%s", model->parameters.name);
    result->connections = state->connections;
    result->events = sched->events_run;
    result->memory_bytes = fabric_memory();
    return 0;
}

static uint64_t cpu_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static int play(const struct replay_settings *settings, struct replay_result *result, char *error,
                size_t size)
{
    struct replay_state *state = &replay_state;
    uint64_t began = now_ns(), cpu_began = cpu_ns();

    if (make_ranks(state->goal, error, size))
        return -1;
    for (uint32_t i = 0; i < state->goal->rank_count; i++)
        start_rank(&state->ranks[i]);
    run_events(settings);
    result->wall_seconds = (now_ns() - began) / 1e9;
    result->cpu_seconds = (cpu_ns() - cpu_began) / 1e9;
    if (state->out_of_memory)
        return goal_fail(error, size, "out of memory after %" PRIu64 " events", sched->events_run);
    if (*state->failure)
        return goal_fail(error, size, "%s", state->failure);
    if (state->unfinished)
        return stuck_explain(error, size);
    return stuck_check_unmatched(error, size) ? -1 : collect(result, error, size);
}

/* At most: with a QP for each rail of each connection, and one for wireup. */
static uint64_t count_qps(const struct goal *goal, uint32_t rails)
{
    uint64_t pairs = (uint64_t)goal->rank_count * goal->rank_count;

    return rails * (pairs < 2 * goal->sends ? pairs : 2 * goal->sends) +
           (goal->connects ? goal->rank_count : 0);
}

static void init_state(struct goal *goal, const struct replay_settings *settings)
{
    struct replay_state *state = &replay_state;

    *state = (struct replay_state){ .goal = goal,
                                    .ranks_per_node = settings->ranks_per_node,
                                    .eager_limit = settings->eager_limit,
                                    .devices = settings->devices,
                                    .ports = settings->ports,
                                    .paths = settings->devices * settings->ports,
                                    .policy = rails_policies[settings->policy],
                                    .ops_left = goal->ops,
                                    .next_qpn = 2 };
    state->rails =
        settings->qps * state->paths < RAILS_MAX ? settings->qps * state->paths : RAILS_MAX;
}

int replay_run(struct goal *goal, const struct replay_settings *settings,
               struct replay_result *result, char *error, size_t size)
{
    struct replay_state *state = &replay_state;
    struct fabric_size wanted = { .nodes = (goal->rank_count + settings->ranks_per_node - 1) /
                                           settings->ranks_per_node,
                                  .devices = settings->devices,
                                  .ports = settings->ports };
    int status;

    init_state(goal, settings);
    *result = (struct replay_result){ .nodes = wanted.nodes,
                                      .rails = state->rails,
                                      .policy = state->policy->name };
    wanted.qps = count_qps(goal, state->rails);
    status = fabric_open(settings, &wanted, error, size);
    if (!status)
        status = play(settings, result, error, size);
    for (uint32_t i = 0; state->ranks && i < goal->rank_count; i++)
        rank_free(&state->ranks[i]);
    free(state->ranks);
    state->ranks = NULL;
    return status;
}
