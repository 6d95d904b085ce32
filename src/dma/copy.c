/* SPDX-License-Identifier: BSD-2-Clause */
#include "dma/copy.h"

#include "hca/arena.h"
#include "hca/engine.h"
#include "hca/epoch.h"
#include "hca/observer.h"
#include "hca/proc.h"
#include "dma/peer.h"
#include "hca/shm_lock.h"
#include "util/log.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STAGING_BYTES     (1u << 20)
#define AGENT_PATIENCE_NS 10000000000ull

/* ---- by system call ---- */

/* The access may have failed because the owner was exchanging that memory: then it is accessible
 * again in a moment. */
static bool was_being_exchanged(unsigned proc, uint32_t swaps_before)
{
    uint64_t started = now_ns();

    while (load_acquire(&proc_slot(proc)->swaps) & 1 && proc_alive(proc) &&
           now_ns() - started < AGENT_PATIENCE_NS)
        sched_yield();
    return load_acquire(&proc_slot(proc)->swaps) != swaps_before;
}

static int vm_copy(unsigned proc, struct iovec *local, unsigned locals, struct iovec *remote,
                   unsigned remotes, uint64_t length, bool out)
{
    pid_t pid = proc_slot(proc)->pid;

    while (length) {
        uint32_t swaps = load_acquire(&proc_slot(proc)->swaps);
        ssize_t n = out ? process_vm_writev(pid, local, locals, remote, remotes, 0)
                        : process_vm_readv(pid, local, locals, remote, remotes, 0);
        if (n < 0 && errno == EFAULT && was_being_exchanged(proc, swaps))
            continue;
        if (n <= 0)
            return n < 0 ? errno : EFAULT;
        length -= n;
        if (likely(!length))
            return 0;
        for (size_t left = n; left;) { /* the kernel copies at most 2 GiB at once */
            size_t step = left < local->iov_len ? left : local->iov_len;
            local->iov_base = (char *)local->iov_base + step;
            local->iov_len -= step;
            left -= step;
            if (!local->iov_len && locals > 1)
                local++, locals--;
        }
        for (size_t left = n; left;) {
            size_t step = left < remote->iov_len ? left : remote->iov_len;
            remote->iov_base = (char *)remote->iov_base + step;
            remote->iov_len -= step;
            left -= step;
            if (!remote->iov_len && remotes > 1)
                remote++, remotes--;
        }
    }
    return 0;
}

/* The current position in a list of pieces. */
struct cursor {
    struct iovec *iov;
    unsigned count;
};

static size_t cursor_step(struct cursor *c, size_t most, char **at)
{
    while (c->count && !c->iov->iov_len)
        c->iov++, c->count--;
    if (!c->count)
        return 0;
    size_t n = c->iov->iov_len < most ? c->iov->iov_len : most;
    *at = c->iov->iov_base;
    c->iov->iov_base = (char *)c->iov->iov_base + n;
    c->iov->iov_len -= n;
    return n;
}

/* ---- through /proc/PID/mem: slower, because the kernel copies through a buffer ---- */

static int memory_file_step(unsigned proc, int fd, char *at, uint64_t addr, size_t length, bool out)
{
    while (length) {
        uint32_t swaps = load_acquire(&proc_slot(proc)->swaps);
        ssize_t n = out ? pwrite(fd, at, length, addr) : pread(fd, at, length, addr);
        if (n <= 0 && (n == 0 || !was_being_exchanged(proc, swaps)))
            return EFAULT;
        if (n <= 0)
            continue;
        at += n;
        addr += n;
        length -= n;
    }
    return 0;
}

/* EPERM: that file is refused, too. */
static int memory_file_copy(unsigned proc, struct cursor local, struct cursor remote, bool out)
{
    int fd = proc_memory(proc), err = 0;
    char *there, *here;

    if (fd < 0)
        return EPERM;
    for (size_t left; !err && (left = cursor_step(&remote, SIZE_MAX, &there));)
        for (size_t n; !err && left && (n = cursor_step(&local, left, &here));
             left -= n, there += n)
            err = memory_file_step(proc, fd, here, (uintptr_t)there, n, out);
    return err;
}

