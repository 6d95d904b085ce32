/* SPDX-License-Identifier: BSD-2-Clause */
#include "check/receives.h"

#include "check/check.h"
#include "check/finding.h"
#include "check/guard.h"
#include "check/sanitize.h"
#include "hca/mr.h"
#include "hca/rq.h"

#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

/* The memory of a posted receive is filled with this word, and gets the message with its completion,
 * so that a program that looks too early sees neither what was there nor what will be. What the
 * message does not fill gets its old bytes back. No message contains the word by chance. */
#define POISON 0xa5d1e5a5b0f0a9c5ull
/* Of each receive, since a copy of long ones would cost more than the message. */
#define WATCHED_BYTES 256
/* Of each receive, the whole pages up to here are guarded, but not its last bytes, unless it begins
 * and ends with a page: UCX posts receives that reach into what it keeps behind the buffer. */
#define GUARDED_BYTES (1u << 20)
#define SPARED_BYTES  256

struct receive {
    uint64_t first, end;       /* addresses of what is watched; equal: nothing */
    uint64_t words_end;        /* of the words that are filled, which come first */
    uint64_t pages, pages_end; /* that the program cannot access; equal: none */
    uint64_t before;           /* bytes of the receive before the first word */
    uint64_t *saved;           /* what the words were */
    uint64_t saved_bytes;
    uint64_t wr_id;
    uint32_t length, lkey;
    bool peers_write; /* the region allows it */
    struct stacktrace posted; /* in virtual time */
};

struct checked_rq {
    struct receive *receives; /* by slot; NULL: live, and their memory is not watched */
    const void *callers[];    /* by slot: where the receive was posted */
};

/* The receives whose memory is watched: no two of them overlap. */
static void *watched;
/* Memory that send queues have used is not watched: a request that has not completed may still need
 * it. One bit for each granule, by a hash of its address. */
#define GRANULE_SHIFT 8
#define GRANULE_BITS  20
static uint64_t used_by_sends[1 << GRANULE_BITS >> 6];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread bool has_lock;

static void take_lock(void)
{
    pthread_mutex_lock(&lock);
    has_lock = true;
}

static void drop_lock(void)
{
    has_lock = false;
    pthread_mutex_unlock(&lock);
}

bool receives_stack(const struct hca_rq *rq, uint32_t slot, struct stacktrace *posted)
{
    const struct checked_rq *checked = rq->checked;

    if (!checked)
        return false;
    if (hca_engine->charge)
        *posted = checked->receives[slot].posted;
    else
        *posted = (struct stacktrace){ 1, { (void *)checked->callers[slot] } };
    return true;
}

/* ---- watching: with the lock held ---- */

/* Equal, if they overlap. */
static int compare(const void *a, const void *b)
{
    const struct receive *left = a, *right = b;

    return left->end <= right->first ? -1 : left->first >= right->end ? 1 : 0;
}

static bool is_watched(const struct receive *receive)
{
    return receive->first < receive->end;
}

/* The program may have given the memory away, though the receive has not completed. */
static bool is_registered(const struct receive *receive)
{
    const struct shared_mr *mr = mr_own(receive->lkey);

    return mr && load_acquire(&mr->key) == receive->lkey && !load_relaxed(&mr->unmapped);
}

static void unguard(struct receive *receive)
{
    if (receive->pages < receive->pages_end)
        guard_end(receive->pages, receive->pages_end, is_registered(receive));
    receive->pages = receive->pages_end;
}

/* Leaves the memory as it is. */
static void unwatch(struct receive *receive)
{
    unguard(receive);
    tdelete(receive, &watched, compare);
    receive->end = receive->first;
}

/* Gives back the words behind the first `placed` bytes of the receive. Returns whether one of them
 * has changed. */
static bool restore(struct receive *receive, uint64_t placed)
{
    uint64_t count = (receive->words_end - receive->first) / sizeof(uint64_t), poison = POISON;
    char *bytes = (char *)receive->first;
    bool changed = false;

    unguard(receive);
    placed = placed > receive->before ? placed - receive->before : 0;
    for (uint64_t i = placed / sizeof(poison); i < count; i++) {
        uint64_t at = i * sizeof(poison), skip = placed > at ? placed - at : 0;

        if (memcmp(bytes + at + skip, (char *)&poison + skip, sizeof(poison) - skip))
            changed = true;
        else
            memcpy(bytes + at + skip, (char *)&receive->saved[i] + skip, sizeof(poison) - skip);
    }
    return changed;
}

static bool release(uint64_t addr, uint64_t length)
{
    struct receive range = { .first = addr, .end = addr + length }, **found;
    bool any = false;

    while (length && (found = tfind(&range, &watched, compare))) {
        struct receive *receive = *found;

        if (is_registered(receive))
            restore(receive, 0);
        unwatch(receive);
        any = true;
    }
    return any;
}

