/* SPDX-License-Identifier: BSD-2-Clause */
/* Kinds of memory, access flags, and exhausted resources. */
#include "cases.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define HUGE (2ul << 20)

/* The memory is not exchanged, and works. */
static void stays(uint8_t *memory, size_t bytes)
{
    struct ibv_mr *mr = must_register(memory, bytes, RIG_ACCESS_ALL);

    CHECK(!is_exchanged(memory), "it was exchanged");
    check_both_ways(memory, mr->rkey);
    CHECK_INT(ibv_dereg_mr(mr), 0);
}

static void unaligned(void)
{
    owner_open("share", "share");
    stays(fresh_pages(2) + 8, PAGE);
}

static void heap(void)
{
    owner_open("share", "share");
    uint8_t *block = malloc(1000);
    stays(block, 1000);
}

static void stack(void)
{
    uint8_t room[3 * PAGE];

    owner_open("share", "share");
    stays((uint8_t *)(((uintptr_t)room + PAGE) & ~(PAGE - 1)), PAGE);
}

static void files(void)
{
    int fd = memfd_create("a-file", 0);

    owner_open("share", "share");
    CHECK_INT(ftruncate(fd, 2 * PAGE), 0);
    stays(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), PAGE);
    stays(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, PAGE), PAGE);
}

static void locked(void)
{
    owner_open("share", "share");
    uint8_t *memory = fresh_pages(4);
    CHECK_INT(mlock(memory, 4 * PAGE), 0);
    stays(memory, 4 * PAGE);
    CHECK(has_pattern(memory, 0, 4 * PAGE), "contents have changed");
    CHECK_INT(munlock(memory, 4 * PAGE), 0);
    struct ibv_mr *mr = must_register(memory, 4 * PAGE, RIG_ACCESS_ALL);
    CHECK(is_exchanged(memory), "unlocked, it was not exchanged");
    CHECK_INT(mlock(memory, 4 * PAGE), 0); /* once exchanged, it may be locked again */
    check_both_ways(memory, mr->rkey);
}

static void pinned(void)
{
    struct io_uring_params params = { 0 };
    int ring = syscall(SYS_io_uring_setup, 4, &params);

    if (ring < 0)
        case_skip("io_uring: %s", strerror(errno));
    owner_open("share", "share");
    uint8_t *memory = fresh_pages(8);
    struct iovec buffer = { memory + 3 * PAGE, PAGE };
    CHECK(!syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &buffer, 1),
          "io_uring_register: %s", strerror(errno));
    stays(memory, 8 * PAGE);
    CHECK(has_pattern(memory, 0, 8 * PAGE), "contents have changed");
    close(ring);
}

