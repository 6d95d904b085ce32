/* SPDX-License-Identifier: BSD-2-Clause */
#include "dma/mapped/share.h"

#include "hca/arena.h"
#include "hca/epoch.h"
#include "dma/mapped/extent.h"
#include "dma/agent.h"
#include "dma/peer.h"
#include "dma/sysv.h"
#include "util/log.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The files of a region that peers map, by the region's index. */
struct backing {
    struct share_map *map;
    struct extent *extents[SHARE_PIECES]; /* none: a System V segment */
};

/* Copies that cost this much are a reason to find out what a region is in; those that cost as much
 * as an exchange, to exchange it. */
#define EXAMINE_NS         20000
#define EXCHANGE_NS        45000
#define EXCHANGE_NS_A_PAGE 3500
#define PINNED_PATIENCE    64 /* times that, until the next attempt */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct backing **backings[MR_CHUNKS]; /* guarded by the mutex */
static atomic_uint outcomes[SHARE_REASONS];
static _Atomic uint64_t bytes_exchanged;
static unsigned changes; /* calls between share_change_begin() and _end(); guarded by the mutex */

/* The state of the lock's holder to restore. A signal handler that accessed memory under exchange,
 * or forked, would wait for itself; a cancelled thread would not release the lock. */
static struct {
    sigset_t signals;
    int cancelling;
} holder;

static __thread unsigned depth;

void share_lock(void)
{
    sigset_t all, signals;
    int cancelling;

    if (depth) {
        depth++;
        return;
    }
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelling);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &signals);
    pthread_mutex_lock(&mutex);
    depth = 1;
    holder.signals = signals;
    holder.cancelling = cancelling;
}

static void release(bool in_child)
{
    sigset_t signals = holder.signals;
    int cancelling = holder.cancelling;

    if (--depth)
        return;
    if (in_child)
        pthread_mutex_init(&mutex, NULL);
    else
        pthread_mutex_unlock(&mutex);
    pthread_sigmask(SIG_SETMASK, &signals, NULL);
    pthread_setcancelstate(cancelling, NULL);
}

void share_unlock(void)
{
    release(false);
}

/* ---- a filter of registered addresses, so that unmapping other memory costs nothing ---- */

#define GRANULE_SHIFT 21
#define GRANULES      4096

static _Atomic uint32_t granules[GRANULES], wide_regions, regions;

static bool is_wide(uint64_t addr, uint64_t length)
{
    return length >> GRANULE_SHIFT >= GRANULES || addr + length < addr;
}

static void note_range(uint64_t addr, uint64_t length, uint32_t change)
{
    atomic_fetch_add(&regions, change);
    if (is_wide(addr, length)) {
        atomic_fetch_add(&wide_regions, change);
        return;
    }
    for (uint64_t g = addr >> GRANULE_SHIFT; g <= (addr + length) >> GRANULE_SHIFT; g++)
        atomic_fetch_add(&granules[g % GRANULES], change);
}

static bool may_be_registered(uint64_t addr, uint64_t length)
{
    if (!load_relaxed(&regions))
        return false;
    if (load_relaxed(&wide_regions) || is_wide(addr, length))
        return true;
    for (uint64_t g = addr >> GRANULE_SHIFT; g <= (addr + length) >> GRANULE_SHIFT; g++)
        if (load_relaxed(&granules[g % GRANULES]))
            return true;
    return false;
}

/* ---- the memory of a region, by ranges ---- */

struct share_range {
    uint64_t start, length;
    struct vma vma;
    struct extent *extent; /* NULL: not exchanged yet */
};

static enum share_reason find_ranges(const struct candidate *c, struct share_range *ranges,
                                     unsigned *count)
{
    uint64_t end = round_up(c->addr + c->length, PAGE_BYTES);
    enum share_reason reason = SHARED;
    int view = vma_open();

    *count = 0;
    if (view < 0)
        return WHY_DESCRIPTORS;
    for (uint64_t at = c->addr; at < end && !reason;) {
        struct share_range *s = &ranges[*count];
        if (*count == SHARE_PIECES) {
            reason = WHY_PIECES;
            break;
        }
        if (!vma_at(view, at, &s->vma)) {
            reason = WHY_NOT_THERE;
            break;
        }
        s->start = at;
        s->length = (s->vma.end < end ? s->vma.end : end) - at;
        s->extent = extent_find(&s->vma);
        if (!s->extent)
            reason = rules_for_range(c, &s->vma, s->start, s->length);
        else if (extent_fd(s->extent, &s->vma) < 0)
            reason = WHY_LET_GO;
        at += s->length;
        ++*count;
    }
    close(view);
    return reason;
}

