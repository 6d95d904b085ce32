/* SPDX-License-Identifier: BSD-2-Clause */
#include "check/guard.h"

#include "check/finding.h"
#include "check/sanitize.h"
#include "hca/observer.h"
#include "hca/proc.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#define GUARDS_MAX  1024 /* each may split a mapping, of which a process has 65530 */
#define TOUCHES_MAX 8    /* until the next report */
#define KNOWN_MAX   64   /* pages */

struct touch {
    struct guard_receive receive;
    struct stacktrace posted, touched;
    uint64_t address;
};

static atomic_int guards;
static struct touch touches[TOUCHES_MAX];
static atomic_uint touch_count;

/* ---- pages ---- */

/* A fault on the stack could not be handled there. */
static bool is_stack(uint64_t first, uint64_t end)
{
    static __thread uint64_t low, high;
    pthread_attr_t attr;
    size_t size;
    void *base;

    if (!high && !pthread_getattr_np(pthread_self(), &attr)) {
        pthread_attr_getstack(&attr, &base, &size);
        pthread_attr_destroy(&attr);
        low = (uintptr_t)base;
        high = low + size;
    }
    return first < high && end > low;
}

/* Peers reach guarded pages through /proc/PID/mem, which takes no notice of protection as long as
 * nobody shares the pages, and the kernel is not set up to refuse that. */
static bool peers_reach(uint64_t address)
{
    static __thread uint64_t known[KNOWN_MAX]; /* most buffers are posted again and again */
    uint64_t page = address / PAGE_BYTES, *entry = &known[page % KNOWN_MAX];
    int fd;
    char byte;

    if (load_relaxed(&proc_slot(proc_self)->agent_running) == AGENT_FOR_ALL)
        return false;
    if (*entry == page)
        return true;
    fd = proc_memory(proc_self);
    if (fd < 0 || pread(fd, &byte, 1, address) != 1 || pwrite(fd, &byte, 1, address) != 1)
        return false;
    *entry = page;
    return true;
}

bool guard_begin(uint64_t first, uint64_t end)
{
    if (!hca_faults_seen || first >= end || is_stack(first, end))
        return false;
    if (atomic_fetch_add(&guards, 1) < GUARDS_MAX &&
        !mprotect((void *)first, end - first, PROT_NONE) && peers_reach(first) &&
        peers_reach(end - 1))
        return true;
    guard_end(first, end, true);
    return false;
}

void guard_end(uint64_t first, uint64_t end, bool exist)
{
    atomic_fetch_sub(&guards, 1);
    if (exist)
        mprotect((void *)first, end - first, PROT_READ | PROT_WRITE);
}

/* ---- accesses ---- */

void guard_touched(const struct guard_receive *receive, uint64_t address, const void *pc)
{
    unsigned number = atomic_load(&touch_count);

    if (number == TOUCHES_MAX)
        return;
    touches[number].receive = *receive;
    touches[number].posted = *receive->posted;
    touches[number].address = address;
    if (pc)
        stacktrace_take_fault(&touches[number].touched, pc);
    else
        stacktrace_take(&touches[number].touched);
    atomic_store(&touch_count, number + 1);
}

void guard_report(void)
{
    unsigned count = atomic_exchange(&touch_count, 0);

    for (unsigned i = 0; i < count && !sanitize_is_enough(RULE_RECEIVE_BUFFER); i++) {
        const struct touch *touch = &touches[i];
        struct finding *finding =
            finding_begin("receive-buffer-touched",
                          "byte %llu of the %u bytes of a receive, wr_id 0x%llx, at 0x%llx, was "
                          "read or written between post and completion",
                          (unsigned long long)(touch->address - touch->receive.addr),
                          touch->receive.length, (unsigned long long)touch->receive.wr_id,
                          (unsigned long long)touch->receive.addr);

        finding_stack(finding, "posted", &touch->posted);
        finding_stack(finding, "touched", &touch->touched);
        finding_end(finding);
    }
}

__attribute__((destructor)) static void report_last(void)
{
    guard_report();
}