static bool release_all_of(const struct hca_rq *rq, const struct recv_wqe *wqe)
{
    bool any = false;

    for (uint32_t i = 0; i < wqe->num_sge && i < rq->max_sge; i++)
        any |= release(wqe->sge[i].addr, wqe->sge[i].length);
    return any;
}

static uint32_t bit_of(uint64_t granule)
{
    return granule * 0x9e3779b97f4a7c15ull >> (64 - GRANULE_BITS);
}

static bool is_used_by_sends(uint64_t first, uint64_t end)
{
    bool used = false;

    for (uint64_t at = first >> GRANULE_SHIFT; at <= (end - 1) >> GRANULE_SHIFT; at++)
        used |= used_by_sends[bit_of(at) >> 6] >> (bit_of(at) & 63) & 1;
    return used;
}

static bool make_room(struct receive *receive, uint64_t bytes)
{
    if (bytes > receive->saved_bytes) {
        free(receive->saved);
        receive->saved = malloc(bytes);
        receive->saved_bytes = receive->saved ? bytes : 0;
    }
    return receive->saved;
}

/* The whole pages of a watched receive. */
static void protect(struct receive *receive, uint32_t pd, const struct recv_wqe *wqe)
{
    uint32_t length = wqe->sge[0].length < GUARDED_BYTES ? wqe->sge[0].length : GUARDED_BYTES;
    uint64_t addr = wqe->sge[0].addr, first = round_up(addr, PAGE_BYTES), end = addr + length;
    struct mem_ref ref;

    if ((addr | end) & (PAGE_BYTES - 1))
        end = (end - SPARED_BYTES) & ~(PAGE_BYTES - 1);
    if (length <= SPARED_BYTES || first >= end || is_used_by_sends(first, end) ||
        !mr_local(wqe->sge[0].lkey, pd, addr, length, true, &ref) || ref.addr != addr ||
        !guard_begin(first, end))
        return;
    receive->pages = first;
    receive->pages_end = end;
    receive->end = end > receive->end ? end : receive->end;
}

static void watch(struct receive *receive, uint32_t pd, const struct recv_wqe *wqe)
{
    uint32_t length = wqe->sge[0].length < WATCHED_BYTES ? wqe->sge[0].length : WATCHED_BYTES;
    uint64_t first, end;
    struct mem_ref ref;

    if (!mr_local(wqe->sge[0].lkey, pd, wqe->sge[0].addr, length, true, &ref) ||
        ref.mr->kind != MR_USER || load_relaxed(&ref.mr->unmapped))
        return;
    first = round_up(ref.addr, sizeof(uint64_t));
    end = (ref.addr + length) & ~(sizeof(uint64_t) - 1);
    if (first >= end || is_used_by_sends(first, end) || !make_room(receive, end - first))
        return;
    receive->first = first;
    receive->end = receive->words_end = end;
    if (!tsearch(receive, &watched, compare)) {
        receive->end = first;
        return;
    }
    receive->before = first - ref.addr;
    receive->lkey = wqe->sge[0].lkey;
    receive->length = wqe->sge[0].length;
    receive->peers_write = ref.mr->access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND);
    memcpy(receive->saved, (void *)first, end - first);
    for (uint64_t *word = (uint64_t *)first; word < (uint64_t *)end; word++)
        *word = POISON;
    protect(receive, pd, wqe);
}

void receives_not_here(uint64_t addr, uint64_t length)
{
    if (!length)
        return;
    take_lock();
    for (uint64_t at = addr >> GRANULE_SHIFT; at <= (addr + length - 1) >> GRANULE_SHIFT; at++)
        used_by_sends[bit_of(at) >> 6] |= 1ull << (bit_of(at) & 63);
    release(addr, length);
    drop_lock();
}

/* ---- guarded pages ---- */

struct access {
    uint64_t first, end;
    const void *pc; /* of the program; NULL: in a system call */
    bool is_told;
    bool found;
};

static void let_through(const void *node, VISIT visit, void *context)
{
    struct receive *receive = *(struct receive *const *)node;
    struct access *access = context;

    if ((visit != preorder && visit != leaf) || receive->pages >= access->end ||
        receive->pages_end <= access->first || receive->pages == receive->pages_end)
        return;
    if (access->is_told) {
        struct guard_receive told = { receive->first - receive->before, receive->wr_id,
                                      receive->length, &receive->posted };

        guard_touched(&told, access->first > receive->pages ? access->first : receive->pages,
                      access->pc);
    }
    access->found = true;
    unguard(receive);
}

