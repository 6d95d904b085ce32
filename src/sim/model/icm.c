/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/model/icm.h"

#include <errno.h>
#include <stddef.h>

#define FIRST_BUCKETS 64
#define GROUP         16 /* consecutive pages, in consecutive buckets */
#define FRESH_PAGES   16
#define ACCESS_BYTES 64
/* Sizes of objects, of the mthca driver. */
#define QPC_BYTES  256
#define EQPC_BYTES 32
#define RDB_BYTES  128 /* four of 32 bytes for a QP */
#define CQC_BYTES  64
#define MPT_BYTES  64 /* a region */
#define MTT_BYTES  8  /* an entry: the translation of a page */

/* A miss brings a line of the MTT (icm.mtt_read bytes): the translations of consecutive pages of a
 * region. Lines are numbered in the order of registration and first use, so that addresses chosen by
 * programs do not decide which sets of the cache they share. */
struct icm_line {
    uint64_t number;
    struct cache_slot *slot; /* where it was in the cache */
    uint64_t first;          /* the page in its first place */
    uint64_t known;          /* bit mask by place of pages that are in the page table; 64 at most */
    uint32_t proc;
    uint32_t pages;        /* in the page table; 0: this is no line */
    struct icm_line *next; /* that was used behind it: often it will be again */
};

/* A page of registered memory: one that was used, or with which a region begins. */
struct page {
    struct page *next;
    uint64_t page;
    struct icm_line *line;
    uint32_t proc;
};

int icm_init(struct icm *icm, const struct parameters *parameters, struct bus *bus)
{
    uint64_t line_pages = parameters->icm.mtt_read / MTT_BYTES;
    int error;

    icm->parameters = parameters;
    icm->bus = bus;
    icm->line_pages = line_pages;
    icm->pages.size = sizeof(struct page);
    icm->used_lines.size = sizeof(struct icm_line);
    icm->free_at = pool_alloc_permanent(parameters->icm.misses * sizeof(*icm->free_at));
    if (!icm->free_at)
        return ENOMEM;
    error = cache_init(&icm->qpc, parameters->icm.qpc_entries, parameters->icm.ways);
    if (!error)
        error = cache_init(&icm->mtt, (parameters->icm.mtt_entries + line_pages - 1) / line_pages,
                           parameters->icm.ways);
    if (error || !icm->mtt.capacity)
        return error;
    icm->page_buckets = FIRST_BUCKETS;
    icm->page_table = pool_alloc_permanent(FIRST_BUCKETS * sizeof(*icm->page_table));
    return icm->page_table ? 0 : ENOMEM;
}

/* Writes back 'count' words of an evicted entry. Returns when reads that follow may begin: across
 * the bus they do not pass writes, and are answered when these are in memory. */
static uint64_t write_back(struct icm *icm, uint64_t now, uint64_t count)
{
    const struct parameters *p = icm->parameters;

    if (p->icm.location == ICM_IN_HOST)
        return bus_write(icm->bus, now, count * ACCESS_BYTES);
    return now + ns_of(p->hca.memory_rate > 0 ? count * ACCESS_BYTES / p->hca.memory_rate : 0);
}

static uint64_t *first_free(struct icm *icm)
{
    uint64_t *first = icm->free_at;

    for (uint64_t i = 1; i < icm->parameters->icm.misses; i++) {
        if (icm->free_at[i] < *first)
            first = &icm->free_at[i];
    }
    return first;
}

/* Serves a miss: writes back what it evicts, then reads words, each of which tells where the next
 * one is. Words in the host are read across the bus, with whatever else uses it. */
static uint64_t serve_miss(struct icm *icm, uint64_t now, uint64_t reads, uint64_t writes)
{
    const struct parameters *p = icm->parameters;
    uint64_t *free_at = first_free(icm), begin = now > *free_at ? now : *free_at, end = begin;

    model_activity.work = "ICM miss";
    if (writes)
        end = write_back(icm, end, writes);
    if (p->icm.location == ICM_IN_HOST)
        for (uint64_t i = 0; i < reads; i++)
            end = bus_read_short(icm->bus, end, ACCESS_BYTES);
    else
        end += ns_of(reads * p->icm.access_time);
    *free_at = end;
    server_begin(&icm->fetcher, begin, (end - begin) / p->icm.misses);
    model_activity.work = NULL;
    return end;
}

uint64_t icm_new_context(struct icm *icm)
{
    if (!icm->contexts_in_use++)
        icm->contexts = 0;
    return icm->contexts++;
}

