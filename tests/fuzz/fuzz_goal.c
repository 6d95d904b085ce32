/* SPDX-License-Identifier: BSD-2-Clause */
/* Schedules from anywhere, as text or binary: whatever is accepted is consistent. */
#include "replay/goal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COOKIE_BYTES 8

static void demand(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "violated: %s\n", what);
    abort();
}

static void check_rank(const struct goal *goal, uint32_t number)
{
    const struct goal_rank *rank = &goal->ranks[number];
    uint64_t waits = 0;
    char text[256];

    for (uint32_t i = 0; i < rank->count; i++) {
        const struct goal_op *op = &rank->ops[i];

        demand(op->first_edge <= op[1].first_edge, "edges are in order");
        demand(op->kind >= GOAL_SEND && op->kind <= GOAL_CALC, "the kind is one of three");
        demand(op->cpu < rank->cpus, "there are enough processors");
        demand(op->kind == GOAL_CALC || op->peer < goal->rank_count ||
                   (op->kind == GOAL_RECV && op->peer == GOAL_ANY),
               "the peer is a rank");
        waits += op->waits;
        goal_describe(goal, number, i, text, sizeof(text));
    }
    for (uint32_t i = 0; i < rank->ops[rank->count].first_edge; i++)
        demand((rank->edges[i] & ~GOAL_EDGE_START) < rank->count, "edges lead to operations");
    demand(waits == rank->ops[rank->count].first_edge, "each edge is a requirement");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first byte decides which form the rest is: the fuzzer need not guess the cookie. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t cookie = size && data[0] & 1 ? COOKIE_BYTES : 0;
    char *bytes = malloc(size + COOKIE_BYTES), error[512] = "";
    struct goal goal;

    if (!size) {
        free(bytes);
        return 0;
    }
    memcpy(bytes, "\x7f\x10\0\0\0\0\0\0", COOKIE_BYTES);
    memcpy(bytes + cookie, data + 1, size - 1);
    if (goal_parse(&goal, bytes, cookie + size - 1, error, sizeof(error))) {
        demand(*error, "a refusal has a reason");
        return 0;
    }
    for (uint32_t i = 0; i < goal.rank_count; i++)
        check_rank(&goal, i);
    goal_free(&goal);
    return 0;
}