/* ---- by the owner ---- */

static uint32_t request_word(uint32_t number, enum copy_state state)
{
    return number << COPY_STATE_BITS | state;
}

static enum copy_state request_state(uint32_t word)
{
    return word & ((1u << COPY_STATE_BITS) - 1);
}

/* Waits until the request is no longer posted or busy. */
static int await_owner(unsigned proc, struct proc_slot *slot)
{
    uint64_t started = now_ns();

    for (unsigned spins = 1;; spins++) {
        enum copy_state state = request_state(load_acquire(&slot->copy.state));
        if (state != COPY_POSTED && state != COPY_BUSY)
            return state == COPY_DONE ? 0 : EFAULT;
        if (spins % 64 == 0) {
            sched_yield();
            if (!proc_alive(proc))
                return ESRCH;
        }
        /* In virtual time, an owner may wait long for a processor. */
        if (spins % 4096 == 0 && now_ns() - started > AGENT_PATIENCE_NS &&
            !(hca_engine->charge && load_relaxed(&slot->agent_running))) {
            log_error("process %d: no access to its memory, and its copy agent does not respond",
                      slot->pid);
            return EPERM;
        }
    }
}

/* With the copy lock held. Cancels a request that the owner has not begun. False: the owner has
 * begun it. */
static bool withdraw(struct copy_request *r)
{
    uint32_t word = load_acquire(&r->state);
    uint32_t idle = request_word(word >> COPY_STATE_BITS, COPY_IDLE);

    if (request_state(word) == COPY_POSTED)
        atomic_compare_exchange_strong(&r->state, &word, idle);
    return request_state(load_acquire(&r->state)) != COPY_BUSY;
}

/* An owner that does not respond may be stopped in the middle, and still use the staging memory. */
static int post_and_await(unsigned proc, uint64_t addr, uint8_t *staging, uint64_t n, bool out)
{
    struct proc_slot *slot = proc_slot(proc);
    uint32_t number = (load_relaxed(&slot->copy.state) >> COPY_STATE_BITS) + 1;

    slot->copy.requester = proc_word(proc_self);
    slot->copy.to_owner = out;
    slot->copy.owner_addr = addr;
    slot->copy.staging = seg_offset(staging);
    slot->copy.length = n;
    store_release(&slot->copy.state, request_word(number, COPY_POSTED));
    atomic_store(&slot->agent_wanted, 1);
    proc_attention(proc);
    int err = await_owner(proc, slot);
    if (!withdraw(&slot->copy) && proc_runs(proc))
        epoch_give_up_on(proc);
    return err;
}

static int ask_owner(unsigned proc, uint64_t addr, uint8_t *staging, uint64_t n, bool out)
{
    struct proc_slot *slot = proc_slot(proc);
    int err = 0;

    shm_lock(&slot->copy_lock);
    if (!withdraw(&slot->copy)) /* of a requester that has died or given up */
        err = await_owner(proc, slot);
    if (err != ESRCH && err != EPERM)
        err = post_and_await(proc, addr, staging, n, out);
    shm_unlock(&slot->copy_lock);
    return err;
}

/* Copies through the segment's descriptor, so that unmapped memory gives an error and not a
 * fault. */
