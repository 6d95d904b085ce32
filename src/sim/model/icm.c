/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/model/icm.h"

#include "sim/memory/pool.h"
#include "util/util.h"

#include <errno.h>
#include <stddef.h>

#define PAGE_BUCKETS 4096

struct page_entry {
    struct cached cached; /* first */
    struct page_entry *next;
    uint64_t page;
    uint32_t proc;
};

static void unlink_entry(struct cache *cache, struct cached *entry)
{
    *(entry->newer ? &entry->newer->older : &cache->newest) = entry->older;
    *(entry->older ? &entry->older->newer : &cache->oldest) = entry->newer;
    entry->in_cache = false;
    cache->count--;
}

static void link_newest(struct cache *cache, struct cached *entry)
{
    entry->newer = NULL;
    entry->older = cache->newest;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = entry;
    cache->newest = entry;
    entry->in_cache = true;
    cache->count++;
}

/* Returns true on a hit. On a miss, inserts the entry; *evicted is the one it replaced, or NULL. */
static bool cache_use(struct cache *cache, struct cached *entry, struct cached **evicted)
{
    bool hit = entry->in_cache;

    *evicted = NULL;
    if (hit) {
        if (cache->newest != entry) {
            unlink_entry(cache, entry);
            link_newest(cache, entry);
        }
        cache->hits++;
        return true;
    }
    if (cache->count == cache->capacity) {
        *evicted = cache->oldest;
        unlink_entry(cache, cache->oldest);
    }
    link_newest(cache, entry);
    cache->misses++;
    return false;
}

int icm_init(struct icm *icm, const struct parameters *parameters, struct bus *bus)
{
    icm->parameters = parameters;
    icm->bus = bus;
    icm->qpc.capacity = parameters->icm.qpc_entries;
    icm->mtt.capacity = parameters->icm.mtt_entries;
    if (!icm->mtt.capacity)
        return 0;
    icm->page_entries = pool_alloc_permanent((icm->mtt.capacity + 1) * sizeof(struct page_entry));
    icm->page_table = pool_alloc_permanent(PAGE_BUCKETS * sizeof(struct page_entry *));
    return icm->page_entries && icm->page_table ? 0 : ENOMEM;
}

/* Dependent accesses of 64 bytes each, plus 'extra' ns. With ICM in the host they also occupy the
 * bus. */
static uint64_t access_memory(struct icm *icm, uint64_t now, double accesses, double extra)
{
    const struct parameters *p = icm->parameters;
    uint64_t end;

    model_activity.work = "ICM miss";
    if (p->icm.location == ICM_IN_HOST)
        for (double i = 0; i < accesses; i++)
            bus_read_short(icm->bus, now, 64);
    end = serve(&icm->fetcher, now, accesses * p->icm.access_time + extra);
    model_activity.work = NULL;
    return end;
}

uint64_t icm_qpc(struct icm *icm, struct cached *qp, uint64_t now)
{
    const struct parameters *p = icm->parameters;
    struct cached *evicted;
    double accesses = p->icm.qpc_accesses;
    bool crowded = p->icm.location == ICM_IN_HOST && icm->fetcher.free_at > now;

    if (!icm->qpc.capacity || cache_use(&icm->qpc, qp, &evicted))
        return now;
    if (evicted)
        accesses += p->icm.write_back_accesses;
    return access_memory(icm, now, accesses, crowded ? p->icm.crowded_time : 0);
}

static struct page_entry **bucket_of(struct icm *icm, uint32_t proc, uint64_t page)
{
    return &icm->page_table[(page * 0x9e3779b97f4a7c15ull ^ proc) % PAGE_BUCKETS];
}

static void remove_page(struct icm *icm, struct page_entry *entry)
{
    struct page_entry **link = bucket_of(icm, entry->proc, entry->page);

    while (*link && *link != entry)
        link = &(*link)->next;
    if (*link)
        *link = entry->next;
}

/* Finds the entry of the page, or allocates one, or reuses that of the least recently used page. */
static struct page_entry *page_entry_of(struct icm *icm, uint32_t proc, uint64_t page)
{
    struct page_entry **bucket = bucket_of(icm, proc, page), *entry;

    for (entry = *bucket; entry; entry = entry->next) {
        if (entry->page == page && entry->proc == proc)
            return entry;
    }
    if (icm->page_free) {
        entry = icm->page_free;
        icm->page_free = entry->next;
    } else if (icm->page_next < icm->mtt.capacity) {
        entry = &icm->page_entries[icm->page_next++];
    } else {
        entry = (struct page_entry *)icm->mtt.oldest;
        unlink_entry(&icm->mtt, &entry->cached);
        remove_page(icm, entry);
    }
    entry->page = page;
    entry->proc = proc;
    entry->next = *bucket;
    *bucket = entry;
    return entry;
}

uint64_t icm_mtt(struct icm *icm, uint32_t proc, uint64_t address, uint64_t length, uint64_t now)
{
    const struct parameters *p = icm->parameters;
    uint64_t first = address / p->host.page_size;
    uint64_t last = (address + (length ? length - 1 : 0)) / p->host.page_size;
    struct cached *evicted;
    double accesses = 0;

    if (!icm->mtt.capacity || !length)
        return now;
    for (uint64_t page = first; page <= last; page++) {
        struct page_entry *entry = page_entry_of(icm, proc, page);

        if (!cache_use(&icm->mtt, &entry->cached, &evicted))
            accesses += p->icm.mtt_accesses;
    }
    return accesses > 0 ? access_memory(icm, now, accesses, 0) : now;
}

void icm_evict_qpc(struct icm *icm, struct cached *qp)
{
    if (qp->in_cache)
        unlink_entry(&icm->qpc, qp);
}

void icm_invalidate_mtt(struct icm *icm, uint32_t proc, uint64_t address, uint64_t length)
{
    uint64_t page = icm->parameters->host.page_size;

    for (uint32_t i = 0; i < icm->page_next && length; i++) {
        struct page_entry *entry = &icm->page_entries[i];

        if (!entry->cached.in_cache || entry->proc != proc || entry->page < address / page ||
            entry->page > (address + length - 1) / page)
            continue;
        unlink_entry(&icm->mtt, &entry->cached);
        remove_page(icm, entry);
        entry->next = icm->page_free;
        icm->page_free = entry;
    }
}
