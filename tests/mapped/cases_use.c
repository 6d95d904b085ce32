/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that peers map because they use it much, and memory in System V segments. */
#include "cases.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 10000

/* The peer uses the memory until `done`. */
static bool use_until(bool (*done)(const uint8_t *memory), uint8_t *memory, uint32_t key)
{
    for (int i = 0; i < PATIENCE_MS && !done(memory); i++) {
        peer_use(memory, key, i);
        CHECK_INT(*(volatile uint64_t *)memory, i);
        usleep(1000);
    }
    return done(memory);
}

static bool exchanged(const uint8_t *memory)
{
    return is_exchanged(memory);
}

static bool mapped(const uint8_t *memory)
{
    (void)memory;
    return peer_mappings("rw-s");
}

static bool attached(const uint8_t *memory)
{
    (void)memory;
    return peer_attached();
}

/* ---- exchanged by use ---- */

static void mapped_when_used(void)
{
    owner_open("auto", "auto");
    uint8_t *memory = fresh_pages(16), *idle = fresh_pages(16);
    struct ibv_mr *mr = must_register(memory, 16 * PAGE, RIG_ACCESS_ALL);
    struct ibv_mr *other = must_register(idle, 16 * PAGE, RIG_ACCESS_ALL);

    CHECK(!is_exchanged(memory), "registering it exchanged it");
    check_both_ways(memory, mr->rkey);
    check_both_ways(idle, other->rkey);
    CHECK(use_until(exchanged, memory, mr->rkey), "it was not exchanged");
    CHECK(has_pattern(memory, 8, 16 * PAGE), "contents have changed");
    CHECK(use_until(mapped, memory, mr->rkey), "the peer does not map it");
    check_both_ways(memory + 15 * PAGE, mr->rkey);
    CHECK(!is_exchanged(idle), "memory that nobody used was exchanged");
    CHECK_INT(peer_mappings(NULL), 1);
}

static bool unmapped_by_peer(void)
{
    for (int i = 0; i < PATIENCE_MS && peer_mappings(NULL); i++)
        usleep(1000);
    return !peer_mappings(NULL);
}

/* Memory that was exchanged before is mapped sooner, and another key gives no old mapping. */
static void registered_again(void)
{
    owner_open("auto", "auto");
    uint8_t *memory = fresh_pages(4);

    for (int i = 0; i < 3; i++) {
        struct ibv_mr *mr = must_register(memory, 4 * PAGE, RIG_ACCESS_ALL);
        CHECK(use_until(mapped, memory, mr->rkey), "the peer does not map it");
        CHECK(has_pattern(memory, 8, 4 * PAGE), "contents have changed");
        CHECK_INT(ibv_dereg_mr(mr), 0);
        CHECK(unmapped_by_peer(), "the peer still maps it");
    }
}

/* Two regions on the same pages; each is mapped on its own. */
static void overlapping_when_used(void)
{
    owner_open("auto", "auto");
    uint8_t *memory = fresh_pages(8);
    struct ibv_mr *first = must_register(memory, 6 * PAGE, RIG_ACCESS_ALL);
    struct ibv_mr *second = must_register(memory + 2 * PAGE, 6 * PAGE, RIG_ACCESS_ALL);

    CHECK(use_until(mapped, memory + 2 * PAGE, first->rkey), "the peer does not map it");
    CHECK(!is_exchanged(memory + 7 * PAGE), "memory that nobody used was exchanged");
    CHECK(use_until(exchanged, memory + 7 * PAGE, second->rkey), "the rest was not exchanged");
    check_both_ways(memory + 2 * PAGE, first->rkey);
    check_both_ways(memory + 2 * PAGE, second->rkey);
    CHECK(has_pattern(memory, 2 * PAGE + 8, 7 * PAGE), "contents have changed");
}

/* ---- the program changes the memory while it is being exchanged ---- */

#define ROUNDS     30
#define AREA_PAGES 512ul
#define AREA       (AREA_PAGES * PAGE)
#define FIRST_FILE 512 /* descriptors of exchanged memory begin there */

