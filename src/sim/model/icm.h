/* SPDX-License-Identifier: BSD-2-Clause */
/* InfiniHost context memory (ICM): QP contexts (QPC) and address translations (MTT). Caches on the
 * chip hold some of them; the rest is in memory of the adapter or of the host. A miss takes several
 * dependent accesses; the adapter serves icm.misses of them at a time. */
#ifndef SIM_MODEL_ICM_H
#define SIM_MODEL_ICM_H

#include "sim/memory/pool.h"
#include "sim/model/bus.h"
#include "sim/model/cache.h"

struct icm_line;

/* A QP context. */
struct icm_context {
    uint64_t number;
    struct cache_slot *slot; /* where it was in the cache */
};

/* What every lookup needs comes first. */
struct icm {
    struct cache qpc;
    const struct parameters *parameters;
    struct cache mtt;
    struct bus *bus;
    uint64_t answered_at; /* the last lookup of a context, if they are in order */
    uint64_t line_pages;  /* pages that a line translates */
    uint64_t *table;      /* of lines, open hash table */
    uint32_t buckets;     /* a power of two */
    uint32_t known_words; /* of the bit mask of a line */
    struct pool used_lines;
    uint64_t lines; /* of the MTT: the next number */
    uint64_t contexts, contexts_in_use; /* the next number; QPs that have one */
    uint64_t regions, region_pages;     /* that are registered */
    struct server fetcher; /* serves misses, icm.misses at a time; busy if all of them are */
    uint64_t *free_at; /* each of these */
} cache_aligned;

int icm_init(struct icm *icm, const struct parameters *parameters, struct bus *bus);

/* The number of the context of a new QP. Numbers begin anew when no QP is left, so that QPs of the
 * past do not decide which sets of the cache new ones share. */
uint64_t icm_new_context(struct icm *icm);

/* Looks up a QP context; returns when it is in the cache. */
uint64_t icm_qpc(struct icm *icm, struct icm_context *context, uint64_t now);

/* The memory that a QP reads from, or writes to. */
struct icm_range {
    uint32_t proc;
    uint64_t address, length;
};

/* Looks up the translations of a memory range; returns when all of them are in the cache. '*near' is
 * where the caller's last lookup ended, NULL at first: the next range is often close by. */
uint64_t icm_mtt(struct icm *icm, struct icm_line **near, const struct icm_range *range,
                 uint64_t now);

/* Brings what a lookup of that address needs first into the processor's caches. */
void icm_prefetch(const struct icm *icm, uint32_t proc, uint64_t address);

/* Memory is registered: its translations begin a line of the MTT. */
void icm_add_region(struct icm *icm, uint32_t proc, uint64_t address, uint64_t length);
void icm_remove_region(struct icm *icm, uint64_t address, uint64_t length);

/* Drops the translations of a deregistered range. */
void icm_invalidate_mtt(struct icm *icm, uint32_t proc, uint64_t address, uint64_t length);

/* Drops the context of a destroyed QP. */
void icm_free_context(struct icm *icm, uint64_t context);

/* Host memory that holds the contexts of QPs and 'cqs' CQs, and regions with their translations. */
uint64_t icm_host_bytes(const struct icm *icm, uint64_t cqs);

#endif