void copy_serve_peer(void)
{
    struct copy_request *r = &proc_slot(proc_self)->copy;
    uint32_t word = load_acquire(&r->state), number = word >> COPY_STATE_BITS;

    if (request_state(word) != COPY_POSTED)
        return;
    epoch_enter();
    if (!atomic_compare_exchange_strong(&r->state, &word, request_word(number, COPY_BUSY))) {
        epoch_exit();
        return;
    }
    uint64_t offset = r->staging, length = r->length, addr = r->owner_addr;
    bool to_owner = r->to_owner;
    bool ok = seg_at(offset, length) && length <= STAGING_BYTES && proc_word_alive(r->requester);
    for (uint64_t done = 0; ok && done < length;) {
        ssize_t n = to_owner
                        ? pread(segment_fd(), (void *)(addr + done), length - done, offset + done)
                        : pwrite(segment_fd(), (void *)(addr + done), length - done, offset + done);
        ok = n > 0;
        done += ok ? n : 0;
    }
    epoch_exit();
    store_release(&r->state, request_word(number, ok ? COPY_DONE : COPY_FAULT));
}

static size_t cursor_left(const struct cursor *c, size_t most)
{
    size_t left = 0;

    for (unsigned i = 0; i < c->count && left < most; i++)
        left += c->iov[i].iov_len;
    return left < most ? left : most;
}

static void pour(struct cursor *local, uint8_t *staging, size_t n, bool out)
{
    char *at;

    for (size_t step; n && (step = cursor_step(local, n, &at)); n -= step, staging += step) {
        if (out)
            memcpy(staging, at, step);
        else
            memcpy(at, staging, step);
    }
}

static int agent_copy(unsigned proc, struct cursor local, struct cursor remote, bool out)
{
    size_t size = cursor_left(&remote, STAGING_BYTES);
    uint8_t *staging = arena_alloc(size);
    char *addr;
    int err = 0;

    while (!staging && size > PAGE_BYTES) { /* shared memory is nearly full */
        size /= 2;
        staging = arena_alloc(size);
    }
    if (!staging)
        return ENOMEM;
    for (size_t n; !err && (n = cursor_step(&remote, size, &addr));) {
        if (out)
            pour(&local, staging, n, true);
        err = ask_owner(proc, (uintptr_t)addr, staging, n, out);
        if (!err && !out)
            pour(&local, staging, n, false);
    }
    arena_free(staging, size);
    return err;
}

const char *copy_refused_because(bool *asked_for)
{
    const char *mode = getenv("VERBENA_COPY");
    static char why[128];
    char word = 1, back = 0;
    struct iovec here = { &word, 1 }, there = { &back, 1 };
    int scope = 0;

    *asked_for = mode && !strcmp(mode, "agent");
    if (*asked_for)
        return "VERBENA_COPY=agent";
    if (process_vm_readv(getpid(), &there, 1, &here, 1, 0) != 1) {
        snprintf(why, sizeof(why), "process_vm_readv: %s", strerror(errno));
        if (proc_memory(proc_self) < 0)
            return why;
        log_info("%s: copying through /proc/PID/mem instead, slower", why);
    }
    FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    if (f) {
        if (fscanf(f, "%d", &scope) != 1)
            scope = 0;
        fclose(f);
    }
    if (scope >= 2 && geteuid() != 0) {
        snprintf(why, sizeof(why), "kernel.yama.ptrace_scope is %d", scope);
        return why;
    }
    return NULL;
}

/* ---- choosing ---- */

static bool must_ask(unsigned proc)
{
    return unlikely(load_relaxed(&proc_slot(proc)->agent_running) == AGENT_FOR_ALL ||
                    !proc_is_near(proc));
}

static int process_copy(unsigned proc, struct iovec *local, unsigned locals, struct iovec *remote,
                        unsigned remotes, uint64_t length, bool out)
{
    if (must_ask(proc))
        return agent_copy(proc, (struct cursor){ local, locals },
                          (struct cursor){ remote, remotes }, out);
    if (unlikely(!proc_alive(proc))) /* its pid may have been reused */
        return ESRCH;
    int err = vm_copy(proc, local, locals, remote, remotes, length, out);
    /* The checks may have protected the rest of the memory, at which the lists now begin. */
    if (unlikely(err == EFAULT && hca_observer && hca_observer->memory_touched)) {
        err = memory_file_copy(proc, (struct cursor){ local, locals },
                               (struct cursor){ remote, remotes }, out);
        return err == EPERM ? EFAULT : err;
    }
    if (likely(err != EPERM && err != ENOSYS))
        return err;
    /* The first call was refused: nothing was copied. */
    int refused = err;
    err = memory_file_copy(proc, (struct cursor){ local, locals },
                           (struct cursor){ remote, remotes }, out);
    if (err != EPERM)
        return err;
    log_info("process %d copies for us: process_vm_*: %s", proc_slot(proc)->pid, strerror(refused));
    return agent_copy(proc, (struct cursor){ local, locals }, (struct cursor){ remote, remotes },
                      out);
}