static int next_file(void)
{
    int fd = FIRST_FILE;

    while (fcntl(fd, F_GETFD) >= 0)
        fd++;
    return fd;
}

/* Returns when an exchange has begun, which takes a millisecond: the file for it is open. */
static struct ibv_mr *used_region(uint8_t *memory, int round)
{
    int file = next_file();
    struct ibv_mr *mr = must_register(memory, AREA, RIG_ACCESS_ALL);

    peer_write_on(memory, mr->rkey);
    for (int i = 0; i < PATIENCE_MS * 10 && fcntl(file, F_GETFD) < 0; i++)
        usleep(round % 2 ? 1 : 100);
    CHECK(fcntl(file, F_GETFD) >= 0, "it was not exchanged");
    usleep(round * 10);
    return mr;
}

/* Each round makes the change at another instant of an exchange. */
static void during_exchanges(void (*change)(uint8_t *memory, struct ibv_mr *mr))
{
    owner_open("auto", "auto");
    for (int i = 0; i < ROUNDS; i++) {
        uint8_t *memory = fresh_pages(AREA_PAGES);
        change(memory, used_region(memory, i));
        munmap(memory, AREA);
        owner_reconnect();
    }
}

static void stop_peer(struct ibv_mr *mr)
{
    CHECK_INT(ibv_dereg_mr(mr), 0);
    CHECK_INT(peer_stopped(), IBV_WC_REM_ACCESS_ERR);
}

static void check_stays_zero(const uint8_t *memory, size_t from)
{
    usleep(2000); /* while the peer goes on writing */
    for (size_t at = from; at < AREA; at++)
        CHECK_INT(memory[at], 0);
}

static void deregister(uint8_t *memory, struct ibv_mr *mr)
{
    CHECK_INT(ibv_dereg_mr(mr), 0);
    uint64_t last = *(volatile uint64_t *)memory;
    CHECK_INT(peer_stopped(), IBV_WC_REM_ACCESS_ERR);
    CHECK_INT(*(volatile uint64_t *)memory, last);
    CHECK(has_pattern(memory, 8, AREA), "contents have changed");
}

static void deregistered_meanwhile(void)
{
    during_exchanges(deregister);
}

