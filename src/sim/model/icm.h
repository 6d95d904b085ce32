/* SPDX-License-Identifier: BSD-2-Clause */
/* InfiniHost context memory (ICM): QP contexts (QPC) and address translations (MTT). A cache on the
 * chip holds some of them; the rest is in memory of the adapter or of the host. Entry sizes are
 * those of the InfiniHost ("mthca" driver: a QPC takes 256 bytes, an MTT entry 8). A miss takes
 * several dependent accesses, and the adapter serves one miss at a time. */
#ifndef SIM_MODEL_ICM_H
#define SIM_MODEL_ICM_H

#include "sim/model/bus.h"

#include <stdbool.h>

/* An entry of an LRU cache, embedded in the object it stands for. */
struct cached {
    struct cached *newer, *older;
    bool in_cache;
};

struct cache {
    struct cached *newest, *oldest;
    uint64_t capacity; /* 0: unlimited */
    uint64_t count;
    uint64_t hits, misses;
};

struct icm {
    const struct parameters *parameters;
    struct bus *bus;
    struct server fetcher; /* serves one miss at a time */
    struct cache qpc;
    struct cache mtt;
    struct page_entry *page_entries;
    struct page_entry **page_table;
    uint32_t page_next;
    struct page_entry *page_free;
};

int icm_init(struct icm *icm, const struct parameters *parameters, struct bus *bus);

/* Looks up a QP context; returns when it is in the cache. */
uint64_t icm_qpc(struct icm *icm, struct cached *qp, uint64_t now);

/* Looks up the translations of a memory range; returns when all of them are in the cache. */
uint64_t icm_mtt(struct icm *icm, uint32_t proc, uint64_t address, uint64_t length, uint64_t now);

/* Drops the translations of a deregistered range. */
void icm_invalidate_mtt(struct icm *icm, uint32_t proc, uint64_t address, uint64_t length);

/* Drops the context of a destroyed QP. */
void icm_evict_qpc(struct icm *icm, struct cached *qp);

#endif
