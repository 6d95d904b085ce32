/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/model/cache.h"

void cache_init(struct cache *cache, struct cache_slot *slots, uint64_t capacity, uint64_t ways)
{
    *cache = (struct cache){ .slots = slots, .capacity = capacity };
    cache->sets = capacity > ways ? capacity / ways : 1;
    cache->ways = capacity % cache->sets ? 0 : capacity / cache->sets;
}

static uint64_t first_slot(const struct cache *cache, uint64_t set)
{
    return cache->ways ? set * cache->ways : set * cache->capacity / cache->sets;
}

/* Returns the slot of the entry, or else an empty one, or else the least recently used of its set.
 */
static struct cache_slot *slot_of(const struct cache *cache, uint64_t number)
{
    uint64_t set = number < cache->sets ? number : number % cache->sets;
    struct cache_slot *slot = &cache->slots[first_slot(cache, set)];
    struct cache_slot *end = &cache->slots[first_slot(cache, set + 1)];
    struct cache_slot *oldest = slot;

    for (; slot < end; slot++) {
        if (slot->used && slot->number == number)
            return slot;
        if (slot->used < oldest->used)
            oldest = slot;
    }
    return oldest;
}

bool cache_use(struct cache *cache, uint64_t number, bool *evicted)
{
    struct cache_slot *slot = slot_of(cache, number);
    bool hit = slot->used && slot->number == number;

    *evicted = !hit && slot->used;
    *(hit ? &cache->hits : &cache->misses) += 1;
    *slot = (struct cache_slot){ number, ++cache->uses };
    return hit;
}

void cache_drop(struct cache *cache, uint64_t number)
{
    struct cache_slot *slot = slot_of(cache, number);

    if (slot->used && slot->number == number)
        slot->used = 0;
}