uint64_t icm_qpc(struct icm *icm, struct icm_context *context, uint64_t now)
{
    const struct parameters *p = icm->parameters;
    uint64_t end = now;
    bool evicted;

    if (!icm->qpc.capacity)
        return now;
    if (!cache_use(&icm->qpc, context->number, &context->slot, &evicted))
        end = serve_miss(icm, now, p->icm.qpc_accesses, evicted ? p->icm.write_back_accesses : 0);
    if (!p->icm.in_order)
        return end;
    if (icm->answered_at < end)
        icm->answered_at = end;
    return icm->answered_at;
}

static struct page **bucket_of(const struct icm *icm, uint32_t proc, uint64_t page)
{
    uint64_t group = (page / GROUP ^ (uint64_t)proc << 40) * 0x9e3779b97f4a7c15ull >> 32;

    return &icm->page_table[(group * GROUP + page % GROUP) & (icm->page_buckets - 1)];
}

/* The place in the page table of a page, or that where it would be: *link is NULL. */
static struct page **find_page(struct icm *icm, uint32_t proc, uint64_t page)
{
    struct page **link = bucket_of(icm, proc, page);

    while (*link && ((*link)->page != page || (*link)->proc != proc))
        link = &(*link)->next;
    return link;
}

/* Doubles the page table when it is full; it may stay as it is. */
static void grow_table(struct icm *icm)
{
    struct page **old = icm->page_table, **table;
    uint32_t buckets = icm->page_buckets;

    if (icm->pages.used < buckets)
        return;
    table = pool_alloc_permanent(2ull * buckets * sizeof(*table));
    if (!table)
        return;
    icm->page_table = table;
    icm->page_buckets = 2 * buckets;
    for (uint32_t i = 0; i < buckets; i++) {
        for (struct page *page = old[i], *next; page; page = next) {
            struct page **bucket = bucket_of(icm, page->proc, page->page);

            next = page->next;
            page->next = *bucket;
            *bucket = page;
        }
    }
}

/* Pages of an adapter are beside each other. NULL if no memory is left. */
static struct page *take_page(struct icm *icm)
{
    struct page *fresh;

    if (!icm->pages.free) {
        fresh = pool_alloc_permanent(FRESH_PAGES * sizeof(*fresh));
        if (!fresh)
            return NULL;
        icm->pages.used += FRESH_PAGES;
        for (int i = FRESH_PAGES - 1; i >= 0; i--)
            pool_give(&icm->pages, &fresh[i]);
    }
    return pool_take(&icm->pages);
}

static uint64_t bit_of(const struct icm_line *line, uint64_t page)
{
    uint64_t place = page - line->first;

    return place < 64 ? 1ull << place : 0;
}

/* Puts the page into *link. Returns NULL if no memory is left. */
static struct page *put_page(struct icm *icm, struct page **link, struct icm_line *line,
                             uint64_t page)
{
    *link = take_page(icm);
    if (!*link)
        return NULL;
    **link = (struct page){ .page = page, .line = line, .proc = line->proc };
    line->known |= bit_of(line, page);
    line->pages++;
    return *link;
}

/* Puts a page of which nothing is known into *link, as the first of a line. Returns NULL if no
 * memory is left. */
static struct page *begin_line(struct icm *icm, struct page **link, uint32_t proc, uint64_t page)
{
    struct icm_line *line = pool_take(&icm->used_lines);

    if (!icm->pages.used)
        icm->lines = 0;
    if (!line)
        return NULL;
    *line = (struct icm_line){ .number = icm->lines++, .first = page, .proc = proc };
    return put_page(icm, link, line, page);
}

/* The nearest known page before this one whose line may have this one, too. */
static const struct page *page_before(struct icm *icm, uint32_t proc, uint64_t page)
{
    for (uint32_t i = 1; i < icm->line_pages && i <= page; i++) {
        const struct page *before = *find_page(icm, proc, page - i);

        if (before)
            return page - before->line->first < icm->line_pages ? before : NULL;
    }
    return NULL;
}

/* A page that is used for the first time is in the line of one before it, or begins a line. */
static struct page *add_page(struct icm *icm, struct page **link, uint32_t proc, uint64_t page)
{
    const struct page *before = page_before(icm, proc, page);

    return before ? put_page(icm, link, before->line, page) : begin_line(icm, link, proc, page);
}

/* NULL if no memory is left. */
static struct icm_line *line_of(struct icm *icm, uint32_t proc, uint64_t page)
{
    struct page **link = find_page(icm, proc, page);

    if (!*link) {
        grow_table(icm);
        link = find_page(icm, proc, page);
    }
    return *link || add_page(icm, link, proc, page) ? (*link)->line : NULL;
}

