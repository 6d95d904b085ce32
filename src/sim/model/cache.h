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

struct cache {
    struct cache_slot *slots; /* of 'capacity' entries, set after set */
    uint64_t capacity;        /* 0: unlimited */
    uint64_t sets;
    uint64_t ways; /* 0: sets differ in it */
    uint64_t uses;
    uint64_t hits, misses;
};

/* Entry n belongs to set n mod 'sets'. 'slots' is zeroed memory for 'capacity' slots. If 'ways'
 * does not divide the capacity, some sets have one more way. */
void cache_init(struct cache *cache, struct cache_slot *slots, uint64_t capacity, uint64_t ways);

/* Returns true on a hit. On a miss, inserts the entry; *evicted tells whether it replaced one. */
bool cache_use(struct cache *cache, uint64_t number, bool *evicted);

void cache_drop(struct cache *cache, uint64_t number);

#endif