static void huge_pages(void)
{
    uint8_t *memory =
        mmap(NULL, HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

    if (memory == MAP_FAILED)
        case_skip("no huge pages are reserved (vm.nr_hugepages)");
    owner_open("share", "share");
    stays(memory, HUGE);
}

static uint8_t *transparent_huge_page(void)
{
    uint8_t *memory =
        mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    memory = (uint8_t *)(((uintptr_t)memory + HUGE) & ~(HUGE - 1));
    if (madvise(memory, HUGE, MADV_HUGEPAGE))
        case_skip("no transparent huge pages: %s", strerror(errno));
    memset(memory, 9, HUGE);
    return memory;
}

static void transparent_huge_pages(void)
{
    owner_open("auto", "auto");
    uint8_t *memory = transparent_huge_page();
    struct ibv_mr *mr = must_register(memory, HUGE, RIG_ACCESS_ALL);
    for (int i = 0; i < 20; i++) /* more than an exchange costs */
        peer_use(memory, mr->rkey, i);
    CHECK(!is_exchanged(memory), "it was exchanged");
    check_both_ways(memory, mr->rkey);
}

static void transparent_huge_pages_insisted(void)
{
    owner_open("share", "share");
    uint8_t *memory = transparent_huge_page();
    struct ibv_mr *mr = must_register(memory, HUGE, RIG_ACCESS_ALL);
    CHECK(is_exchanged(memory), "it was not exchanged");
    for (size_t i = 0; i < HUGE; i++)
        CHECK_INT(memory[i], 9);
    check_both_ways(memory, mr->rkey);
}

/* Page-aligned allocations do not share their pages, so that peers map no other data. */
static void aligned_allocations(void)
{
    enum { BLOCKS = 50 };
    uint8_t *blocks[BLOCKS], *neighbours[BLOCKS];

    owner_open("share", "share");
    for (int i = 0; i < BLOCKS; i++) {
        CHECK_INT(posix_memalign((void **)&blocks[i], PAGE, 100 + i), 0);
        neighbours[i] = malloc(24);
    }
    for (int i = 0; i < BLOCKS; i++) {
        for (int j = 0; j < BLOCKS; j++)
            CHECK((uintptr_t)blocks[i] / PAGE != (uintptr_t)neighbours[j] / PAGE &&
                      (i == j || (uintptr_t)blocks[i] / PAGE != (uintptr_t)blocks[j] / PAGE),
                  "two allocations share a page");
        struct ibv_mr *mr = must_register(blocks[i], 100, RIG_ACCESS_ALL);
        CHECK(is_exchanged(blocks[i]), "it was not exchanged");
        check_both_ways(blocks[i], mr->rkey);
        CHECK_INT(ibv_dereg_mr(mr), 0);
        free(blocks[i]);
    }
    CHECK(!((uintptr_t)aligned_alloc(PAGE, 1) % PAGE || (uintptr_t)valloc(1) % PAGE),
          "an allocation is not aligned");
}

/* ---- access flags ---- */

static void read_only_region(void)
{
    uint64_t word;

    owner_open("share", "share");
    uint8_t *memory = fresh_pages(2);
    struct ibv_mr *mr =
        must_register(memory, 2 * PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    CHECK_INT(peer_read(memory, mr->rkey, &word), IBV_WC_SUCCESS);
    CHECK_INT(peer_mappings("r--s"), 1);
    CHECK_INT(peer_mappings(NULL), 1);
    CHECK_INT(peer_write(memory, mr->rkey, 1), IBV_WC_REM_ACCESS_ERR);
    CHECK(has_pattern(memory, 0, 2 * PAGE), "it was written");
}

static void local_region(void)
{
    uint64_t word;

    owner_open("share", "share");
    uint8_t *memory = fresh_pages(1);
    struct ibv_mr *mr = must_register(memory, PAGE, IBV_ACCESS_LOCAL_WRITE);
    CHECK(!is_exchanged(memory), "it was exchanged for nobody");
    CHECK_INT(peer_read(memory, mr->rkey, &word), IBV_WC_REM_ACCESS_ERR);
    CHECK_INT(peer_mappings(NULL), 0);
}

static void *sleep_for_ever(void *argument)
{
    for (;;)
        pause();
    return argument;
}

/* Without privileges, accesses by the kernel do not block in userfaultfd: that is enough for one
 * thread. */
static void ordinary_user(void)
{
    pthread_t thread;
    int refused;

    if (geteuid())
        case_skip("needs to start as root");
    CHECK_INT(setgid(65534) || setuid(65534), 0);
    prctl(PR_SET_DUMPABLE, 1);
    refused = syscall(SYS_userfaultfd, O_CLOEXEC) < 0;
    owner_open("share", "copy");
    uint8_t *memory = fresh_pages(64);
    struct ibv_mr *mr = must_register(memory, 64 * PAGE, RIG_ACCESS_ALL);
    CHECK(is_exchanged(memory), "it was not exchanged");
    CHECK(has_pattern(memory, 0, 64 * PAGE), "contents have changed");
    check_both_ways(memory, mr->rkey);
    CHECK_INT(pthread_create(&thread, NULL, sleep_for_ever, NULL), 0);
    if (refused)
        stays(fresh_pages(1), PAGE);
}

/* Copies by the kernel in the middle of an exchange succeed. */
static void ordinary_user_written_to(void)
{
    if (geteuid())
        case_skip("needs to start as root");
    CHECK_INT(setgid(65534) || setuid(65534), 0);
    prctl(PR_SET_DUMPABLE, 1);
    owner_open("share", "copy");
    for (int i = 0; i < 30; i++) {
        uint8_t *memory = fresh_pages(128);
        volatile uint64_t *word = (volatile uint64_t *)(memory + 64 * PAGE + 8);
        *word = 0;
        struct ibv_mr *odd = must_register(memory + 8, 127 * PAGE, RIG_ACCESS_ALL);
        peer_write_on((void *)word, odd->rkey);
        while (!*word)
            ;
        struct ibv_mr *mr = must_register(memory, 128 * PAGE, RIG_ACCESS_ALL);
        CHECK(is_exchanged(memory) || i, "it was not exchanged");
        uint64_t before = *word;
        while (*word < before + 5)
            ;
        CHECK_INT(ibv_dereg_mr(odd), 0);
        CHECK_INT(peer_stopped(), IBV_WC_REM_ACCESS_ERR);
        CHECK_INT(ibv_dereg_mr(mr), 0);
        munmap(memory, 128 * PAGE);
        owner_reconnect();
    }
}

/* ---- exhausted resources ---- */

/* Of every seventh. The owner may not have got around to the last requests. */
static unsigned await_exchanges(uint8_t **memory, int regions, unsigned wanted)
{
    unsigned exchanged = 0;

    for (int tries = 0; tries < 1000 && exchanged < wanted; tries++) {
        usleep(tries ? 10000 : 0);
        exchanged = 0;
        for (int i = 0; i < regions; i += 7)
            exchanged += is_exchanged(memory[i]);
    }
    return exchanged;
}

static void hundreds_of_regions(void)
{
    enum { REGIONS = 300 };
    static uint8_t *memory[REGIONS];
    static struct ibv_mr *mrs[REGIONS];
    struct rlimit limit = { 800, 800 };
    unsigned left = 0;

    CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
    owner_open("auto", "share");
    for (int i = 0; i < REGIONS; i++) {
        memory[i] = fresh_pages(2);
        mrs[i] = must_register(memory[i], PAGE, RIG_ACCESS_ALL);
    }
    for (int i = 0; i < REGIONS; i++)
        peer_use(memory[i], mrs[i]->rkey, i);
    for (int i = 0; i < REGIONS; i += 7)
        CHECK_INT(*(volatile uint64_t *)memory[i], i);
    unsigned exchanged = await_exchanges(memory, REGIONS, 21);
    CHECK(exchanged > 20, "only %u were exchanged", 7 * exchanged);
    CHECK(exchanged < 36, "%u were exchanged", 7 * exchanged);
    while (dup(0) >= 0)
        left++;
    CHECK(left > 500, "only %u descriptors are left to the program", left);
    for (int i = 0; i < REGIONS; i++)
        CHECK_INT(ibv_dereg_mr(mrs[i]), 0);
}

static void no_descriptors(void)
{
    struct rlimit limit = { 1024, 1024 };

    CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
    owner_open("share", "share");
    uint8_t *memory = fresh_pages(1);
    struct ibv_mr *before = must_register(memory, PAGE, RIG_ACCESS_ALL);
    check_both_ways(memory, before->rkey);
    while (dup(0) >= 0)
        ;
    struct ibv_mr *mr = must_register(fresh_pages(1), PAGE, RIG_ACCESS_ALL);
    CHECK_INT(peer_write(mr->addr, mr->rkey, 77), IBV_WC_SUCCESS);
    CHECK_INT(*(volatile uint64_t *)mr->addr, 77);
    if (fork() == 0)
        _exit(0);
    CHECK_INT(peer_write(memory, before->rkey, 78), IBV_WC_SUCCESS);
    CHECK_INT(*(volatile uint64_t *)memory, 78);
}

/* Like programs that close unknown descriptors; the numbers are reused. */
static int close_region_files(void)
{
    char path[64], target[64];
    int last = -1;

    for (int fd = 0; fd < 1024; fd++) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, target, sizeof(target) - 1);
        target[n > 0 ? n : 0] = 0;
        if (strstr(target, "memfd:verbena-region"))
            CHECK_INT(last = dup2(0, fd), fd);
    }
    return last;
}