/* A line that is no more has no pages. */
static bool is_in(const struct icm_line *line, uint32_t proc, uint64_t page)
{
    return line->known & bit_of(line, page) && line->proc == proc;
}

/* Returns false on a miss. A page that no memory is left for misses always. */
static bool use_page(struct icm *icm, struct icm_line **near, uint32_t proc, uint64_t page)
{
    struct icm_line *line = *near;
    bool evicted;

    if (!line || !is_in(line, proc, page)) {
        line = line ? line->next : NULL;
        if (!line || !is_in(line, proc, page))
            line = line_of(icm, proc, page);
        if (*near)
            (*near)->next = line;
        *near = line;
    }
    return *near && cache_use(&icm->mtt, (*near)->number, &(*near)->slot, &evicted);
}

static uint64_t pages_of(const struct icm *icm, uint64_t address, uint64_t length)
{
    uint64_t size = icm->parameters->host.page_size;

    return length ? (address + (length - 1)) / size - address / size + 1 : 0;
}

void icm_add_region(struct icm *icm, uint32_t proc, uint64_t address, uint64_t length)
{
    uint64_t page = address / icm->parameters->host.page_size;
    struct page **link = icm->mtt.capacity ? find_page(icm, proc, page) : NULL;

    icm->regions++;
    icm->region_pages += pages_of(icm, address, length);
    if (link && !*link)
        begin_line(icm, link, proc, page);
}

void icm_remove_region(struct icm *icm, uint64_t address, uint64_t length)
{
    icm->regions--;
    icm->region_pages -= pages_of(icm, address, length);
}

uint64_t icm_mtt(struct icm *icm, struct icm_line **near, const struct icm_range *range,
                 uint64_t now)
{
    const struct parameters *p = icm->parameters;
    uint64_t first = range->address / p->host.page_size;
    uint64_t last = (range->address + (range->length ? range->length - 1 : 0)) / p->host.page_size;
    uint64_t reads = 0;

    if (!icm->mtt.capacity || !range->length)
        return now;
    for (uint64_t page = first; page <= last; page++) {
        if (!use_page(icm, near, range->proc, page))
            reads += p->icm.mtt_accesses;
    }
    return reads ? serve_miss(icm, now, reads, 0) : now;
}

void icm_free_context(struct icm *icm, uint64_t context)
{
    icm->contexts_in_use--;
    if (icm->qpc.capacity)
        cache_drop(&icm->qpc, context);
}

static void drop_page(struct icm *icm, struct page **link)
{
    struct page *gone = *link;
    struct icm_line *line = gone->line;

    cache_drop(&icm->mtt, line->number);
    line->known &= ~bit_of(line, gone->page);
    if (!--line->pages)
        pool_give(&icm->used_lines, line);
    *link = gone->next;
    pool_give(&icm->pages, gone);
}

/* Looks at all pages that were used: for regions that are larger than any program uses. */
static void drop_pages_between(struct icm *icm, uint32_t proc, uint64_t first, uint64_t last)
{
    for (uint32_t i = 0; i < icm->page_buckets; i++) {
        for (struct page **link = &icm->page_table[i]; *link;) {
            if ((*link)->proc == proc && (*link)->page >= first && (*link)->page <= last)
                drop_page(icm, link);
            else
                link = &(*link)->next;
        }
    }
}

void icm_invalidate_mtt(struct icm *icm, uint32_t proc, uint64_t address, uint64_t length)
{
    uint64_t size = icm->parameters->host.page_size;
    uint64_t first = address / size, last = (address + (length - 1)) / size;

    if (!icm->mtt.capacity || !length)
        return;
    if (last - first >= icm->page_buckets) {
        drop_pages_between(icm, proc, first, last);
        return;
    }
    for (uint64_t page = first; page <= last; page++) {
        struct page **link = find_page(icm, proc, page);

        if (*link)
            drop_page(icm, link);
    }
}

uint64_t icm_host_bytes(const struct icm *icm, uint64_t cqs)
{
    const struct parameters *p = icm->parameters;
    const uint64_t tables[] = { icm->contexts_in_use * QPC_BYTES, icm->contexts_in_use * EQPC_BYTES,
                                icm->contexts_in_use * RDB_BYTES, cqs * CQC_BYTES,
                                icm->regions * MPT_BYTES,         icm->region_pages * MTT_BYTES };
    uint64_t chunk = p->icm.chunk ? p->icm.chunk : 1, sum = 0;

    if (p->icm.location != ICM_IN_HOST)
        return 0;
    for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
        sum += (tables[i] + chunk - 1) / chunk * chunk;
    return sum;
}