/* ---- memory mapped by this process ---- */

typedef uint64_t __attribute__((may_alias, aligned(1))) any_uint64;
typedef uint32_t __attribute__((may_alias, aligned(1))) any_uint32;
typedef uint16_t __attribute__((may_alias, aligned(1))) any_uint16;

#define STORE_LAST(type) \
    (*(volatile type *)(to + n - sizeof(type)) = *(const type *)(from + n - sizeof(type)))

/* Programs poll the last byte of an RDMA write, so it must be written last. memcpy() does not
 * guarantee that, but a plain store after it does. A word is written as a whole. A store into two
 * cache lines might become visible in two parts, in any order. */
static inline void store_in_order(char *to, const char *from, size_t n)
{
    size_t last = n >= 8 ? 8 : n >= 4 ? 4 : n >= 2 ? 2 : 1;

    while (unlikely(((uintptr_t)(to + n - last) ^ (uintptr_t)(to + n - 1)) / CACHE_LINE))
        last /= 2;
    if (n > last)
        memcpy(to, from, n - last);
    atomic_thread_fence(memory_order_release);
    switch (last) {
    case 8:
        STORE_LAST(any_uint64);
        break;
    case 4:
        STORE_LAST(any_uint32);
        break;
    case 2:
        STORE_LAST(any_uint16);
        break;
    default:
        STORE_LAST(char);
    }
}

/* Even our own memory is accessed through the kernel or through its file, so that a region that the
 * program has unmapped gives an error and not a fault. */
static inline char *mapped_address(const struct local_list *local, const struct mem_ref *ref,
                                   uint64_t length, bool out)
{
    if (unlikely(ref->kind == MEM_SEGMENT))
        return (char *)seg + ref->addr;
    return unlikely(local->unmapped) ? NULL : peer_address(ref, length, out);
}

static inline int copy_mapped(const struct iovec *pieces, unsigned count, const struct mem_ref *ref,
                              char *at, bool out)
{
    if (unlikely(ref->kind == MEM_PROCESS && !proc_alive(ref->proc)))
        return ESRCH;
    for (unsigned i = 0; i < count; i++) {
        if (out)
            store_in_order(at, pieces[i].iov_base, pieces[i].iov_len);
        else
            memcpy(pieces[i].iov_base, at, pieces[i].iov_len);
        at += pieces[i].iov_len;
    }
    return 0;
}

_Atomic uint64_t *copy_mapped_word(const struct mem_ref *ref)
{
    if (ref->kind == MEM_SEGMENT)
        return (_Atomic uint64_t *)((char *)seg + ref->addr);
    return proc_alive(ref->proc) ? (_Atomic uint64_t *)peer_address(ref, 8, true) : NULL;
}

/* ---- lists ---- */

/* Advances the cursor by `n` bytes. */
static unsigned split(struct cursor *c, uint64_t n, struct iovec *into)
{
    unsigned count = 0;
    char *at;

    for (size_t step; n && count < HCA_MAX_SGE && (step = cursor_step(c, n, &at)); n -= step)
        into[count++] = (struct iovec){ at, step };
    return count;
}

static int copy_piece(const struct local_list *list, struct cursor *local,
                      const struct mem_ref *ref, uint64_t n, bool out)
{
    struct iovec pieces[HCA_MAX_SGE];
    struct iovec remote = { (void *)ref->addr, n };
    unsigned count = split(local, n, pieces);
    char *at = mapped_address(list, ref, n, out);

    if (at)
        return copy_mapped(pieces, count, ref, at, out);
    return process_copy(ref->proc, pieces, count, &remote, 1, n, out);
}

