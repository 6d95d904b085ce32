/* SPDX-License-Identifier: BSD-2-Clause */
#include "mtl/blocks.h"

#include "util/util.h"

#include <stdlib.h>

/* The allocator is good at shorter ones. A list for each power of two, and the header of a message.
 */
#define SHORTEST (4u << 10)
#define SIZES    8
#define LONGEST  (SHORTEST << (SIZES - 1))
#define HEADER   256

struct block {
    struct block *next;
};

static struct block *kept[SIZES];
static size_t kept_bytes;

static bool is_kept(size_t size)
{
    return size >= SHORTEST + HEADER && size <= LONGEST + HEADER;
}

static size_t rounded(size_t size)
{
    return round_up_pow2(size - HEADER);
}

static struct block **list_of(size_t size)
{
    return &kept[__builtin_ctz(rounded(size) / SHORTEST)];
}

void *blocks_get(size_t size)
{
    struct block **list, *block;

    if (!is_kept(size))
        return malloc(size);
    list = list_of(size);
    block = *list;
    if (!block)
        return malloc(rounded(size) + HEADER);
    *list = block->next;
    kept_bytes -= rounded(size);
    return block;
}

void blocks_put(void *memory, size_t size)
{
    struct block **list, *block = memory;

    if (!is_kept(size) || kept_bytes + rounded(size) > BLOCKS_KEPT_MAX) {
        free(memory);
        return;
    }
    list = list_of(size);
    block->next = *list;
    *list = block;
    kept_bytes += rounded(size);
}

size_t blocks_kept(void)
{
    return kept_bytes;
}

void blocks_free(void)
{
    for (int i = 0; i < SIZES; i++) {
        for (struct block *block = kept[i], *next; block; block = next) {
            next = block->next;
            free(block);
        }
        kept[i] = NULL;
    }
    kept_bytes = 0;
}
