/* What the adapter must know of a queue or a page before it can work: kept in a cache on the chip, and
 * behind it in memory of its own or of the host. Entries and their sizes are those of the InfiniHost
 * ("mthca" driver: a queue context is 256 bytes, a translation 8); a miss takes several dependent
 * accesses, one after the other, for all queues of the adapter. */
#ifndef SIM_MODELS_CONTEXT_H
#define SIM_MODELS_CONTEXT_H

#include "sim/model/bus.h"

#include <stdbool.h>

/* Least recently used goes first. Embedded in what it stands for. */
struct cached {
    struct cached *newer, *older;
    bool inside;
};

struct cache {
    struct cached *newest, *oldest;
    uint64_t capacity; /* 0: everything fits */
    uint64_t count;
    uint64_t hits, misses;
};

struct icm {
    const struct parameters *parameters;
    struct bus *bus;
    struct server unit; /* fetches one entry at a time */
    struct cache qpc; /* QP contexts */
    struct cache mtt; /* translations of pages */
    struct page_entry *page_entries;
    struct page_entry **page_table;
    uint32_t page_next;
    struct page_entry *page_free;
};

int icm_init(struct icm *icm, const struct parameters *parameters,
                 struct bus *bus);

/* The context of a queue is needed; returns when it is there. */
uint64_t icm_qpc(struct icm *icm, struct cached *qp, uint64_t now);

/* The translations of a range of a process's memory. */
uint64_t icm_mtt(struct icm *icm, uint32_t proc, uint64_t address,
                       uint64_t length, uint64_t now);

/* The translations of that range are not valid any more. */
void icm_forget_mtt(struct icm *icm, uint32_t proc, uint64_t address,
                          uint64_t length);

/* The queue is gone. */
void icm_forget_qpc(struct icm *icm, struct cached *qp);

#endif