static void descriptors_closed(void)
{
    owner_open("share", "share");
    uint8_t *used = fresh_pages(1), *unused = fresh_pages(1);
    struct ibv_mr *mr = must_register(used, PAGE, RIG_ACCESS_ALL);
    struct ibv_mr *late = must_register(unused, PAGE, RIG_ACCESS_ALL);
    check_both_ways(used, mr->rkey);
    int taken = close_region_files();
    check_both_ways(used, mr->rkey);
    check_both_ways(unused, late->rkey);
    CHECK_INT(peer_mappings(NULL), 1);
    CHECK(has_pattern(unused, 0, PAGE), "contents have changed");
    CHECK_INT(ibv_dereg_mr(late), 0);
    CHECK(fcntl(taken, F_GETFD) >= 0, "a descriptor of the program was closed");
}

/* A limit that the fabric's segment just fits in. */
static void small_files_only(void)
{
    enum { PAGES = 17000 };
    struct rlimit limit = { (PAGES - 1) * PAGE, (PAGES - 1) * PAGE };

    owner_open("share", "share");
    uint8_t *memory = fresh_pages(PAGES), *small = fresh_pages(4);
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
    stays(memory, PAGES * PAGE);
    struct ibv_mr *mr = must_register(small, 4 * PAGE, RIG_ACCESS_ALL);
    CHECK(is_exchanged(small), "it was not exchanged");
    check_both_ways(small, mr->rkey);
}

static void no_address_space(void)
{
    struct rlimit limit;

    owner_open("share", "share");
    uint8_t *memory = fresh_pages(1024);
    struct ibv_mr *warm = must_register(fresh_pages(1), PAGE, RIG_ACCESS_ALL);
    check_both_ways(warm->addr, warm->rkey);
    CHECK_INT(getrlimit(RLIMIT_AS, &limit), 0);
    limit.rlim_cur = PAGE;
    CHECK_INT(setrlimit(RLIMIT_AS, &limit), 0);
    stays(memory, 1024 * PAGE);
    CHECK(has_pattern(memory, 0, 1024 * PAGE), "contents have changed");
}

const struct mapped_case memory_cases[] = {
    { "unaligned", unaligned },
    { "heap", heap },
    { "stack", stack },
    { "files", files },
    { "locked", locked },
    { "pinned", pinned },
    { "huge-pages", huge_pages },
    { "transparent-huge-pages", transparent_huge_pages },
    { "transparent-huge-pages-insisted", transparent_huge_pages_insisted },
    { "aligned-allocations", aligned_allocations },
    { "read-only-region", read_only_region },
    { "local-region", local_region },
    { "ordinary-user", ordinary_user },
    { "ordinary-user-written-to", ordinary_user_written_to },
    { "hundreds-of-regions", hundreds_of_regions },
    { "no-descriptors", no_descriptors },
    { "descriptors-closed", descriptors_closed },
    { "small-files-only", small_files_only },
    { "no-address-space", no_address_space },
    { 0 },
};
