/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/model/icm.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define FIRST_BUCKETS 16
#define GROUP         8 /* lines: so much memory shares a hash */
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
    struct icm_line *next;   /* that was used behind it: often it will be again */
    uint32_t proc;
    uint32_t pages;   /* that are known; 0: this is no line */
    uint64_t known[]; /* bit mask by place: pages that were used, or with which a region begins */
};

static uint64_t *new_table(uint64_t buckets)
{
    uint64_t *table = pool_take_block(buckets * sizeof(*table));

    if (table)
        memset(table, 0, buckets * sizeof(*table));
    return table;
}

int icm_init(struct icm *icm, const struct parameters *parameters, struct bus *bus)
{
    uint64_t line_pages = parameters->icm.mtt_read / MTT_BYTES;
    int error;

    icm->parameters = parameters;
    icm->bus = bus;
    icm->line_pages = line_pages;
    icm->known_words = (line_pages + 63) / 64;
    icm->used_lines.size = sizeof(struct icm_line) + icm->known_words * sizeof(uint64_t);
    icm->free_at = pool_alloc_permanent(parameters->icm.misses * sizeof(*icm->free_at));
    if (!icm->free_at)
        return ENOMEM;
    error = cache_init(&icm->qpc, parameters->icm.qpc_entries, parameters->icm.ways);
    if (!error)
        error = cache_init(&icm->mtt, (parameters->icm.mtt_entries + line_pages - 1) / line_pages,
                           parameters->icm.ways);
    if (error || !icm->mtt.capacity)
        return error;
    icm->buckets = FIRST_BUCKETS;
    icm->table = new_table(FIRST_BUCKETS);
    return icm->table ? 0 : ENOMEM;
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

/* ---- lines ---- */

/* Lines are found by their first pages: those in the same group of GROUP * line_pages pages have the
 * same hash. An entry of the table is a line and, in the bits that no address needs, the first bits
 * of its hash: a search reads few lines of other groups, which are seldom in the processor's caches. */
#define HASH_SHIFT 48
#define HASH_BITS  (64 - HASH_SHIFT)

static uint64_t hash_of(uint32_t proc, uint64_t group)
{
    return (group ^ (uint64_t)proc << 40) * 0x9e3779b97f4a7c15ull;
}

static uint64_t group_of(const struct icm *icm, uint64_t page)
{
    return page / (GROUP * icm->line_pages);
}

static uint64_t hash_of_line(const struct icm *icm, const struct icm_line *line)
{
    return hash_of(line->proc, group_of(icm, line->first));
}

static struct icm_line *line_in(uint64_t entry)
{
    return (struct icm_line *)(uintptr_t)(entry & ((1ull << HASH_SHIFT) - 1));
}

/* Where a search begins; it ends at an empty entry. */
static uint32_t home_of(const struct icm *icm, uint64_t hash)
{
    return (hash >> 32) * icm->buckets >> 32;
}

static uint32_t home_of_entry(const struct icm *icm, uint64_t entry)
{
    bool has_enough = icm->buckets <= 1u << HASH_BITS;

    return home_of(icm, has_enough ? entry : hash_of_line(icm, line_in(entry)));
}

static uint32_t next_bucket(const struct icm *icm, uint32_t bucket)
{
    return (bucket + 1) & (icm->buckets - 1);
}

static void add_entry(struct icm *icm, uint64_t entry)
{
    uint32_t bucket = home_of_entry(icm, entry);

    while (icm->table[bucket])
        bucket = next_bucket(icm, bucket);
    icm->table[bucket] = entry;
}

/* Entries behind it move up, but none in front of its home. */
static void remove_entry(struct icm *icm, const struct icm_line *line)
{
    uint32_t mask = icm->buckets - 1, hole = home_of(icm, hash_of_line(icm, line));

    while (line_in(icm->table[hole]) != line)
        hole = next_bucket(icm, hole);
    for (uint32_t at = next_bucket(icm, hole); icm->table[at]; at = next_bucket(icm, at)) {
        uint32_t home = home_of_entry(icm, icm->table[at]);

        if (((at - home) & mask) >= ((at - hole) & mask)) {
            icm->table[hole] = icm->table[at];
            hole = at;
        }
    }
    icm->table[hole] = 0;
}

/* Doubles the table when it is three quarters full. Returns false if no memory is left. */
static bool make_room(struct icm *icm)
{
    uint64_t *old = icm->table, *table;
    uint32_t buckets = icm->buckets;

    if (icm->used_lines.used < buckets / 4 * 3)
        return true;
    table = new_table(2ull * buckets);
    if (!table)
        return false;
    icm->table = table;
    icm->buckets = 2 * buckets;
    for (uint32_t i = 0; i < buckets; i++) {
        if (old[i])
            add_entry(icm, old[i]);
    }
    pool_give_block(old, (uint64_t)buckets * sizeof(*old));
    return true;
}

/* A line that is no more knows no page. */
static bool knows(const struct icm *icm, const struct icm_line *line, uint32_t proc, uint64_t page)
{
    uint64_t place = page - line->first;

    return place < icm->line_pages && line->known[place / 64] >> place % 64 & 1 &&
           line->proc == proc;
}

static void add_page(struct icm_line *line, uint64_t page)
{
    uint64_t place = page - line->first;

    line->known[place / 64] |= 1ull << place % 64;
    line->pages++;
}

/* Begins a line with a page of which nothing is known. NULL if no memory is left. */
static struct icm_line *begin_line(struct icm *icm, uint32_t proc, uint64_t page)
{
    bool is_first = !icm->used_lines.used;
    struct icm_line *line = make_room(icm) ? pool_take(&icm->used_lines) : NULL;

    if (is_first)
        icm->lines = 0;
    if (!line)
        return NULL;
    *line = (struct icm_line){ .number = icm->lines++, .first = page, .proc = proc };
    for (uint32_t i = 0; i < icm->known_words; i++)
        line->known[i] = 0;
    add_page(line, page);
    add_entry(icm, (uintptr_t)line | hash_of_line(icm, line) >> HASH_SHIFT << HASH_SHIFT);
    return line;
}

/* The last known page of a line before this one, plus 1; 0: none. */
static uint64_t known_before(const struct icm *icm, const struct icm_line *line, uint64_t page)
{
    uint64_t end = page - line->first;

    if (page <= line->first)
        return 0;
    if (end > icm->line_pages)
        end = icm->line_pages;
    for (uint64_t word = (end + 63) / 64; word-- > 0;) {
        uint64_t bits = line->known[word];

        if (end - word * 64 < 64)
            bits &= (1ull << (end - word * 64)) - 1;
        if (bits)
            return line->first + word * 64 + (63 - __builtin_clzll(bits)) + 1;
    }
    return 0;
}

/* What is known of a page and those before it. */
struct vicinity {
    struct icm_line *line;   /* that has it, or NULL */
    struct icm_line *before; /* that has the nearest known page before it, or NULL */
};

static void look_into(const struct icm *icm, uint32_t proc, uint64_t page, uint64_t group,
                      struct vicinity *found)
{
    uint64_t nearest = found->before ? known_before(icm, found->before, page) : 0;
    uint64_t hash = hash_of(proc, group), entry;

    for (uint32_t i = home_of(icm, hash); (entry = icm->table[i]); i = next_bucket(icm, i)) {
        struct icm_line *line = line_in(entry);
        uint64_t before;

        if ((entry ^ hash) >> HASH_SHIFT || line->proc != proc)
            continue;
        if (knows(icm, line, proc, page)) {
            found->line = line;
            return;
        }
        before = known_before(icm, line, page);
        if (before > nearest) {
            nearest = before;
            found->before = line;
        }
    }
}

/* Lines that have the page, or one that is less than a line before it, begin less than two lines
 * before it. */
static struct vicinity look_around(const struct icm *icm, uint32_t proc, uint64_t page)
{
    uint64_t group = group_of(icm, page), back = 2 * icm->line_pages - 1;
    uint64_t first_group = group_of(icm, page > back ? page - back : 0);
    struct vicinity found = { NULL, NULL };

    look_into(icm, proc, page, group, &found);
    if (!found.line && first_group != group)
        look_into(icm, proc, page, first_group, &found);
    return found;
}

void icm_prefetch(const struct icm *icm, uint32_t proc, uint64_t address)
{
    uint64_t page = address / icm->parameters->host.page_size;

    if (icm->mtt.capacity)
        __builtin_prefetch(&icm->table[home_of(icm, hash_of(proc, group_of(icm, page)))]);
}

/* The line of a page. One that is used for the first time is in the line of the nearest known page
 * before it, or begins a line. NULL if no memory is left. */
static struct icm_line *line_of(struct icm *icm, uint32_t proc, uint64_t page)
{
    struct vicinity found = look_around(icm, proc, page);

    if (found.line)
        return found.line;
    if (!found.before || page - found.before->first >= icm->line_pages)
        return begin_line(icm, proc, page);
    add_page(found.before, page);
    return found.before;
}

/* Returns false on a miss. A page that no memory is left for misses always. */
static bool use_page(struct icm *icm, struct icm_line **near, uint32_t proc, uint64_t page)
{
    struct icm_line *line = *near;
    bool evicted;

    if (!line || !knows(icm, line, proc, page)) {
        line = line ? line->next : NULL;
        if (!line || !knows(icm, line, proc, page))
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

    icm->regions++;
    icm->region_pages += pages_of(icm, address, length);
    if (icm->mtt.capacity && !look_around(icm, proc, page).line)
        begin_line(icm, proc, page);
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

static void drop_line(struct icm *icm, struct icm_line *line)
{
    remove_entry(icm, line);
    pool_give(&icm->used_lines, line);
}

static void drop_page(struct icm *icm, struct icm_line *line, uint64_t page)
{
    uint64_t place = page - line->first;

    cache_drop(&icm->mtt, line->number);
    line->known[place / 64] &= ~(1ull << place % 64);
    if (!--line->pages)
        drop_line(icm, line);
}

static void drop_range(struct icm *icm, struct icm_line *line, uint64_t first, uint64_t last)
{
    uint64_t page = first > line->first ? first : line->first;
    uint64_t end = line->first + icm->line_pages;

    for (; page < end && page <= last; page++) {
        if (knows(icm, line, line->proc, page))
            drop_page(icm, line, page);
    }
}

/* Looks at all lines: for regions that are larger than any program uses. */
static void drop_pages_between(struct icm *icm, uint32_t proc, uint64_t first, uint64_t last)
{
    for (uint32_t i = 0; i < icm->buckets; i++) {
        uint64_t entry;

        do { /* another one may have moved here */
            entry = icm->table[i];
            if (entry && line_in(entry)->proc == proc)
                drop_range(icm, line_in(entry), first, last);
        } while (icm->table[i] != entry);
    }
}

void icm_invalidate_mtt(struct icm *icm, uint32_t proc, uint64_t address, uint64_t length)
{
    uint64_t size = icm->parameters->host.page_size;
    uint64_t first = address / size, last = (address + (length - 1)) / size;

    if (!icm->mtt.capacity || !length)
        return;
    if (last - first >= icm->buckets) {
        drop_pages_between(icm, proc, first, last);
        return;
    }
    for (uint64_t page = first; page <= last; page++) {
        struct icm_line *line = look_around(icm, proc, page).line;

        if (line)
            drop_page(icm, line, page);
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
