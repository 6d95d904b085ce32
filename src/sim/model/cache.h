/* SPDX-License-Identifier: BSD-2-Clause */
/* A set-associative cache of numbered entries. The least recently used entry of a set is replaced.
 */
#ifndef SIM_MODEL_CACHE_H
#define SIM_MODEL_CACHE_H

#include <stdbool.h>
#include <stdint.h>

struct cache_slot {
    uint64_t number;
    uint64_t used; /* cache->uses at its last use; 0: empty */
};

/* Memory grows with the entries that are used: a thousand adapters may have caches that are nearly
 * empty. Slots are in chunks: the first way of all sets, then the other ways, set by set. */
struct cache {
    struct cache_slot **chunks; /* NULL: all slots of the chunk are empty */
    uint64_t capacity;          /* 0: unlimited */
    uint64_t sets;
    uint64_t ways; /* 0: sets differ in it */
    uint64_t most_ways;
    uint64_t uses;
    uint64_t hits, misses;
};

/* Entry n belongs to set n mod 'sets'. If 'ways' does not divide the capacity, some sets have one
 * more way. Returns 0 or ENOMEM. */
int cache_init(struct cache *cache, uint64_t capacity, uint64_t ways);

/* Returns true on a hit. On a miss, inserts the entry, unless no memory is left; *evicted tells
 * whether it replaced one. The caller remembers in *slot where the entry was, NULL at first. */
bool cache_use(struct cache *cache, uint64_t number, struct cache_slot **slot, bool *evicted);

void cache_drop(struct cache *cache, uint64_t number);

#endif
