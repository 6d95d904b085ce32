/* SPDX-License-Identifier: BSD-2-Clause */
#include "replay/goal.h"

#include "util/file.h"
#include "util/util.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define NAME_SHOWN 40 /* bytes of a label in messages */

int goal_fail(char *error, size_t size, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(error, size, format, list);
    va_end(list);
    return -1;
}

int goal_make_ranks(struct goal *goal, uint64_t count, char *error, size_t size)
{
    if (!count || count > GOAL_RANKS_MAX)
        return goal_fail(error, size, "num_ranks is %" PRIu64 ": give 1 to %u", count,
                         GOAL_RANKS_MAX);
    goal->ranks = calloc(count, sizeof(*goal->ranks));
    if (!goal->ranks)
        return goal_fail(error, size, "out of memory for %" PRIu64 " ranks", count);
    goal->rank_count = count;
    return 0;
}

int goal_link(struct goal_rank *rank, const struct goal_dependency *dependencies, uint64_t count)
{
    uint32_t at = 0;

    if (count > UINT32_MAX)
        return -1;
    rank->edges = malloc((count ? count : 1) * sizeof(*rank->edges));
    if (!rank->edges)
        return -1;
    for (uint64_t i = 0; i < count; i++) {
        rank->ops[dependencies[i].from].first_edge++;
        rank->ops[dependencies[i].to & ~GOAL_EDGE_START].waits++;
    }
    /* first_edge becomes the end of the range, and its beginning once the range is filled. */
    for (uint32_t i = 0; i < rank->count; i++) {
        at += rank->ops[i].first_edge;
        rank->ops[i].first_edge = at;
    }
    rank->ops[rank->count].first_edge = at;
    for (uint64_t i = count; i-- > 0;)
        rank->edges[--rank->ops[dependencies[i].from].first_edge] = dependencies[i].to;
    return 0;
}

static int check_op(const struct goal *goal, uint32_t rank, uint32_t index, char *error,
                    size_t size)
{
    const struct goal_op *op = &goal->ranks[rank].ops[index];
    bool any = op->kind == GOAL_RECV && op->peer == GOAL_ANY;
    char text[160];

    if (op->kind == GOAL_CALC)
        return 0;
    if (!any && op->peer >= goal->rank_count)
        return goal_fail(error, size, "rank %u, %s: rank %u is out of range, num_ranks is %u", rank,
                         goal_describe(goal, rank, index, text, sizeof(text)), op->peer,
                         goal->rank_count);
    if (op->kind == GOAL_SEND && op->tag == GOAL_ANY)
        return goal_fail(error, size, "rank %u, %s: only receives take any tag", rank,
                         goal_describe(goal, rank, index, text, sizeof(text)));
    if (op->size > GOAL_SIZE_MAX)
        return goal_fail(error, size, "rank %u, %s: longer than %llu bytes", rank,
                         goal_describe(goal, rank, index, text, sizeof(text)), GOAL_SIZE_MAX);
    return 0;
}

/* Checks what both forms have in common, and counts. */
static int check(struct goal *goal, char *error, size_t size)
{
    for (uint32_t rank = 0; rank < goal->rank_count; rank++) {
        struct goal_rank *here = &goal->ranks[rank];

        if (!here->ops)
            return goal_fail(error, size,
                             "rank %u has no schedule, though num_ranks is %u: is the file "
                             "truncated?",
                             rank, goal->rank_count);
        here->cpus = 1;
        goal->ops += here->count;
        goal->edges += here->ops[here->count].first_edge;
        for (uint32_t i = 0; i < here->count; i++) {
            const struct goal_op *op = &here->ops[i];

            if (check_op(goal, rank, i, error, size))
                return -1;
            goal->sends += op->kind == GOAL_SEND;
            if (op->cpu >= here->cpus)
                here->cpus = op->cpu + 1;
        }
    }
    return 0;
}

int goal_parse(struct goal *goal, char *bytes, size_t length, char *error, size_t size)
{
    int status;

    *goal = (struct goal){ .text = bytes, .length = length, .class = RAILS_NONBLOCKING };
    if (goal_is_binary(bytes, length)) {
        goal->text = NULL;
        status = goal_binary_parse(goal, bytes, length, error, size);
        free(bytes);
    } else {
        status = goal_text_parse(goal, error, size);
    }
    if (!status)
        status = check(goal, error, size);
    if (status)
        goal_free(goal);
    return status;
}

int goal_read(struct goal *goal, const char *path, char *error, size_t size)
{
    char reason[512];
    size_t length;
    char *bytes =
        file_read(file_is_stdout(path) ? "/dev/stdin" : path, SIZE_MAX / 4, &length, error, size);

    if (!bytes)
        return -1;
    if (!goal_parse(goal, bytes, length, reason, sizeof(reason)))
        return 0;
    return goal_fail(error, size, "%s: %s", path, reason);
}

void goal_free(struct goal *goal)
{
    for (uint32_t i = 0; goal->ranks && i < goal->rank_count; i++) {
        free(goal->ranks[i].ops);
        free(goal->ranks[i].edges);
        free(goal->ranks[i].notes);
    }
    free(goal->ranks);
    free(goal->text);
    *goal = (struct goal){ 0 };
}

const struct goal_note *goal_note_of(const struct goal_rank *rank, uint32_t op)
{
    uint32_t low = 0, high = rank->note_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (rank->notes[middle].op < op)
            low = middle + 1;
        else
            high = middle;
    }
    return low < rank->note_count && rank->notes[low].op == op ? &rank->notes[low] : NULL;
}

/* ---- for messages ---- */

static void describe_peer(const struct goal_op *op, char *text, size_t size)
{
    int used = snprintf(text, size, op->peer == GOAL_ANY ? " -1" : " %u", op->peer);

    if (op->tag == GOAL_ANY)
        snprintf(text + used, size - used, " tag -1");
    else if (op->tag)
        snprintf(text + used, size - used, " tag %u", op->tag);
}

const char *goal_describe(const struct goal *goal, uint32_t rank, uint32_t index, char *text,
                          size_t size)
{
    const struct goal_op *op = &goal->ranks[rank].ops[index];
    char name[NAME_SHOWN + 32], peer[48] = "";

    if (goal->text) {
        size_t label = goal_text_word(goal, op->where);

        snprintf(name, sizeof(name), "%.*s (line %u)", label < NAME_SHOWN ? (int)label : NAME_SHOWN,
                 goal->text + op->where, goal_text_line(goal, op->where));
    } else {
        snprintf(name, sizeof(name), "operation %u", index);
    }
    if (op->kind != GOAL_CALC)
        describe_peer(op, peer, sizeof(peer));
    if (op->kind == GOAL_CALC)
        snprintf(text, size, "%s: calc %" PRIu64, name, op->size);
    else
        snprintf(text, size, "%s: %s %" PRIu64 "b %s%s", name,
                 op->kind == GOAL_SEND ? "send" : "recv", op->size,
                 op->kind == GOAL_SEND ? "to" : "from", peer);
    return text;
}
