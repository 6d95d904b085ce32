/* SPDX-License-Identifier: BSD-2-Clause */
#include "dma/mapped/rules.h"

#include "dma/agent.h"
#include "dma/mapped/extent.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGE_BYTES   (1ull << 30)
#define REMOTE_ACCESS (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

/* A candidate and one range of its memory; no range in rules for the whole region. */
struct rule_input {
    const struct candidate *c;
    const struct vma *vma;
    uint64_t start, length;
};

static bool copy_asked(const struct rule_input *q)
{
    return q->c->mode == MR_COPY;
}

static bool kernel_lacks(const struct rule_input *q)
{
    (void)q;
    return swap_offered(NULL) == SWAP_NONE;
}

static unsigned thread_count(void)
{
    FILE *f = fopen("/proc/self/status", "re");
    char line[128];
    unsigned threads = 0;

    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "Threads: %u", &threads) == 1)
            break;
    if (f)
        fclose(f);
    return threads;
}

/* Not counting the service thread, which does not access the program's memory. */
static bool threads_unwatched(const struct rule_input *q)
{
    return swap_offered(NULL) == SWAP_USER_ONLY &&
           (q->c->in_background || thread_count() > 1u + agent_is_running());
}

static bool on_own_stack(const struct rule_input *q)
{
    static __thread uintptr_t low, high;
    pthread_attr_t attr;
    size_t size;
    void *base;

    if (!high && !pthread_getattr_np(pthread_self(), &attr)) {
        pthread_attr_getstack(&attr, &base, &size);
        pthread_attr_destroy(&attr);
        low = (uintptr_t)base;
        high = low + size;
    }
    return q->c->addr < high && q->c->addr + q->c->length > low;
}

static bool not_remote(const struct rule_input *q)
{
    return !(q->c->access & REMOTE_ACCESS);
}

static bool on_demand(const struct rule_input *q)
{
    return q->c->access & IBV_ACCESS_ON_DEMAND || !q->c->length;
}

static bool unaligned(const struct rule_input *q)
{
    return q->c->addr % PAGE_BYTES;
}

/* The exchange takes a second for each GiB. */
static bool too_large(const struct rule_input *q)
{
    return q->c->length > LARGE_BYTES;
}

static bool is_file(const struct rule_input *q)
{
    return q->vma->shared || q->vma->inode;
}

static bool is_read_only(const struct rule_input *q)
{
    return !q->vma->writable || !q->vma->readable;
}

/* The stack of this thread, or of the first one. */
static bool is_stack(const struct rule_input *q)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);

    return q->vma->is_stack || (here >= q->vma->start && here < q->vma->end);
}

static bool is_hugetlb(const struct rule_input *q)
{
    return q->vma->page_size != PAGE_BYTES;
}

static bool has_huge_pages(const struct rule_input *q)
{
    return vma_has_huge_pages(q->start, q->length);
}

static bool too_many_descriptors(const struct rule_input *q)
{
    (void)q;
    return extent_too_many();
}

/* What a rule examines: the region, when it is registered and before an exchange; each range of its
 * memory; the outcome of the exchange. */
enum stage { REGION, EXCHANGE, RANGE, OUTCOME };

struct rule {
    enum share_reason reason;
    enum stage stage;
    bool auto_only; /* not with VERBENA_MR=share */
    bool (*applies)(const struct rule_input *q);
    int err; /* OUTCOME */
    const char *text;
};

/* The first rule that applies decides. */
/* clang-format off */
static const struct rule rules[] = {
    { WHY_ASKED,       REGION,  false, copy_asked,           0, "copying was asked for" },
    { WHY_NOT_REMOTE,  REGION,  false, not_remote,           0, "peers have no access to it" },
    { WHY_ON_DEMAND,   REGION,  false, on_demand,            0, "on-demand or empty" },
    { WHY_STACK,       REGION,  false, on_own_stack,         0, "on a stack" },
    { WHY_KERNEL,      EXCHANGE, false, kernel_lacks,        0, "the kernel offers too little" },
    { WHY_UNALIGNED,   EXCHANGE, false, unaligned,           0, "does not begin on a page" },
    { WHY_LARGE,       EXCHANGE, true,  too_large,           0, "too large to be exchanged unasked" },
    { WHY_THREADS,     EXCHANGE, false, threads_unwatched,   0,
      "userfaultfd serves user mode only, and the program has threads" },
    { WHY_FILE,        RANGE,   false, is_file,              0, "a file or shared memory of the program's own" },
    { WHY_READ_ONLY,   RANGE,   false, is_read_only,         0, "mapped without read and write permission" },
    { WHY_STACK,       RANGE,   false, is_stack,             0, "on a stack" },
    { WHY_HUGE,        RANGE,   false, is_hugetlb,           0, "huge pages" },
    { WHY_THP,         RANGE,   true,  has_huge_pages,       0, "transparent huge pages" },
    { WHY_DESCRIPTORS, RANGE,   true,  too_many_descriptors, 0, "the program needs its descriptors" },
    { WHY_PINNED,      OUTCOME, false, NULL,            EBUSY,  "pages are pinned by the kernel" },
    { WHY_LOCKED,      OUTCOME, false, NULL,            EINVAL, "locked in memory" },
    { WHY_WATCHED,     OUTCOME, false, NULL,            EEXIST, "watched by a userfaultfd of the program" },
    { WHY_DESCRIPTORS, OUTCOME, false, NULL,            EMFILE, "the program needs its descriptors" },
};
/* clang-format on */

/* Reasons without a rule. */
static const char *const other_texts[SHARE_REASONS] = {
    [SHARED] = "for peers to map",
    [WHY_NOT_THERE] = "not all of it is mapped",
    [WHY_PIECES] = "lies in too many mappings",
    [WHY_LET_GO] = "its file is not open any more",
    [WHY_NO_MEMORY] = "no memory for it",
    [WHY_UNUSED] = "peers have not used it enough",
};

const char *rules_reason_text(enum share_reason reason)
{
    for (unsigned i = 0; i < ARRAY_SIZE(rules); i++)
        if (rules[i].reason == reason)
            return rules[i].text;
    return other_texts[reason];
}

static enum share_reason judge(enum stage stage, const struct rule_input *q)
{
    for (unsigned i = 0; i < ARRAY_SIZE(rules); i++)
        if (rules[i].stage == stage && !(rules[i].auto_only && q->c->mode == MR_SHARE) &&
            rules[i].applies(q))
            return rules[i].reason;
    return SHARED;
}

enum share_reason rules_for_region(const struct candidate *c)
{
    return judge(REGION, &(struct rule_input){ .c = c });
}

enum share_reason rules_for_exchange(const struct candidate *c)
{
    return judge(EXCHANGE, &(struct rule_input){ .c = c });
}

enum share_reason rules_for_range(const struct candidate *c, const struct vma *vma, uint64_t start,
                                  uint64_t length)
{
    return judge(RANGE, &(struct rule_input){ c, vma, start, length });
}

enum share_reason rules_after_swap(int err)
{
    for (unsigned i = 0; i < ARRAY_SIZE(rules); i++)
        if (rules[i].stage == OUTCOME && rules[i].err == err)
            return rules[i].reason;
    return WHY_NO_MEMORY;
}
