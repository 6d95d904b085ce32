/* SPDX-License-Identifier: BSD-2-Clause */
#include "check/receives.h"

#include "check/check.h"
#include "check/finding.h"
#include "check/posts.h"
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
/* Of each receive. UCX posts receives that reach into what it keeps behind the buffer; and a copy of
 * long ones would cost more than the message. */
#define WATCHED_BYTES 256

struct receive {
    uint64_t first, end; /* addresses of the words that are watched; equal: none */
    uint64_t before;     /* bytes of the receive before the first word */
    uint64_t *saved;     /* what the words were */
    uint64_t saved_bytes;
    uint32_t lkey;
    bool peers_write; /* the region allows it */
    struct stacktrace posted;
};

/* The receives whose memory is watched: no two of them overlap. */
static void *watched;
/* Memory that send queues have used is not watched: a request that has not completed may still need
 * it. One bit for each granule, by a hash of its address. */
#define GRANULE_SHIFT 8
#define GRANULE_BITS  20
static uint64_t used_by_sends[1 << GRANULE_BITS >> 6];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const struct stacktrace *receives_stack(const struct hca_rq *rq, uint32_t slot)
{
    const struct receive *receives = rq->checked;

    return receives ? &receives[slot].posted : NULL;
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

/* Leaves the memory as it is. */
static void unwatch(struct receive *receive)
{
    tdelete(receive, &watched, compare);
    receive->end = receive->first;
}

/* Gives back the words behind the first `placed` bytes of the receive. Returns whether one of them
 * has changed. */
static bool restore(const struct receive *receive, uint64_t placed)
{
    uint64_t count = (receive->end - receive->first) / sizeof(uint64_t), poison = POISON;
    char *bytes = (char *)receive->first;
    bool changed = false;

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

/* The program may have given the memory away, though the receive has not completed. */
static bool is_registered(const struct receive *receive)
{
    const struct shared_mr *mr = mr_own(receive->lkey);

    return mr && load_acquire(&mr->key) == receive->lkey && !load_relaxed(&mr->unmapped);
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
    receive->end = end;
    if (!tsearch(receive, &watched, compare)) {
        receive->end = first;
        return;
    }
    receive->before = first - ref.addr;
    receive->lkey = wqe->sge[0].lkey;
    receive->peers_write = ref.mr->access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND);
    memcpy(receive->saved, (void *)first, end - first);
    for (uint64_t *word = (uint64_t *)first; word < (uint64_t *)end; word++)
        *word = POISON;
}

void receives_not_here(uint64_t addr, uint64_t length)
{
    if (!length)
        return;
    pthread_mutex_lock(&lock);
    for (uint64_t at = addr >> GRANULE_SHIFT; at <= (addr + length - 1) >> GRANULE_SHIFT; at++)
        used_by_sends[bit_of(at) >> 6] |= 1ull << (bit_of(at) & 63);
    release(addr, length);
    pthread_mutex_unlock(&lock);
}

/* ---- receive queues ---- */

bool receives_posted(struct hca_rq *rq, uint32_t slot, uint32_t pd)
{
    const struct recv_wqe *wqe = rq_own_wqe(rq, slot);
    struct receive *receives = rq->checked;

    if (!receives)
        receives = rq->checked = calloc(rq->depth, sizeof(*receives));
    if (!receives)
        return false;
    post_take_stack(&receives[slot].posted);
    if (!check_sanitizes)
        return false;
    pthread_mutex_lock(&lock);
    /* Two receives with the same memory: the program cannot mean to read either. */
    if (!release_all_of(rq, wqe) && wqe->num_sge == 1)
        watch(&receives[slot], pd, wqe);
    pthread_mutex_unlock(&lock);
    return true;
}

static void report(const struct hca_rq *rq, uint32_t slot, const struct receive *receive)
{
    struct stacktrace here;
    struct finding *finding;

    if (sanitize_is_enough(RULE_RECEIVE_BUFFER))
        return;
    stacktrace_take(&here);
    finding = finding_begin("receive-buffer-written",
                            "the memory of a receive, wr_id 0x%llx, at 0x%llx, was written between "
                            "post and completion",
                            (unsigned long long)rq->receives[slot].wr_id,
                            (unsigned long long)(receive->first - receive->before));
    finding_stack(finding, "posted", &receive->posted);
    finding_stack(finding, "completion polled", &here);
    finding_end(finding);
}

void receives_completes(struct hca_rq *rq, uint32_t slot, enum ibv_wc_status status,
                        uint32_t placed)
{
    struct receive *receives = rq->checked, *receive = receives ? &receives[slot] : NULL;
    bool changed = false;

    if (!receive || !check_sanitizes)
        return;
    pthread_mutex_lock(&lock);
    if (is_watched(receive)) {
        changed = status == IBV_WC_SUCCESS && restore(receive, placed) && !receive->peers_write;
        unwatch(receive);
    }
    release_all_of(rq, rq_own_wqe(rq, slot));
    pthread_mutex_unlock(&lock);
    if (changed)
        report(rq, slot, receive);
}

void receives_dropped(struct hca_rq *rq, bool for_good)
{
    struct receive *receives = rq->checked;

    if (!receives)
        return;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < rq->depth; i++) {
        if (is_watched(&receives[i]))
            unwatch(&receives[i]);
        if (for_good)
            free(receives[i].saved);
    }
    pthread_mutex_unlock(&lock);
    if (for_good) {
        free(receives);
        rq->checked = NULL;
    }
}