bool receives_touched(const void *addr, size_t length, const void *pc)
{
    struct access access = { (uintptr_t)addr, (uintptr_t)addr + length, pc, .is_told = true };

    if (has_lock) /* the fault is ours */
        return false;
    take_lock();
    twalk_r(watched, let_through, &access);
    drop_lock();
    if (!access.found && pc)
        guard_report(); /* the program is about to crash */
    return access.found;
}

void receives_accessible(const void *addr, size_t length)
{
    struct access access = { (uintptr_t)addr, (uintptr_t)addr + length };

    take_lock();
    twalk_r(watched, let_through, &access);
    drop_lock();
}

/* What was in the memory before goes with it. */
void receives_unmapped(const void *addr, size_t length)
{
    struct receive range = { .first = (uintptr_t)addr, .end = (uintptr_t)addr + length }, **found;

    if (!length || has_lock)
        return;
    take_lock();
    while ((found = tfind(&range, &watched, compare)))
        unwatch(*found);
    drop_lock();
}

void receives_inherit_none(void)
{
    pthread_mutex_init(&lock, NULL); /* a thread of the parent may have held it */
    receives_accessible(NULL, SIZE_MAX);
}

/* ---- receive queues ---- */

static struct checked_rq *make(const struct hca_rq *rq)
{
    struct checked_rq *checked = calloc(1, sizeof(*checked) + rq->depth * sizeof(void *));

    if (!checked || (!hca_engine->charge && !sanitize_strict))
        return checked;
    checked->receives = calloc(rq->depth, sizeof(*checked->receives));
    if (!checked->receives) {
        free(checked);
        return NULL;
    }
    return checked;
}

static __attribute__((noinline)) bool posted(struct hca_rq *rq, uint32_t slot, uint32_t pd)
{
    const struct recv_wqe *wqe = rq_own_wqe(rq, slot);
    struct checked_rq *checked = rq->checked;
    struct receive *receive;

    if (!checked && !(checked = rq->checked = make(rq)))
        return false;
    checked->callers[slot] = check_caller;
    if (!checked->receives)
        return false;
    receive = &checked->receives[slot];
    if (hca_engine->charge)
        stacktrace_take(&receive->posted);
    if (!sanitize_strict)
        return false;
    receive->wr_id = rq->receives[slot].wr_id;
    take_lock();
    /* Two receives with the same memory: the program cannot mean to read either. */
    if (!release_all_of(rq, wqe) && wqe->num_sge == 1)
        watch(receive, pd, wqe);
    drop_lock();
    guard_report();
    return true;
}

/* To explain errors must cost nothing that can be measured: the way through here is short. */
bool receives_posted(struct hca_rq *rq, uint32_t slot, uint32_t pd)
{
    struct checked_rq *checked = rq->checked;

    if (unlikely(!checked || checked->receives))
        return posted(rq, slot, pd);
    checked->callers[slot] = check_caller;
    return false;
}

static void report(const struct hca_rq *rq, uint32_t slot, const struct receive *receive)
{
    struct stacktrace posted = { 0 }, here;
    struct finding *finding;

    if (sanitize_is_enough(RULE_RECEIVE_BUFFER))
        return;
    stacktrace_take(&here);
    receives_stack(rq, slot, &posted);
    finding = finding_begin("receive-buffer-written",
                            "the memory of a receive, wr_id 0x%llx, at 0x%llx, was written between "
                            "post and completion",
                            (unsigned long long)rq->receives[slot].wr_id,
                            (unsigned long long)(receive->first - receive->before));
    finding_stack(finding, "posted", &posted);
    finding_stack(finding, "completion polled", &here);
    finding_end(finding);
}

void receives_completes(struct hca_rq *rq, uint32_t slot, enum ibv_wc_status status,
                        uint32_t placed)
{
    struct checked_rq *checked = rq->checked;
    struct receive *receive;
    bool changed = false;

    if (!checked || !sanitize_strict)
        return;
    receive = &checked->receives[slot];
    take_lock();
    if (is_watched(receive)) {
        changed = status == IBV_WC_SUCCESS && restore(receive, placed) && !receive->peers_write;
        unwatch(receive);
    }
    release_all_of(rq, rq_own_wqe(rq, slot));
    drop_lock();
    guard_report();
    if (changed)
        report(rq, slot, receive);
}

void receives_dropped(struct hca_rq *rq, bool for_good)
{
    struct checked_rq *checked = rq->checked;

    if (!checked)
        return;
    take_lock();
    for (uint32_t i = 0; checked->receives && i < rq->depth; i++) {
        if (is_watched(&checked->receives[i]))
            unwatch(&checked->receives[i]);
        if (for_good)
            free(checked->receives[i].saved);
    }
    drop_lock();
    if (for_good) {
        free(checked->receives);
        free(checked);
        rq->checked = NULL;
    }
}