/* The counter tells peers whose access fails meanwhile to try again. */
static int exchange(struct share_range *s)
{
    bool kernel_waits = swap_offered(NULL) == SWAP_FULL;
    struct proc_slot *slot = proc_slot(proc_self);
    int err;

    if (!kernel_waits)
        atomic_fetch_add(&slot->swaps, 1);
    err = swap_for_file(s->start, s->length, s->extent->fd, 0);
    if (!kernel_waits)
        atomic_fetch_add(&slot->swaps, 1);
    return err;
}

static enum share_reason make_shared(struct share_range *s)
{
    int err;

    if (s->extent)
        return SHARED;
    s->extent = extent_create(s->length);
    if (!s->extent)
        return errno == EMFILE || errno == ENFILE ? WHY_DESCRIPTORS : WHY_NO_MEMORY;
    s->vma.start = s->start;
    s->vma.offset = 0;
    err = exchange(s);
    if (!err) {
        atomic_fetch_add(&bytes_exchanged, s->length);
        return SHARED;
    }
    /* The first pieces of a long range may be exchanged already. */
    extent_use(s->extent);
    extent_unuse(s->extent);
    return rules_after_swap(err);
}

static struct backing **backing_slot(uint32_t index)
{
    struct backing ***chunk = &backings[index >> MR_CHUNK_SHIFT];

    if (!*chunk)
        *chunk = calloc(1u << MR_CHUNK_SHIFT, sizeof(**chunk));
    return *chunk ? *chunk + (index & ((1u << MR_CHUNK_SHIFT) - 1)) : NULL;
}

static struct backing *new_backing(struct shared_mr *mr)
{
    struct backing **slot = backing_slot(mr->index);
    struct backing *f = slot ? calloc(1, sizeof(*f)) : NULL;

    if (f && !(f->map = arena_alloc(sizeof(*f->map)))) {
        free(f);
        f = NULL;
    }
    if (!f)
        return NULL;
    f->map->start = mr->addr & ~(PAGE_BYTES - 1);
    f->map->length = 0;
    store_relaxed(&f->map->mapped, 0);
    *slot = f;
    return f;
}

static void publish(struct shared_mr *mr, struct share_map *map)
{
    map->serial = atomic_fetch_add(&seg->next_share, 1) + 1;
    mr->share_at = seg_offset(map) / CACHE_LINE;
    store_release(&mr->share, map->serial);
}

static enum share_reason share_files(struct shared_mr *mr, const struct share_range *ranges,
                                     unsigned count)
{
    struct backing *f = new_backing(mr);

    if (!f)
        return WHY_NO_MEMORY;
    struct share_map *map = f->map;
    map->count = count;
    for (unsigned i = 0; i < count; i++) {
        const struct share_range *s = &ranges[i];
        map->pieces[i] = (struct share_piece){
            .inode = s->extent->inode,
            .offset = s->vma.offset + (s->start - s->vma.start),
            .length = s->length,
            .fd = s->extent->fd,
        };
        map->length += s->length;
        f->extents[i] = s->extent;
        extent_use(s->extent);
    }
    publish(mr, map);
    return SHARED;
}

/* Memory in a System V segment needs no exchange: peers attach the segment. */
static bool share_segment(struct shared_mr *mr)
{
    uint64_t start = mr->addr & ~(PAGE_BYTES - 1);
    uint64_t end = round_up(mr->addr + mr->length, PAGE_BYTES);
    struct sysv_range range;
    struct backing *f;

    if (!sysv_at(mr->addr, &range) || end > range.end || !range.writable || !(f = new_backing(mr)))
        return false;
    f->map->count = 1;
    f->map->length = end - start;
    f->map->pieces[0] = (struct share_piece){ .inode = (uint64_t)range.id,
                                              .offset = range.offset + (start - range.start),
                                              .length = end - start,
                                              .fd = -1,
                                              .ipc_namespace = sysv_namespace() };
    publish(mr, f->map);
    return true;
}

static bool may_be_segment(enum share_reason reason)
{
    return reason == WHY_FILE || reason == WHY_KERNEL || reason == WHY_UNALIGNED ||
           reason == WHY_LARGE || reason == WHY_THREADS;
}