/* Everything is in one process and not mapped here: one system call. */
static bool one_call_does(const struct local_list *local, const struct mem_ref *refs,
                          unsigned count, bool out)
{
    for (unsigned i = 0; i < count; i++)
        if (refs[i].kind != MEM_PROCESS || refs[i].proc != refs[0].proc)
            return false;
    return !mapped_address(local, refs, 1, out);
}

/* One piece on each side: no lists. */
static inline bool is_simple(const struct local_list *local, const struct mem_ref *ref,
                             unsigned count)
{
    return local->count == 1 && count == 1 && ref->kind == MEM_PROCESS &&
           ref->length == local->length;
}

/* The kernel may copy the bytes of one piece in any order: the last word is a piece of its own. */
static int copy_in_order(const struct local_list *local, const struct mem_ref *ref, bool out)
{
    struct iovec mine[2] = { local->iov[0] }, theirs = { (void *)ref->addr, ref->length };
    uint64_t last = (ref->addr + ref->length) % 8 ? 4 : 8;
    unsigned pieces = 1;

    if (out && ref->length > last) {
        mine[0].iov_len -= last;
        mine[1] = (struct iovec){ (char *)mine[0].iov_base + mine[0].iov_len, last };
        pieces = 2;
    }
    return process_copy(ref->proc, mine, pieces, &theirs, 1, ref->length, out);
}

static inline int copy_simple(const struct local_list *local, const struct mem_ref *ref, bool out)
{
    char *at = mapped_address(local, ref, ref->length, out);

    return at ? copy_mapped(local->iov, 1, ref, at, out) : copy_in_order(local, ref, out);
}

int copy_out(const struct local_list *local, const struct mem_ref *refs, unsigned count)
{
    struct iovec mine[HCA_MAX_SGE], theirs[HCA_MAX_SGE];
    struct cursor at = { mine, local->count };
    uint64_t left = local->length;
    int err = 0;

    if (!left)
        return 0;
    if (likely(is_simple(local, refs, count)))
        return copy_simple(local, refs, true);
    memcpy(mine, local->iov, local->count * sizeof(mine[0]));
    if (likely(one_call_does(local, refs, count, true))) {
        unsigned used = 0;
        for (; used < count && left; used++) {
            uint64_t n = refs[used].length < left ? refs[used].length : left;
            theirs[used] = (struct iovec){ (void *)refs[used].addr, n };
            left -= n;
        }
        return process_copy(refs[0].proc, mine, local->count, theirs, used, local->length, true);
    }
    for (unsigned i = 0; i < count && left && !err; i++) {
        uint64_t n = refs[i].length < left ? refs[i].length : left;
        err = copy_piece(local, &at, &refs[i], n, true);
        left -= n;
    }
    return err;
}

int copy_in(const struct local_list *local, const struct mem_ref *ref)
{
    struct iovec mine[HCA_MAX_SGE];
    struct cursor at = { mine, local->count };

    if (!local->length)
        return 0;
    if (likely(is_simple(local, ref, 1)))
        return copy_simple(local, ref, false);
    memcpy(mine, local->iov, local->count * sizeof(mine[0]));
    if (likely(one_call_does(local, ref, 1, false))) {
        struct iovec theirs = { (void *)ref->addr, local->length };
        return process_copy(ref->proc, mine, local->count, &theirs, 1, local->length, false);
    }
    return copy_piece(local, &at, ref, local->length, false);
}

int copy_word(const struct mem_ref *ref, uint64_t *word, bool to_place)
{
    struct local_list local = { .iov = { { word, sizeof(*word) } },
                                .count = 1,
                                .length = sizeof(*word) };

    return to_place ? copy_out(&local, ref, 1) : copy_in(&local, ref);
}
