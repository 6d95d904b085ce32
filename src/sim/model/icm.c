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
    entry->inside = false;
    cache->count--;
}

static void link_newest(struct cache *cache, struct cached *entry)
{
    entry->newer = NULL;
    entry->older = cache->newest;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = entry;
    cache->newest = entry;
    entry->inside = true;
    cache->count++;
}

/* True if it was there; afterwards it is. The one that had to go is put into *evicted. */
static bool cache_use(struct cache *cache, struct cached *entry, struct cached **evicted)
{
    bool hit = entry->inside;

    *evicted = NULL;
    if (hit) {
        if (cache->newest != entry) {
            unlink_entry(cache, entry);
            link_newest(cache, entry);
        }
        cache->hits++;
        return true;
    }
    if (cache->count == cache->room) {
        *evicted = cache->oldest;
        unlink_entry(cache, cache->oldest);
    }
    link_newest(cache, entry);
    cache->misses++;
    return false;
}

int icm_init(struct icm *memory, const struct parameters *parameters,
                 struct bus *bus)
{
    memory->parameters = parameters;
    memory->bus = bus;
    memory->queues.room = parameters->context.queues;
    memory->pages.room = parameters->context.translations;
    if (!memory->pages.room)
        return 0;
    memory->page_entries = pool_alloc_permanent((memory->pages.room + 1) * sizeof(struct page_entry));
    memory->page_table = pool_alloc_permanent(PAGE_BUCKETS * sizeof(struct page_entry *));
    return memory->page_entries && memory->page_table ? 0 : ENOMEM;
}

/* Dependent accesses of 64 bytes, wherever the entry lies, and what they take longer. Across the
 * bus they also take its time. */
static uint64_t access_memory(struct icm *memory, uint64_t now, double accesses,
                              double longer)
{
    const struct parameters *p = memory->parameters;
    uint64_t end;

    model_activity.work = "context miss";
    if (p->context.place == CONTEXT_IN_HOST)
        for (double i = 0; i < accesses; i++)
            bus_read_short(memory->bus, now, 64);
    end = serve(&memory->unit, now, accesses * p->context.access + longer);
    model_activity.work = NULL;
    return end;
}

uint64_t icm_qpc(struct icm *memory, struct cached *qp, uint64_t now)
{
    const struct parameters *p = memory->parameters;
    struct cached *evicted;
    double accesses = p->context.queue_accesses;
    bool crowded = p->context.place == CONTEXT_IN_HOST && memory->unit.free_at > now;

    if (!memory->queues.room || cache_use(&memory->queues, qp, &evicted))
        return now;
    if (evicted)
        accesses += p->context.write_back_accesses;
    return access_memory(memory, now, accesses, crowded ? p->context.crowded : 0);
}

static struct page_entry **bucket_of(struct icm *memory, uint32_t proc, uint64_t page)
{
    return &memory->page_table[(page * 0x9e3779b97f4a7c15ull ^ proc) % PAGE_BUCKETS];
}

static void remove_page(struct icm *memory, struct page_entry *entry)
{
    struct page_entry **link = bucket_of(memory, entry->proc, entry->page);

    while (*link && *link != entry)
        link = &(*link)->next;
    if (*link)
        *link = entry->next;
}

/* An entry for the page: the one it has, a fresh one, or that of the page least recently used. */
static struct page_entry *page_entry_of(struct icm *memory, uint32_t proc, uint64_t page)
{
    struct page_entry **bucket = bucket_of(memory, proc, page), *entry;

    for (entry = *bucket; entry; entry = entry->next) {
        if (entry->page == page && entry->proc == proc)
            return entry;
    }
    if (memory->page_free) {
        entry = memory->page_free;
        memory->page_free = entry->next;
    } else if (memory->page_next < memory->pages.room) {
        entry = &memory->page_entries[memory->page_next++];
    } else {
        entry = (struct page_entry *)memory->pages.oldest;
        unlink_entry(&memory->pages, &entry->cached);
        remove_page(memory, entry);
    }
    entry->page = page;
    entry->proc = proc;
    entry->next = *bucket;
    *bucket = entry;
    return entry;
}

uint64_t icm_mtt(struct icm *memory, uint32_t proc, uint64_t address,
                       uint64_t length, uint64_t now)
{
    const struct parameters *p = memory->parameters;
    uint64_t first = address / p->host.page, last = (address + (length ? length - 1 : 0)) / p->host.page;
    struct cached *evicted;
    double accesses = 0;

    if (!memory->pages.room || !length)
        return now;
    for (uint64_t page = first; page <= last; page++) {
        struct page_entry *entry = page_entry_of(memory, proc, page);

        if (!cache_use(&memory->pages, &entry->cached, &evicted))
            accesses += p->context.translation_accesses;
    }
    return accesses > 0 ? access_memory(memory, now, accesses, 0) : now;
}

void icm_forget_qpc(struct icm *memory, struct cached *qp)
{
    if (qp->inside)
        unlink_entry(&memory->queues, qp);
}

void icm_forget_mtt(struct icm *memory, uint32_t proc, uint64_t address,
                          uint64_t length)
{
    uint64_t page = memory->parameters->host.page;

    for (uint32_t i = 0; i < memory->page_next && length; i++) {
        struct page_entry *entry = &memory->page_entries[i];

        if (!entry->cached.inside || entry->proc != proc || entry->page < address / page ||
            entry->page > (address + length - 1) / page)
            continue;
        unlink_entry(&memory->pages, &entry->cached);
        remove_page(memory, entry);
        entry->next = memory->page_free;
        memory->page_free = entry;
    }
}