static enum share_reason attach_locked(struct shared_mr *mr, const struct candidate *c,
                                       bool may_exchange)
{
    struct share_range ranges[SHARE_PIECES];
    enum share_reason reason = rules_for_exchange(c);
    unsigned count = 0;

    if (!reason)
        reason = find_ranges(c, ranges, &count);
    if (reason)
        return may_be_segment(reason) && share_segment(mr) ? SHARED : reason;
    for (unsigned i = 0; i < count && !reason; i++)
        reason = ranges[i].extent || may_exchange ? make_shared(&ranges[i]) : WHY_UNUSED;
    return reason ? reason : share_files(mr, ranges, count);
}

static void note_outcome(const struct shared_mr *mr, enum share_reason reason)
{
    atomic_fetch_add(&outcomes[reason], 1);
    log_debug("%lu bytes registered at %#lx: %s", (unsigned long)mr->length,
              (unsigned long)mr->addr, rules_reason_text(reason));
}

/* Where the kernel's accesses do not wait for an exchange, only the program's own thread may make
 * it: before peers use the memory, because afterwards it may not call us again. */
static bool attaches_at_once(enum mr_mode mode)
{
    return mode == MR_SHARE || swap_offered(NULL) == SWAP_USER_ONLY;
}

void share_attach(struct shared_mr *mr)
{
    struct candidate c = { mr_mode(), mr->addr, mr->length, mr->access, false };
    enum share_reason reason = rules_for_region(&c);

    note_range(mr->addr, mr->length, 1);
    if (!reason && attaches_at_once(c.mode)) {
        share_lock();
        reason = attach_locked(mr, &c, true);
        share_unlock();
    } else if (!reason) {
        store_relaxed(&mr->share, SHARE_PENDING | EXAMINE_NS);
        reason = WHY_UNUSED;
        agent_serve();
    }
    note_outcome(mr, reason);
}

/* ---- regions that peers have used ---- */

static uint64_t exchange_cost(uint64_t length)
{
    return EXCHANGE_NS + length / PAGE_BYTES * EXCHANGE_NS_A_PAGE;
}

/* The published entry counts; the owner's copy only says that it does. */
static bool is_used_enough(const struct shared_mr *mr, uint64_t *count)
{
    if (!load_acquire(&mr->key) || mr->kind != MR_USER ||
        !(load_relaxed(&mr->share) & SHARE_PENDING))
        return false;
    *count = load_relaxed(&mr_published(mr)->share);
    return *count & SHARE_PENDING && !(*count & SHARE_LEFT);
}

/* A region whose key is valid stays as it is while we hold the lock. */
static void share_if_used(struct shared_mr *mr, void *context)
{
    uint64_t count;

    (void)context;
    if (!is_used_enough(mr, &count))
        return;
    struct shared_mr *entry = mr_published(mr);
    struct candidate c = { mr_mode(), mr->addr, mr->length, mr->access, true };
    enum share_reason reason = attach_locked(mr, &c, count & SHARE_EXAMINED);
    if (reason == WHY_UNUSED || reason == WHY_PINNED) {
        uint64_t times = reason == WHY_PINNED ? PINNED_PATIENCE : 1;
        store_release(&entry->share,
                      SHARE_PENDING | SHARE_EXAMINED | times * exchange_cost(mr->length));
        return;
    }
    if (reason)
        store_relaxed(&mr->share, 0);
    entry->share_at = mr->share_at;
    store_release(&entry->share, load_relaxed(&mr->share));
    atomic_fetch_sub(&outcomes[WHY_UNUSED], 1);
    note_outcome(mr, reason);
}

/* While the program changes memory, the request stays: share_change_end() repeats it. */
void share_used(void)
{
    share_lock();
    if (!changes) {
        atomic_store(&proc_slot(proc_self)->share_asked, 0);
        mr_for_each_own(share_if_used, NULL);
    }
    share_unlock();
}

/* ---- detaching ---- */

/* Peers unmap it later; since its key is invalid, they no longer use it. */
static void tell_peers(void)
{
    atomic_fetch_add(&seg->share_drops, 1);
    for (unsigned p = 0; p < load_acquire(&seg->proc_high) && p < MAX_PROCS; p++)
        if (load_relaxed(&proc_slot(p)->maps_memory) &&
            load_relaxed(&proc_slot(p)->state) == PROC_ALIVE)
            proc_attention(p);
}

static bool undo(struct shared_mr *mr)
{
    struct backing **slot = backing_slot(mr->index);
    struct backing *f = slot ? *slot : NULL;

    if (!f)
        return false;
    bool mapped = load_acquire(&f->map->mapped);
    *slot = NULL;
    store_relaxed(&mr->share, 0);
    for (unsigned i = 0; i < SHARE_PIECES && f->extents[i]; i++)
        extent_unuse(f->extents[i]);
    arena_free(f->map, sizeof(*f->map));
    free(f);
    return mapped;
}

