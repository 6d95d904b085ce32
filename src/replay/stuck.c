/* SPDX-License-Identifier: BSD-2-Clause */
#include "replay/stuck.h"

#include "replay/rank.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define RANKS_SHOWN 8
#define OPS_SHOWN   3 /* of a rank */
#define DESCRIBED   192

struct lines {
    char *text;
    size_t size;
    size_t used;
};

static void add(struct lines *lines, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct lines *lines, const char *format, ...)
{
    va_list list;
    int length;

    va_start(list, format);
    length = vsnprintf(lines->text + lines->used, lines->size - lines->used, format, list);
    va_end(list);
    if (length > 0 && (size_t)length < lines->size - lines->used)
        lines->used += length;
    else
        lines->text[lines->used] = '\0';
}

/* ---- operations that never end ---- */

static const char *describe(const struct rank *rank, uint32_t op, char text[DESCRIBED])
{
    return goal_describe(replay_state.goal, rank->number, op, text, DESCRIBED);
}

/* Stores one unmet requirement of each operation. */
static void find_required(const struct rank *rank, uint32_t *required)
{
    const struct goal_rank *schedule = rank->schedule;

    for (uint32_t i = 0; i < schedule->count; i++) {
        const struct goal_op *op = &schedule->ops[i];

        for (uint32_t e = op->first_edge; e < op[1].first_edge; e++) {
            bool start = schedule->edges[e] & GOAL_EDGE_START;

            if (start ? op->state <= OP_READY : op->state != OP_DONE)
                required[schedule->edges[e] & ~GOAL_EDGE_START] = i;
        }
    }
}

/* If no operation of the rank has begun, those that are left require each other: whoever follows
 * one unmet requirement after the other ends in a circle. */
static bool explain_cycle(struct lines *lines, const struct rank *rank)
{
    char a[DESCRIBED], b[DESCRIBED];
    uint32_t *required, at = GOAL_NONE;

    for (uint32_t i = 0; i < rank->schedule->count; i++) {
        uint8_t state = rank_op(rank, i)->state;

        if (state > OP_READY && state != OP_DONE)
            return false;
        if (state == OP_WAITS)
            at = i;
    }
    required = calloc(rank->schedule->count, sizeof(*required));
    if (!required || at == GOAL_NONE) {
        free(required);
        return false;
    }
    find_required(rank, required);
    for (uint32_t i = 0; i < rank->schedule->count; i++)
        at = required[at];
    add(lines, "\nrank %u: operations require each other in a circle: %s requires %s", rank->number,
        describe(rank, at, a), describe(rank, required[at], b));
    free(required);
    return true;
}

static void explain_op(struct lines *lines, const struct rank *rank, uint32_t index)
{
    const struct goal_op *op = rank_op(rank, index);
    char text[DESCRIBED];

    add(lines, "\nrank %u: %s ", rank->number, describe(rank, index, text));
    switch ((enum op_state)op->state) {
    case OP_POSTED:
        add(lines,
            op->peer == GOAL_ANY ? "waits for a message that no rank sends"
                                 : "waits for a message that rank %u does not send",
            op->peer);
        break;
    case OP_OFFERED:
        add(lines, "waits for a receive that rank %u does not post", op->peer);
        break;
    case OP_QUEUED:
        add(lines, "waits for rank %u to receive earlier messages", op->peer);
        break;
    default:
        add(lines, "does not end");
    }
}

static void explain_rank(struct lines *lines, const struct rank *rank)
{
    uint32_t shown = 0, more = 0;

    if (explain_cycle(lines, rank))
        return;
    for (uint32_t i = 0; i < rank->schedule->count; i++) {
        uint8_t state = rank_op(rank, i)->state;

        if (state <= OP_READY || state == OP_DONE)
            continue;
        if (shown < OPS_SHOWN)
            explain_op(lines, rank, i);
        more += shown == OPS_SHOWN;
        shown += shown < OPS_SHOWN;
    }
    if (more)
        add(lines, "\nrank %u: and %u more", rank->number, more);
}

int stuck_explain(char *error, size_t size)
{
    const struct replay_state *state = &replay_state;
    struct lines lines = { error, size, 0 };
    uint32_t shown = 0;

    add(&lines,
        "deadlock at %.3f us: %" PRIu64 " of %u ranks never finish, %" PRIu64
        " operations are left",
        sched->now / 1e3, state->unfinished, state->goal->rank_count, state->ops_left);
    for (uint32_t i = 0; i < state->goal->rank_count && shown < RANKS_SHOWN; i++) {
        if (!state->ranks[i].left)
            continue;
        explain_rank(&lines, &state->ranks[i]);
        shown++;
    }
    if (state->unfinished > shown)
        add(&lines, "\nand %" PRIu64 " more ranks", state->unfinished - shown);
    return -1;
}

/* ---- messages that nobody has received ---- */

int stuck_check_unmatched(char *error, size_t size)
{
    const struct replay_state *state = &replay_state;
    struct lines lines = { error, size, 0 };

    if (!state->unmatched)
        return 0;
    add(&lines, "%" PRIu64 " messages were sent and never received", state->unmatched);
    for (uint32_t i = 0, shown = 0; i < state->goal->rank_count; i++) {
        const struct match_link *all = &state->ranks[i].matching.all;

        for (struct match_link *age = all->next; age != all && shown < RANKS_SHOWN;
             age = age->next, shown++) {
            const struct message *message =
                container_of(container_of(age, struct match_message, age), struct message, match);
            char text[DESCRIBED];

            add(&lines, "\nrank %d: %s: rank %u has no receive for it", message->match.key.source,
                describe(&state->ranks[message->match.key.source], message->send_op, text), i);
        }
    }
    return -1;
}
