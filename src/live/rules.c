#include "live/rules.h"

#include "live/extent.h"
#include "live/live.h"
#include "util/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REMOTE_ACCESS (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

/* One stretch of memory of a candidate; the same candidate without one when the region is judged.
 */
struct question {
    const struct candidate *c;
    const struct vma *vma;
    uint64_t start, length;
};

static bool copy_asked(const struct question *q)
{
    return q->c->mode == MR_COPY;
}

static bool kernel_lacks(const struct question *q)
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

/* The service thread does not count: it does not touch the program's memory. */
static bool threads_unwatched(const struct question *q)
{
    (void)q;
    return swap_offered(NULL) == SWAP_USER_ONLY && thread_count() > 1u + service_is_running();
}

static bool not_remote(const struct question *q)
{
    return !(q->c->access & REMOTE_ACCESS);
}

static bool on_demand(const struct question *q)
{
    return q->c->access & IBV_ACCESS_ON_DEMAND || !q->c->length;
}

static bool unaligned(const struct question *q)
{
    return q->c->addr % PAGE_BYTES;
}

static bool is_file(const struct question *q)
{
    return q->vma->shared || q->vma->inode;
}

static bool is_read_only(const struct question *q)
{
    return !q->vma->writable || !q->vma->readable;
}

/* The stack that we run on, or the first thread's. */
static bool is_stack(const struct question *q)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);

    return q->vma->is_stack || (here >= q->vma->start && here < q->vma->end);
}

static bool is_hugetlb(const struct question *q)
{
    return q->vma->page_size != PAGE_BYTES;
}

static bool has_huge_pages(const struct question *q)
{
    return vma_has_huge_pages(q->start, q->length);
}

static bool too_many_descriptors(const struct question *q)
{
    (void)q;
    return extent_too_many();
}

/* The first rule that applies decides. Rules of thrift hold only where nobody insists. */
struct rule {
    enum share_reason reason;
    bool (*applies)(const struct question *q);
    bool thrift;
};

static const struct rule region_rules[] = {
    { WHY_ASKED, copy_asked, false },      { WHY_KERNEL, kernel_lacks, false },
    { WHY_NOT_REMOTE, not_remote, false }, { WHY_ON_DEMAND, on_demand, false },
    { WHY_UNALIGNED, unaligned, false },   { WHY_THREADS, threads_unwatched, false },
};

static const struct rule stretch_rules[] = {
    { WHY_FILE, is_file, false },      { WHY_READ_ONLY, is_read_only, false },
    { WHY_STACK, is_stack, false },    { WHY_HUGE, is_hugetlb, false },
    { WHY_THP, has_huge_pages, true }, { WHY_DESCRIPTORS, too_many_descriptors, true },
};

static const struct {
    int err;
    enum share_reason reason;
} swap_outcomes[] = {
    { 0, SHARED },           { EBUSY, WHY_PINNED },       { EINVAL, WHY_LOCKED },
    { EEXIST, WHY_WATCHED }, { EMFILE, WHY_DESCRIPTORS }, { ENFILE, WHY_DESCRIPTORS },
};

static const char *const texts[] = {
    [SHARED] = "for peers to map",
    [WHY_ASKED] = "copying was asked for",
    [WHY_KERNEL] = "the kernel offers too little",
    [WHY_THREADS] = "userfaultfd serves user mode only, and the program has threads",
    [WHY_NOT_REMOTE] = "peers have no access to it",
    [WHY_ON_DEMAND] = "on-demand or empty",
    [WHY_UNALIGNED] = "does not begin on a page",
    [WHY_NOT_THERE] = "not all of it is mapped",
    [WHY_PIECES] = "lies in too many mappings",
    [WHY_FILE] = "a file or shared memory of the program's own",
    [WHY_READ_ONLY] = "mapped without read and write permission",
    [WHY_STACK] = "on a stack",
    [WHY_HUGE] = "huge pages",
    [WHY_THP] = "transparent huge pages",
    [WHY_DESCRIPTORS] = "the program needs its descriptors",
    [WHY_LET_GO] = "its file is not open any more",
    [WHY_PINNED] = "pages are pinned by the kernel",
    [WHY_LOCKED] = "locked in memory",
    [WHY_WATCHED] = "watched by a userfaultfd of the program",
    [WHY_NO_MEMORY] = "no memory for it",
};
_Static_assert(ARRAY_SIZE(texts) == SHARE_REASONS, "a text for each reason");

const char *share_reason_text(enum share_reason reason)
{
    return texts[reason];
}

static enum share_reason judge(const struct rule *rules, unsigned count, const struct question *q)
{
    for (unsigned i = 0; i < count; i++)
        if (!(rules[i].thrift && q->c->mode == MR_SHARE) && rules[i].applies(q))
            return rules[i].reason;
    return SHARED;
}

enum share_reason rules_for_region(const struct candidate *c)
{
    return judge(region_rules, ARRAY_SIZE(region_rules), &(struct question){ .c = c });
}

enum share_reason rules_for_stretch(const struct candidate *c, const struct vma *vma,
                                    uint64_t start, uint64_t length)
{
    return judge(stretch_rules, ARRAY_SIZE(stretch_rules),
                 &(struct question){ c, vma, start, length });
}

enum share_reason rules_after_swap(int err)
{
    for (unsigned i = 0; i < ARRAY_SIZE(swap_outcomes); i++)
        if (swap_outcomes[i].err == err)
            return swap_outcomes[i].reason;
    return WHY_NO_MEMORY;
}

enum mr_mode mr_mode(void)
{
    static const char *const words[] = {
        [MR_AUTO] = "auto", [MR_COPY] = "copy", [MR_SHARE] = "share"
    };
    static _Atomic int mode = -1;
    const char *asked = getenv("VERBENA_MR");

    if (likely(mode >= 0))
        return mode;
    if (!asked || !*asked)
        return mode = MR_AUTO;
    for (unsigned i = 0; i < ARRAY_SIZE(words); i++)
        if (!strcmp(asked, words[i]))
            return mode = i;
    log_warn("VERBENA_MR=%s: auto, copy or share are wanted", asked);
    return mode = MR_AUTO;
}