static void unmap(uint8_t *memory, struct ibv_mr *mr)
{
    CHECK_INT(munmap(memory, AREA), 0);
    uint8_t *taken = mmap(memory, AREA, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(taken == memory, "something was mapped there: %s", strerror(errno));
    check_stays_zero(memory, 8);
    CHECK_INT(ibv_dereg_mr(mr), 0);
    peer_stopped();
}

static void unmapped_meanwhile(void)
{
    during_exchanges(unmap);
}

static void discard(uint8_t *memory, struct ibv_mr *mr)
{
    CHECK_INT(madvise(memory + PAGE, AREA - PAGE, MADV_DONTNEED), 0);
    check_stays_zero(memory, PAGE);
    stop_peer(mr);
}

static void discarded_meanwhile(void)
{
    during_exchanges(discard);
}

static void protect(uint8_t *memory, struct ibv_mr *mr)
{
    int zeros = open("/dev/zero", O_RDONLY);

    CHECK_INT(mprotect(memory, AREA, PROT_READ), 0);
    usleep(2000);
    for (size_t at = 0; at < AREA; at += PAGE)
        CHECK_INT(read(zeros, memory + at, 1), -1);
    close(zeros);
    CHECK(has_pattern(memory, 8, AREA), "contents have changed");
    CHECK_INT(ibv_dereg_mr(mr), 0);
    peer_stopped();
}

static void protected_meanwhile(void)
{
    during_exchanges(protect);
}

static void fork_child(uint8_t *memory, struct ibv_mr *mr)
{
    int status = -1;
    pid_t child = fork();

    if (!child)
        _exit(has_pattern(memory, 8, AREA) ? 0 : 1);
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
    stop_peer(mr);
    CHECK(has_pattern(memory, 8, AREA), "contents have changed");
}

static void forked_meanwhile(void)
{
    during_exchanges(fork_child);
}

/* ---- System V segments ---- */

static int segment;

/* Removed as soon as it is attached, as careful programs do: nothing stays behind. */
static uint8_t *fresh_segment(size_t pages, int flags)
{
    segment = shmget(IPC_PRIVATE, pages * PAGE, IPC_CREAT | 0600);
    CHECK(segment >= 0, "shmget: %s", strerror(errno));
    uint8_t *memory = shmat(segment, NULL, flags);
    shmctl(segment, IPC_RMID, NULL);
    CHECK(memory != (void *)-1, "shmat: %s", strerror(errno));
    return memory;
}

static void segment_shared(void)
{
    owner_open("share", "share");
    uint8_t *memory = fresh_segment(8, 0);
    struct ibv_mr *mr = must_register(memory, 8 * PAGE, RIG_ACCESS_ALL);

    check_both_ways(memory, mr->rkey);
    check_both_ways(memory + 7 * PAGE, mr->rkey);
    CHECK(peer_attached(), "the peer copies");
    CHECK_INT(ibv_dereg_mr(mr), 0);
    for (int i = 0; i < PATIENCE_MS && peer_attached(); i++)
        usleep(1000);
    CHECK(!peer_attached(), "the peer is still attached");
}

/* Any part of a segment, after some use. */
static void segment_when_used(void)
{
    owner_open("auto", "auto");
    uint8_t *memory = fresh_segment(64, 0);
    struct ibv_mr *mr = must_register(memory + 5 * PAGE + 64, 9 * PAGE, RIG_ACCESS_ALL);

    check_both_ways(memory + 5 * PAGE + 64, mr->rkey);
    CHECK(!peer_attached(), "it was attached at once");
    CHECK(use_until(attached, memory + 6 * PAGE, mr->rkey), "the peer copies");
    check_both_ways(memory + 13 * PAGE, mr->rkey);
    CHECK_INT(memory[4 * PAGE], 0);
    CHECK_INT(peer_write(memory, mr->rkey, 1), IBV_WC_REM_ACCESS_ERR);
}

static void segment_read_only(void)
{
    owner_open("share", "share");
    uint8_t *memory = fresh_segment(1, SHM_RDONLY);
    struct ibv_mr *mr = must_register(memory, PAGE, IBV_ACCESS_REMOTE_READ);
    uint64_t seen = 1;

    CHECK_INT(peer_read(memory, mr->rkey, &seen), IBV_WC_SUCCESS);
    CHECK_INT(seen, 0);
    CHECK(!peer_attached(), "it was attached");
}

static void check_refused(uint8_t *at, uint32_t key)
{
    uint64_t before = *(volatile uint64_t *)at;

    CHECK_INT(peer_write(at, key, before + 1), IBV_WC_REM_ACCESS_ERR);
    CHECK_INT(*(volatile uint64_t *)at, before);
    owner_reconnect();
}

/* A peer that has attached the segment writes where it may, and nowhere else. */
static void segment_rights(void)
{
    owner_open("share", "share");
    uint8_t *memory = fresh_segment(2, 0);
    struct ibv_pd *other = ibv_alloc_pd(owner.ctx);
    struct ibv_mr *all = must_register(memory, PAGE, RIG_ACCESS_ALL);
    struct ibv_mr *readable = must_register(memory, PAGE, IBV_ACCESS_REMOTE_READ);
    struct ibv_mr *foreign = ibv_reg_mr(other, memory, PAGE, RIG_ACCESS_ALL);
    uint32_t key = all->rkey;

    CHECK(foreign, "ibv_reg_mr: %s", strerror(errno));
    check_both_ways(memory, key);
    CHECK(peer_attached(), "the peer copies");
    CHECK_INT(peer_write(memory + PAGE - 8, key, 4711), IBV_WC_SUCCESS);
    CHECK_INT(*(volatile uint64_t *)(memory + PAGE - 8), 4711);
    check_refused(memory + PAGE, key);
    check_refused(memory + PAGE - 4, key);
    check_refused(memory, readable->rkey);
    check_refused(memory, foreign->rkey);
    check_refused(memory, key ^ 1);
    check_both_ways(memory, key);
    CHECK_INT(ibv_dereg_mr(all), 0);
    check_refused(memory, key);
}

/* As `unmapped`, for shmdt(). */
static void segment_detached(void)
{
    owner_open("share", "share");
    uint8_t *memory = fresh_segment(4, 0);
    struct ibv_mr *mr = must_register(memory + PAGE, PAGE, RIG_ACCESS_ALL);

    check_both_ways(memory + PAGE, mr->rkey);
    CHECK_INT(shmdt(memory), 0);
    CHECK(peer_write(memory + PAGE, mr->rkey, 1) != IBV_WC_SUCCESS, "detached memory was written");
    CHECK_INT(ibv_dereg_mr(mr), 0);
}

/* At an instant when the peer may be about to attach the segment. */
static void segment_detached_meanwhile(void)
{
    owner_open("auto", "auto");
    for (int i = 0; i < ROUNDS; i++) {
        uint8_t *memory = fresh_segment(1, 0);
        struct ibv_mr *mr = must_register(memory, PAGE, RIG_ACCESS_ALL);
        peer_write_on(memory, mr->rkey);
        while (*(volatile uint64_t *)memory < (uint64_t)i)
            ;
        CHECK_INT(shmdt(memory), 0);
        CHECK(peer_stopped(), "detached memory was written");
        CHECK_INT(ibv_dereg_mr(mr), 0);
        owner_reconnect();
    }
}

/* A child shares the segment with its parent, as without an adapter. */
static void segment_forked(void)
{
    owner_open("share", "share");
    uint8_t *memory = fresh_segment(4, 0);
    struct ibv_mr *mr = must_register(memory, PAGE, RIG_ACCESS_ALL);
    struct ibv_mr *exchanged_too = must_register(fresh_pages(1), PAGE, RIG_ACCESS_ALL);

    check_both_ways(exchanged_too->addr, exchanged_too->rkey);
    pid_t child = fork();
    if (!child) {
        memory[100] = 77;
        _exit(0);
    }
    CHECK_INT(waitpid(child, NULL, 0), child);
    CHECK_INT(memory[100], 77);
    check_both_ways(memory, mr->rkey);
}

static void leave_ipc_namespace(void)
{
    int id;

    if (unshare(CLONE_NEWIPC))
        case_skip("unshare: %s", strerror(errno));
    id = shmget(IPC_PRIVATE, 64 * PAGE, IPC_CREAT | 0600); /* ids begin at 0, as the owner's do */
    CHECK(id >= 0 && shmat(id, NULL, 0) != (void *)-1, "shmat: %s", strerror(errno));
}

/* An id means something else in another IPC namespace: peers there copy. */
static void segment_in_other_namespace(void)
{
    if (geteuid())
        case_skip("needs root");
    if (unshare(CLONE_NEWIPC))
        case_skip("unshare: %s", strerror(errno));
    peer_prepare = leave_ipc_namespace;
    owner_open("share", "share");
    uint8_t *memory = fresh_segment(64, 0);
    struct ibv_mr *mr = must_register(memory, 64 * PAGE, RIG_ACCESS_ALL);

    check_both_ways(memory, mr->rkey);
    peer_use(memory + 8, mr->rkey, 4711);
    CHECK_INT(*(volatile uint64_t *)(memory + 8), 4711);
}

const struct mapped_case use_cases[] = {
    { "mapped-when-used", mapped_when_used },
    { "registered-again", registered_again },
    { "overlapping-when-used", overlapping_when_used },
    { "deregistered-meanwhile", deregistered_meanwhile },
    { "unmapped-meanwhile", unmapped_meanwhile },
    { "discarded-meanwhile", discarded_meanwhile },
    { "protected-meanwhile", protected_meanwhile },
    { "forked-meanwhile", forked_meanwhile },
    { "segment-shared", segment_shared },
    { "segment-when-used", segment_when_used },
    { "segment-read-only", segment_read_only },
    { "segment-rights", segment_rights },
    { "segment-detached", segment_detached },
    { "segment-detached-meanwhile", segment_detached_meanwhile },
    { "segment-forked", segment_forked },
    { "segment-in-other-namespace", segment_in_other_namespace },
    { 0 },
};
