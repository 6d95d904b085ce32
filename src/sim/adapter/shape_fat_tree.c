/* SPDX-License-Identifier: BSD-2-Clause */
/* Extended generalized fat trees (Ohring and others 1995): a switch of level l has m[l] cables down
 * and w[l + 1] cables up. Only the leaves are oversubscribed. */
#include "sim/adapter/shape.h"

#define LEVELS_MAX 4
#define RADIX_MAX  4096
#define RATIO_MAX  4096

struct tree {
    uint32_t levels, radix, down, up; /* down, up: cables of a leaf */
    uint64_t m[LEVELS_MAX + 1];       /* by level, from 1 */
    uint64_t w[LEVELS_MAX + 2];
    uint64_t ways[LEVELS_MAX + 1];     /* product of w[1..l]: switches of level l above a host */
    uint64_t subtrees[LEVELS_MAX + 1]; /* product of m[l + 1..]: as many as the level has */
    uint32_t first[LEVELS_MAX + 1];    /* number of the first switch of a level */
};

static int read_tree(struct tree *tree, const struct shape_request *request)
{
    const char *at = request->text;
    uint32_t down = 1, up = 1;

    if (!shape_number(&at, '/', LEVELS_MAX, &tree->levels) || tree->levels < 2)
        return shape_fail(request, "fat-tree:LEVELS/RADIX: '%s': levels are 2 to %d", request->text,
                          LEVELS_MAX);
    if (!shape_number(&at, '/', RADIX_MAX, &tree->radix) || tree->radix < 2)
        return shape_fail(request, "fat-tree:%s: a switch has 2 to %d ports", request->text,
                          RADIX_MAX);
    if (*at && (!shape_number(&at, ':', RATIO_MAX, &down) ||
                (*at && !shape_number(&at, '\0', RATIO_MAX, &up)) || *at))
        return shape_fail(request,
                          "fat-tree:%s: the oversubscription of a leaf is its ports for hosts and "
                          "its uplinks, such as 2:1",
                          request->text);
    if ((uint64_t)tree->radix * down % (down + up))
        return shape_fail(request, "fat-tree:%s: %u ports of a leaf cannot be divided %u:%u",
                          request->text, tree->radix, down, up);
    if (tree->levels > 2 && tree->radix % 2)
        return shape_fail(request,
                          "fat-tree:%s: above the leaves half of the ports lead up; %u is odd",
                          request->text, tree->radix);
    tree->down = (uint64_t)tree->radix * down / (down + up);
    tree->up = tree->radix - tree->down;
    return 0;
}

/* The top has as many subtrees as the hosts need. */
static int dimension(struct tree *tree, const struct shape_request *request)
{
    uint64_t hosts = (uint64_t)request->ports->nodes * request->ports->per_node;
    uint64_t below = tree->down, count = 0;
    uint32_t top = tree->levels;

    tree->m[1] = tree->down;
    tree->w[1] = 1;
    tree->w[2] = tree->up;
    for (uint32_t l = 2; l < top; l++) {
        tree->m[l] = tree->w[l + 1] = tree->radix / 2;
        below *= tree->m[l];
    }
    if (hosts > below * tree->radix)
        return shape_fail_full(request, below * tree->radix);
    tree->m[top] = hosts > below ? (hosts + below - 1) / below : 1;
    tree->subtrees[top] = tree->ways[1] = 1;
    for (uint32_t l = top; l > 1; l--)
        tree->subtrees[l - 1] = tree->subtrees[l] * tree->m[l];
    for (uint32_t l = 1; l <= top; l++) {
        tree->ways[l] = l > 1 ? tree->ways[l - 1] * tree->w[l] : 1;
        tree->first[l] = count;
        count += tree->subtrees[l] * tree->ways[l];
        if (count > SHAPE_SWITCHES_MAX)
            return shape_fail_switches(request, count);
    }
    return 0;
}

static void make_level(struct shape *shape, const struct tree *tree, uint32_t l)
{
    static const char *const names[] = { NULL, "leaf", "spine", "core", "top" };

    for (uint64_t i = 0; i < tree->subtrees[l] * tree->ways[l]; i++)
        shape_add_switch(shape, tree->ways[l], "%s%llu", names[l], (unsigned long long)i);
}

static void connect_level(struct shape *shape, const struct tree *tree, uint32_t l)
{
    uint64_t ways = tree->ways[l];

    for (uint64_t i = 0; i < tree->subtrees[l] * ways; i++) {
        uint64_t above = i / ways / tree->m[l + 1] * tree->ways[l + 1] + i % ways;

        for (uint64_t k = 0; k < tree->w[l + 1]; k++)
            shape_add_cable(shape,
                            &(struct shape_cable){ .a = tree->first[l] + i,
                                                   .b = tree->first[l + 1] + above + k * ways,
                                                   .from_a = SHAPE_UP,
                                                   .from_b = SHAPE_DOWN });
    }
}

int shape_fat_tree(struct shape *shape, const struct shape_request *request)
{
    struct tree tree = { .levels = 0 };

    if (read_tree(&tree, request) || dimension(&tree, request))
        return -1;
    shape->rule = SHAPE_UP_DOWN;
    for (uint32_t l = 1; l <= tree.levels; l++)
        make_level(shape, &tree, l);
    for (uint32_t l = 1; l < tree.levels; l++)
        connect_level(shape, &tree, l);
    return shape_attach_blocks(shape, request, tree.down);
}