void share_detach(struct shared_mr *mr)
{
    bool mapped = false;

    note_range(mr->addr, mr->length, -1);
    share_lock();
    if (backings[mr->index >> MR_CHUNK_SHIFT])
        mapped = undo(mr);
    share_unlock();
    if (mapped)
        tell_peers();
}

/* ---- changes of the memory by the program ---- */

struct range {
    uint64_t addr, length;
    bool found;
};

static bool overlaps(const struct shared_mr *mr, const struct range *r)
{
    return mr->kind == MR_USER && mr->length && mr->addr < r->addr + r->length &&
           r->addr < mr->addr + mr->length;
}

static void hide_share(struct shared_mr *mr, void *context)
{
    struct range *r = context;

    if (!overlaps(mr, r))
        return;
    store_relaxed(&mr->unmapped, 1);
    if (!load_relaxed(&mr->share))
        return;
    store_relaxed(&mr->share, 0);
    atomic_store(&mr_published(mr)->share, 0);
    r->found = true;
}

static void end_share(struct shared_mr *mr, void *context)
{
    struct range *r = context;

    if (overlaps(mr, r) && backings[mr->index >> MR_CHUNK_SHIFT] && undo(mr))
        r->found = true;
}

bool share_change_begin(uint64_t addr, uint64_t length)
{
    if (likely(!may_be_registered(addr, length)))
        return false;
    share_lock();
    changes++;
    share_unlock();
    return true;
}

void share_change_gone(uint64_t addr, uint64_t length)
{
    struct range r = { addr, length, false };
    int err = errno;

    share_lock();
    mr_for_each_own(hide_share, &r);
    if (r.found) {
        epoch_grace();
        r.found = false;
        mr_for_each_own(end_share, &r);
    }
    share_unlock();
    if (r.found)
        tell_peers();
    errno = err;
}

void share_change_end(void)
{
    int err = errno;

    share_lock();
    bool asked = !--changes && load_relaxed(&proc_slot(proc_self)->share_asked);
    share_unlock();
    if (asked)
        proc_attention(proc_self);
    errno = err;
}

uint64_t share_segment_at(const void *addr)
{
    struct sysv_range range;
    int err = errno;
    bool found = load_relaxed(&regions) && sysv_at((uintptr_t)addr, &range);

    errno = err;
    return found ? range.end - (uintptr_t)addr : 0;
}

bool share_discard(uint64_t addr, uint64_t length, int advice, int *result)
{
    uint64_t end = addr + length;
    bool ours = false;
    struct vma vma;
    int view;

    if (!extent_count() || addr % PAGE_BYTES || end < addr)
        return false;
    share_lock();
    view = vma_open();
    *result = 0;
    for (uint64_t at = addr; view >= 0 && at < end; at = vma.end) {
        if (!vma_at(view, at, &vma))
            break;
        uint64_t n = (vma.end < end ? vma.end : end) - at;
        bool exchanged = extent_find(&vma);
        ours |= exchanged;
        if (syscall(SYS_madvise, at, n, exchanged ? MADV_REMOVE : advice))
            *result = -1;
    }
    if (view >= 0)
        close(view);
    share_unlock();
    return ours;
}

/* ---- fork, statistics ---- */

void share_forget(void)
{
    for (unsigned c = 0; c < MR_CHUNKS; c++) {
        free(backings[c]);
        backings[c] = NULL;
    }
    memset(granules, 0, sizeof(granules));
    atomic_store(&wide_regions, 0);
    atomic_store(&regions, 0);
    changes = 0;
    release(true);
}

void share_report(void)
{
    unsigned mapped = peer_maps_made();

    for (unsigned i = 0; i < SHARE_REASONS; i++) {
        unsigned n = load_relaxed(&outcomes[i]);
        if (n)
            log_write(LOG_LEVEL_INFO, "registered memory: %u %s%s", n, i ? "copied: " : "",
                      rules_reason_text(i));
    }
    if (load_relaxed(&bytes_exchanged))
        log_write(LOG_LEVEL_INFO, "registered memory: %lu KiB exchanged",
                  (unsigned long)load_relaxed(&bytes_exchanged) >> 10);
    if (mapped)
        log_write(LOG_LEVEL_INFO, "registered memory of peers: %u mapped", mapped);
}
