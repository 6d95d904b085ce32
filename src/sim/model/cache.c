/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/model/cache.h"

#include "sim/memory/pool.h"
#include "util/util.h"

#include <errno.h>
#include <stddef.h>

#define CHUNK 64 /* slots */

int cache_init(struct cache *cache, uint64_t capacity, uint64_t ways)
{
    *cache = (struct cache){ .capacity = capacity };
    if (!capacity)
        return 0;
    cache->sets = capacity > ways ? capacity / ways : 1;
    cache->ways = capacity % cache->sets ? 0 : capacity / cache->sets;
    cache->most_ways = (capacity + cache->sets - 1) / cache->sets;
    cache->chunks = pool_alloc_permanent((cache->sets * cache->most_ways + CHUNK - 1) / CHUNK *
                                         sizeof(*cache->chunks));
    return cache->chunks ? 0 : ENOMEM;
}

static uint64_t ways_of(const struct cache *cache, uint64_t set)
{
    if (cache->ways)
        return cache->ways;
    return (set + 1) * cache->capacity / cache->sets - set * cache->capacity / cache->sets;
}

static uint64_t index_of(const struct cache *cache, uint64_t set, uint64_t way)
{
    return way ? cache->sets + set * (cache->most_ways - 1) + way - 1 : set;
}

/* Where an entry is, or would be: in an empty slot, or else in the least recently used one. */
struct place {
    uint64_t index;
    struct cache_slot *slot; /* NULL: its chunk has no memory yet */
    uint64_t used;
    bool hit;
};

static struct place find(const struct cache *cache, uint64_t number)
{
    uint64_t set = number < cache->sets ? number : number % cache->sets;
    uint64_t ways = ways_of(cache, set);
    struct place oldest = { .used = UINT64_MAX };

    for (uint64_t way = 0; way < ways; way++) {
        uint64_t index = index_of(cache, set, way);
        struct cache_slot *chunk = cache->chunks[index / CHUNK];
        struct cache_slot *slot = chunk ? &chunk[index % CHUNK] : NULL;
        uint64_t used = slot ? slot->used : 0;

        if (used && slot->number == number)
            return (struct place){ index, slot, used, true };
        if (used < oldest.used)
            oldest = (struct place){ index, slot, used, false };
    }
    return oldest;
}

static struct cache_slot *make_slot(struct cache *cache, uint64_t index)
{
    struct cache_slot **chunk = &cache->chunks[index / CHUNK];

    if (!*chunk)
        *chunk = pool_alloc_permanent(CHUNK * sizeof(**chunk));
    return *chunk ? &(*chunk)[index % CHUNK] : NULL;
}

bool cache_use(struct cache *cache, uint64_t number, struct cache_slot **slot, bool *evicted)
{
    struct place place;

    *evicted = false;
    if (*slot && (*slot)->used && (*slot)->number == number) {
        (*slot)->used = ++cache->uses;
        cache->hits++;
        return true;
    }
    place = find(cache, number);
    *(place.hit ? &cache->hits : &cache->misses) += 1;
    if (unlikely(!place.slot))
        place.slot = make_slot(cache, place.index);
    if (place.slot)
        *place.slot = (struct cache_slot){ number, ++cache->uses };
    *slot = place.slot;
    *evicted = !place.hit && place.used;
    return place.hit;
}

void cache_drop(struct cache *cache, uint64_t number)
{
    struct place place = find(cache, number);

    if (place.hit)
        place.slot->used = 0;
}
