/* SPDX-License-Identifier: BSD-2-Clause */
/* The binary form, as LogGOPSim's txt2bin writes it: little endian, nothing aligned. A cookie of 8
 * bytes; then, at offsets that count from behind the cookie: the number of ranks (4), the highest
 * CPU and NIC (1 each), begin and end of each rank (8 each). A rank: the numbers of its operations
 * and of those that require nothing (4 each), the indices of these, the operations, and the indices
 * of operations that require others, to which the operations refer. */
#include "replay/goal.h"

#include "util/util.h"

#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>

#define COOKIE       4223
#define COOKIE_SPENT 2342 /* LogGOPSim has changed the file while it ran */
#define HEADER_BYTES 6
#define OP_BYTES     39

struct view {
    const char *bytes;
    uint64_t length;
    uint64_t left; /* not yet part of a rank */
};

static uint32_t get32(const char *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof(value));
    return le32toh(value);
}

static uint64_t get64(const char *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof(value));
    return le64toh(value);
}

bool goal_is_binary(const char *bytes, size_t length)
{
    return length >= sizeof(uint64_t) && (get64(bytes) == COOKIE || get64(bytes) == COOKIE_SPENT);
}

static void read_op(const char *at, struct goal_op *op)
{
    *op = (struct goal_op){ .kind = at[4],
                            .class = RAILS_NONBLOCKING,
                            .peer = get32(at + 5),
                            .size = get64(at + 9),
                            .tag = get32(at + 17),
                            .cpu = at[21],
                            .nic = at[22] };
}

/* The part of a rank behind its operations. */
struct appendix {
    const char *bytes;
    uint64_t count;
};

/* Adds the successors of operation 'from' that stand at [first, first + count) of the appendix. */
static bool add_successors(struct goal_rank *rank, const struct appendix *appendix, uint32_t from,
                           const char *range, uint32_t flag, struct goal_dependency **next)
{
    uint64_t count = get32(range), first = get32(range + 4);

    if (count > appendix->count || (count && first > appendix->count - count))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t to = get32(appendix->bytes + (first + i) * 4);

        if (to >= rank->count)
            return false;
        *(*next)++ = (struct goal_dependency){ from, to | flag };
    }
    return true;
}

static int read_dependencies(struct goal_rank *rank, uint32_t number, const char *ops,
                             const struct appendix *appendix, char *error, size_t size)
{
    struct goal_dependency *dependencies, *next;
    uint64_t total = 0;
    int status = -1;

    for (uint32_t i = 0; i < rank->count; i++)
        total += (uint64_t)get32(ops + i * (uint64_t)OP_BYTES + 23) +
                 get32(ops + i * (uint64_t)OP_BYTES + 31);
    /* Operations do not share entries, so a file cannot name more than it has. */
    if (total > appendix->count)
        return goal_fail(error, size,
                         "rank %u: %" PRIu64 " dependencies, but the file has room for %" PRIu64,
                         number, total, appendix->count);
    dependencies = next = malloc((total ? total : 1) * sizeof(*dependencies));
    if (!dependencies)
        return goal_fail(error, size, "rank %u: out of memory", number);
    for (uint32_t i = 0; i < rank->count; i++) {
        const char *at = ops + i * (uint64_t)OP_BYTES;

        if (!add_successors(rank, appendix, i, at + 23, 0, &next) ||
            !add_successors(rank, appendix, i, at + 31, GOAL_EDGE_START, &next)) {
            goal_fail(error, size,
                      "rank %u, operation %u: an operation that requires it is out of range",
                      number, i);
            goto free_dependencies;
        }
    }
    status = goal_link(rank, dependencies, total);
    if (status)
        goal_fail(error, size, "rank %u: out of memory", number);
free_dependencies:
    free(dependencies);
    return status;
}

static int read_ops(struct goal_rank *rank, uint32_t number, const char *ops, char *error,
                    size_t size)
{
    rank->ops = calloc(rank->count + 1ull, sizeof(*rank->ops));
    if (!rank->ops)
        return goal_fail(error, size, "rank %u: out of memory for %u operations", number,
                         rank->count);
    for (uint32_t i = 0; i < rank->count; i++) {
        read_op(ops + i * (uint64_t)OP_BYTES, &rank->ops[i]);
        if (rank->ops[i].kind < GOAL_SEND || rank->ops[i].kind > GOAL_CALC)
            return goal_fail(error, size, "rank %u, operation %u: type %u is none of 1, 2 and 3",
                             number, i, rank->ops[i].kind);
    }
    return 0;
}

static int read_rank(struct goal *goal, uint32_t number, struct view *view, char *error,
                     size_t size)
{
    const char *entry = view->bytes + HEADER_BYTES + 16ull * number;
    uint64_t begin = get64(entry), end = get64(entry + 8), needed;
    struct goal_rank *rank = &goal->ranks[number];
    struct appendix appendix;
    const char *ops;

    if (begin > end || end > view->length || end - begin < 8)
        return goal_fail(error, size,
                         "rank %u: its schedule, bytes %" PRIu64 " to %" PRIu64
                         ", is not within the file: is it truncated?",
                         number, begin, end);
    /* Otherwise a small file could ask for any amount of memory. */
    if (end - begin > view->left)
        return goal_fail(error, size, "rank %u: its schedule overlaps with those of other ranks",
                         number);
    view->left -= end - begin;
    rank->count = get32(view->bytes + begin);
    needed = 8 + 4ull * get32(view->bytes + begin + 4) + (uint64_t)OP_BYTES * rank->count;
    if (rank->count > GOAL_OPS_MAX || needed > end - begin)
        return goal_fail(error, size,
                         "rank %u: %u operations do not fit in the %" PRIu64
                         " bytes of its schedule",
                         number, rank->count, end - begin);
    ops = view->bytes + begin + 8 + 4ull * get32(view->bytes + begin + 4);
    appendix.bytes = view->bytes + begin + needed;
    appendix.count = (end - begin - needed) / 4;
    if (read_ops(rank, number, ops, error, size))
        return -1;
    return read_dependencies(rank, number, ops, &appendix, error, size);
}

int goal_binary_parse(struct goal *goal, const char *bytes, size_t length, char *error, size_t size)
{
    struct view view = { .bytes = bytes + 8, .length = length - 8, .left = length - 8 };

    if (get64(bytes) == COOKIE_SPENT)
        return goal_fail(error, size,
                         "a simulation has used up this binary schedule: make it again");
    if (view.length < HEADER_BYTES || (view.length - HEADER_BYTES) / 16 < get32(view.bytes))
        return goal_fail(error, size, "the table of ranks is not complete: is the file truncated?");
    if (goal_make_ranks(goal, get32(view.bytes), error, size))
        return -1;
    for (uint32_t i = 0; i < goal->rank_count; i++) {
        if (read_rank(goal, i, &view, error, size))
            return -1;
    }
    return 0;
}
