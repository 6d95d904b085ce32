/* SPDX-License-Identifier: BSD-2-Clause */
/* What programs do to registered memory. */
#include "cases.h"
#include "hook.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void exchange_and_use(void)
{
    owner_open("share", "share");
    uint8_t *memory = fresh_pages(4);
    struct ibv_mr *mr = must_register(memory, 4 * PAGE, RIG_ACCESS_ALL);

    CHECK(is_exchanged(memory) && is_exchanged(memory + 3 * PAGE), "it was not exchanged");
    CHECK(has_pattern(memory, 0, 4 * PAGE), "its contents have changed");
    check_both_ways(memory + PAGE, mr->rkey);
    CHECK_INT(peer_mappings("rw-s"), 1);
    CHECK_INT(peer_write(memory + 4 * PAGE, mr->rkey, 1), IBV_WC_REM_ACCESS_ERR);
}

static void each_side_its_own_way(void)
{
    owner_open("share", "copy");
    uint8_t *memory = fresh_pages(1);
    struct ibv_mr *mr = must_register(memory, PAGE, RIG_ACCESS_ALL);

    CHECK(is_exchanged(memory), "it was not exchanged");
    check_both_ways(memory, mr->rkey);
    CHECK_INT(peer_mappings(NULL), 0);
}

static void copy_keeps_memory(void)
{
    owner_open("copy", "share");
    uint8_t *memory = fresh_pages(1);
    struct ibv_mr *mr = must_register(memory, PAGE, RIG_ACCESS_ALL);

    CHECK(!is_exchanged(memory), "it was exchanged");
    check_both_ways(memory, mr->rkey);
}

/* Each region overlaps the previous one by a page; they are deregistered in any order. */
static void overlapping_regions(void)
{
    enum { REGIONS = 5 };
    struct ibv_mr *mrs[REGIONS];

    owner_open("share", "share");
    uint8_t *memory = fresh_pages(REGIONS + 1);
    for (int i = 0; i < REGIONS; i++)
        mrs[i] = must_register(memory + i * PAGE, 2 * PAGE, RIG_ACCESS_ALL);
    struct ibv_mr *all = must_register(memory, (REGIONS + 1) * PAGE, RIG_ACCESS_ALL);
    struct ibv_mr *odd = must_register(memory + 64, REGIONS * PAGE, RIG_ACCESS_ALL);
    CHECK(has_pattern(memory, 0, (REGIONS + 1) * PAGE), "contents have changed");
    for (int i = 0; i < REGIONS; i++) {
        volatile uint64_t *word = (volatile uint64_t *)(memory + (i + 1) * PAGE);
        *word = 0;
        CHECK_INT(peer_add((void *)word, mrs[i]->rkey, 1), IBV_WC_SUCCESS);
        CHECK_INT(peer_add((void *)word, all->rkey, 10), IBV_WC_SUCCESS);
        if (i < REGIONS - 1)
            CHECK_INT(peer_add((void *)word, odd->rkey, 100), IBV_WC_SUCCESS);
        CHECK_INT(*word, i < REGIONS - 1 ? 111 : 11);
    }
    for (int i = 0; i < REGIONS; i += 2)
        CHECK_INT(ibv_dereg_mr(mrs[i]), 0);
    check_both_ways(memory + PAGE, all->rkey);
    CHECK_INT(ibv_dereg_mr(all), 0);
    check_both_ways(memory + PAGE, mrs[1]->rkey);
}

static void re_registration(void)
{
    owner_open("share", "share");
    uint8_t *first = fresh_pages(2), *second = fresh_pages(2);
    struct ibv_mr *mr = must_register(first, 2 * PAGE, RIG_ACCESS_ALL);

    check_both_ways(first, mr->rkey);
    CHECK_INT(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, second, 2 * PAGE, 0), 0);
    check_both_ways(second + PAGE, mr->rkey);
    CHECK(has_pattern(first, 0, 2 * PAGE), "writes went to the old memory");
    CHECK_INT(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ),
              0);
    uint64_t word;
    CHECK_INT(peer_read(second, mr->rkey, &word), IBV_WC_SUCCESS);
    CHECK_INT(peer_write(second, mr->rkey, 1), IBV_WC_REM_ACCESS_ERR);
    CHECK(has_pattern(second, 0, 2 * PAGE), "it was written without the right to");
}

/* Index and tag are reused: an old mapping must not be used for the new region. */
static void keys_come_again(void)
{
    owner_open("share", "share");
    for (int i = 0; i < 600; i++) {
        uint8_t *memory = fresh_pages(1);
        struct ibv_mr *mr = must_register(memory, PAGE, RIG_ACCESS_ALL);
        CHECK_INT(peer_write(memory + 16, mr->rkey, 1000 + i), IBV_WC_SUCCESS);
        CHECK_INT(*(volatile uint64_t *)(memory + 16), 1000 + i);
        CHECK_INT(ibv_dereg_mr(mr), 0);
        munmap(memory, PAGE);
    }
}

static void deregister_under_way(void)
{
    owner_open("share", "share");
    for (int i = 0; i < 20; i++) {
        uint8_t *memory = fresh_pages(1);
        volatile uint64_t *word = (volatile uint64_t *)memory;
        struct ibv_mr *mr = must_register(memory, PAGE, RIG_ACCESS_ALL);
        *word = 0;
        peer_write_on(memory, mr->rkey);
        while (*word < 100)
            ;
        CHECK_INT(ibv_dereg_mr(mr), 0);
        *word = 7;
        usleep(2000);
        CHECK_INT(*word, 7);
        CHECK_INT(peer_stopped(), IBV_WC_REM_ACCESS_ERR);
        owner_reconnect();
    }
}

/* The peer unmaps the memory although it does nothing more. */
static void peers_let_go(void)
{
    owner_open("share", "share");
    uint8_t *memory = fresh_pages(1);
    struct ibv_mr *mr = must_register(memory, PAGE, RIG_ACCESS_ALL);

    check_both_ways(memory, mr->rkey);
    CHECK_INT(peer_mappings(NULL), 1);
    CHECK_INT(ibv_dereg_mr(mr), 0);
    for (int i = 0; i < 3000 && peer_mappings(NULL); i++)
        usleep(1000);
    CHECK_INT(peer_mappings(NULL), 0);
}

static void unmapped(void)
{
    owner_open("share", "share");
    uint8_t *memory = fresh_pages(3);
    struct ibv_mr *mr = must_register(memory, 3 * PAGE, RIG_ACCESS_ALL);

    check_both_ways(memory, mr->rkey);
    CHECK_INT(munmap(memory + PAGE, PAGE), 0);
    check_both_ways(memory, mr->rkey); /* the rest is still mapped */
    enum ibv_wc_status status = peer_write(memory + PAGE, mr->rkey, 1);
    CHECK(status == IBV_WC_REM_OP_ERR || status == IBV_WC_REM_ACCESS_ERR,
          "a write to unmapped memory gave '%s'", ibv_wc_status_str(status));
}

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ibv_mr *cached[2];
static atomic_bool cache_locked, inside_munmap;

static void drop_from_cache(void *addr)
{
    if (addr != cached[0]->addr)
        return;
    hook_before_munmap = NULL;
    atomic_store(&inside_munmap, true);
    pthread_mutex_lock(&cache_lock);
    CHECK_INT(ibv_dereg_mr(cached[0]), 0);
    pthread_mutex_unlock(&cache_lock);
}

static void *shrink_cache(void *unused)
{
    pthread_mutex_lock(&cache_lock);
    atomic_store(&cache_locked, true);
    while (!atomic_load(&inside_munmap))
        sched_yield();
    CHECK_INT(ibv_dereg_mr(cached[1]), 0);
    pthread_mutex_unlock(&cache_lock);
    return unused;
}

/* Another library deregisters memory with its own lock held: one thread directly, one inside munmap(). munmap()
 * must not hold a lock that ibv_dereg_mr() needs. */
static void unmapped_under_other_locks(void)
{
    pthread_t thread;

    owner_open("share", "share");
    uint8_t *memory = fresh_pages(1);
    cached[0] = must_register(memory, PAGE, RIG_ACCESS_ALL);
    cached[1] = must_register(fresh_pages(1), PAGE, RIG_ACCESS_ALL);
    check_both_ways(memory, cached[0]->rkey);
    CHECK_INT(pthread_create(&thread, NULL, shrink_cache, NULL), 0);
    while (!atomic_load(&cache_locked))
        sched_yield();
    hook_before_munmap = drop_from_cache;
    CHECK_INT(munmap(memory, PAGE), 0);
    CHECK(atomic_load(&inside_munmap), "the other library was not asked");
    CHECK_INT(pthread_join(thread, NULL), 0);
}

static void replaced(void)
{
    owner_open("share", "share");
    uint8_t *memory = fresh_pages(1);
    struct ibv_mr *mr = must_register(memory, PAGE, RIG_ACCESS_ALL);

    check_both_ways(memory, mr->rkey);
    CHECK(mmap(memory, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
               0) == memory,
          "mmap: %s", strerror(errno));
    check_both_ways(memory, mr->rkey); /* the key grants access to the address */
}

static void moved_and_grown(void)
{
    owner_open("share", "share");
    uint8_t *memory = fresh_pages(4);
    struct ibv_mr *mr = must_register(memory, 4 * PAGE, RIG_ACCESS_ALL);

    check_both_ways(memory, mr->rkey);
    uint8_t *room = mmap(NULL, 8 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *moved = mremap(memory, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room);
    CHECK(moved == room, "mremap: %s", strerror(errno));
    CHECK(has_pattern(moved, 0, 4 * PAGE), "contents were lost on the way");
    for (size_t i = 4 * PAGE; i < 8 * PAGE; i++)
        CHECK(!moved[i], "memory that grew is not zero");
    struct ibv_mr *again = must_register(moved, 8 * PAGE, RIG_ACCESS_ALL);
    check_both_ways(moved + 6 * PAGE, again->rkey);
    CHECK(peer_write(memory, mr->rkey, 1) != IBV_WC_SUCCESS, "the old place was written");
}

static void grown_by_realloc(void)
{
    size_t bytes = 64 * PAGE;

    owner_open("share", "share");
    uint8_t *block = malloc(bytes);
    uint8_t *page = (uint8_t *)(((uintptr_t)block + PAGE) & ~(PAGE - 1));
    memset(block, 5, bytes);
    struct ibv_mr *mr = must_register(page, 16 * PAGE, RIG_ACCESS_ALL);
    check_both_ways(page, mr->rkey);
    CHECK_INT(ibv_dereg_mr(mr), 0);
    block = realloc(block, 20 * bytes);
    CHECK(block, "realloc: %s", strerror(errno));
    for (size_t i = 0; i < bytes; i++)
        CHECK_INT(block[i], 5);
    memset(block, 6, 20 * bytes);
    free(block);
}

static void discarded(int advice)
{
    owner_open("share", "share");
    uint8_t *memory = fresh_pages(6), *behind = memory + 4 * PAGE;
    struct ibv_mr *mr = must_register(memory, 4 * PAGE, RIG_ACCESS_ALL);
    uint64_t word = 1;

    check_both_ways(memory, mr->rkey);
    CHECK_INT(madvise(memory + PAGE, 4 * PAGE, advice), 0); /* one page of it is not exchanged */
    CHECK(has_pattern(memory, 0, PAGE), "more was discarded");
    if (advice == MADV_DONTNEED) {
        CHECK_INT(behind[0], 0);
        CHECK_INT(memory[PAGE], 0);
        CHECK_INT(peer_read(memory + 2 * PAGE, mr->rkey, &word), IBV_WC_SUCCESS);
        CHECK_INT(word, 0);
    }
    check_both_ways(memory + 2 * PAGE, mr->rkey);
}

static void discarded_now(void)
{
    discarded(MADV_DONTNEED);
}

static void discarded_later(void)
{
    discarded(MADV_FREE);
}

/* The child has its own copy; parent and peer continue with the original. */
static void forked(void)
{
    int status;

    owner_open("share", "share");
    uint8_t *memory = fresh_pages(8);
    struct ibv_mr *mr = must_register(memory, 6 * PAGE, RIG_ACCESS_ALL);
    check_both_ways(memory, mr->rkey);
    pid_t child = fork();
    if (!child) {
        if (!has_pattern(memory, 0, 8 * PAGE) || is_exchanged(memory))
            _exit(1);
        memset(memory, 0, 8 * PAGE);
        usleep(1000);
        _exit(memory[0] || memory[7 * PAGE]);
    }
    CHECK_INT(peer_write(memory + 8, mr->rkey, 5), IBV_WC_SUCCESS);
    CHECK(waitpid(child, &status, 0) == child && !status, "the child ended with %#x", status);
    CHECK_INT(*(volatile uint64_t *)(memory + 8), 5);
    CHECK(has_pattern(memory, PAGE, 8 * PAGE), "the child's writes are here");
    check_both_ways(memory, mr->rkey);
}

static void child_killed_in_fork(void)
{
    owner_open("share", "share");
    uint8_t *memory = fresh_pages(256);
    struct ibv_mr *mr = must_register(memory, 256 * PAGE, RIG_ACCESS_ALL);

    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (!child)
            _exit(0);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    check_both_ways(memory, mr->rkey);
}

static void other_programs_started(void)
{
    char *arguments[] = { "true", NULL };
    int status;
    pid_t child;

    owner_open("share", "share");
    uint8_t *memory = fresh_pages(4);
    struct ibv_mr *mr = must_register(memory, 4 * PAGE, RIG_ACCESS_ALL);
    CHECK_INT(system("true"), 0);
    CHECK_INT(posix_spawnp(&child, "true", NULL, NULL, arguments, environ), 0);
    CHECK(waitpid(child, &status, 0) == child && !status, "posix_spawn: %#x", status);
    child = vfork();
    if (!child) {
        execvp("true", arguments);
        _exit(1);
    }
    CHECK(waitpid(child, &status, 0) == child && !status, "vfork: %#x", status);
    CHECK(has_pattern(memory, 0, 4 * PAGE), "contents have changed");
    check_both_ways(memory, mr->rkey);
}

/* After exec the peer's operations fail, without other effects. */
static void another_program_here(void)
{
    owner_open("share", "share");
    uint8_t *memory = fresh_pages(1);
    struct ibv_mr *mr = must_register(memory, PAGE, RIG_ACCESS_ALL);
    int ends[2];
    char text[16] = "";

    check_both_ways(memory, mr->rkey);
    CHECK_INT(pipe(ends), 0);
    pid_t child = fork();
    if (!child) {
        dup2(ends[1], 1);
        execlp("echo", "echo", "well", (char *)NULL);
        _exit(1);
    }
    CHECK(read(ends[0], text, sizeof(text) - 1) > 0 && !strcmp(text, "well\n"), "got '%s'", text);
    waitpid(child, NULL, 0);
    check_both_ways(memory, mr->rkey);
}

static uint8_t *volatile under_alarm;
static volatile unsigned alarms, wrong;

static void touch_in_handler(int signal)
{
    (void)signal;
    volatile uint64_t *word = (volatile uint64_t *)under_alarm;
    if (word && *word != alarms)
        wrong++;
    if (word)
        *word = ++alarms;
}

static void signals_during_exchange(void)
{
    struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { 0 };

    owner_open("share", "share");
    signal(SIGALRM, touch_in_handler);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 150; i++) {
        uint8_t *memory = fresh_pages(32);
        *(volatile uint64_t *)memory = alarms = 0;
        under_alarm = memory;
        struct ibv_mr *mr = must_register(memory, 32 * PAGE, RIG_ACCESS_ALL);
        under_alarm = NULL;
        CHECK_INT(wrong, 0);
        CHECK_INT(*(volatile uint64_t *)memory, alarms);
        CHECK(has_pattern(memory, PAGE, 32 * PAGE), "contents have changed");
        ibv_dereg_mr(mr);
        munmap(memory, 32 * PAGE);
    }
    setitimer(ITIMER_REAL, &never, NULL);
}

static uint8_t *volatile being_registered;

static void *register_for_ever(void *argument)
{
    for (;;) {
        uint8_t *memory = fresh_pages(64);
        being_registered = memory;
        struct ibv_mr *mr = must_register(memory, 64 * PAGE, RIG_ACCESS_ALL);
        pthread_testcancel();
        ibv_dereg_mr(mr);
    }
    return argument;
}

static void cancelled_during_exchange(void)
{
    owner_open("share", "share");
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        being_registered = NULL;
        CHECK_INT(pthread_create(&thread, NULL, register_for_ever, NULL), 0);
        while (!being_registered)
            ;
        usleep(i * 50);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
        CHECK(has_pattern(being_registered, 0, 64 * PAGE), "contents were lost");
        memset(being_registered, 0, 64 * PAGE);
    }
    uint8_t *memory = fresh_pages(1);
    check_both_ways(memory, must_register(memory, PAGE, RIG_ACCESS_ALL)->rkey);
}

/* ---- deaths ---- */

static void owner_killed(void)
{
    CHECK_INT(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); /* to wait for the victims' peers, too */
    for (int i = 0; i < 12; i++) {
        pid_t victim = fork();
        if (!victim) {
            setpgid(0, 0);
            owner_open("share", "share");
            for (;;) {
                uint8_t *memory = fresh_pages(256);
                struct ibv_mr *mr = must_register(memory, 256 * PAGE, RIG_ACCESS_ALL);
                peer_write(memory, mr->rkey, 1);
                ibv_dereg_mr(mr);
                munmap(memory, 256 * PAGE);
            }
        }
        setpgid(victim, victim);
        usleep(30000 + i * 777);
        kill(victim, SIGKILL);
        waitpid(victim, NULL, 0);
        kill(-victim, SIGKILL);
        while (waitpid(-victim, NULL, 0) > 0)
            ;
    }
    owner_open("share", "share");
    uint8_t *memory = fresh_pages(1);
    check_both_ways(memory, must_register(memory, PAGE, RIG_ACCESS_ALL)->rkey);
}

static void peer_killed(void)
{
    owner_open("share", "share");
    uint8_t *memory = fresh_pages(16);
    struct ibv_mr *mr = must_register(memory, 16 * PAGE, RIG_ACCESS_ALL);

    *(volatile uint64_t *)memory = 0;
    peer_write_on(memory, mr->rkey);
    while (*(volatile uint64_t *)memory < 100)
        ;
    kill(peer_pid, SIGKILL);
    waitpid(peer_pid, NULL, 0);
    CHECK_INT(ibv_dereg_mr(mr), 0);
    CHECK(has_pattern(memory, PAGE, 16 * PAGE), "contents have changed");
    munmap(memory, 16 * PAGE);
}

const struct mapped_case program_cases[] = {
    { "exchange-and-use", exchange_and_use },
    { "each-side-its-own-way", each_side_its_own_way },
    { "copy-keeps-memory", copy_keeps_memory },
    { "overlapping-regions", overlapping_regions },
    { "re-registration", re_registration },
    { "keys-come-again", keys_come_again },
    { "deregister-under-way", deregister_under_way },
    { "peers-let-go", peers_let_go },
    { "unmapped", unmapped },
    { "unmapped-under-other-locks", unmapped_under_other_locks },
    { "replaced", replaced },
    { "moved-and-grown", moved_and_grown },
    { "grown-by-realloc", grown_by_realloc },
    { "discarded-now", discarded_now },
    { "discarded-later", discarded_later },
    { "forked", forked },
    { "child-killed-in-fork", child_killed_in_fork },
    { "other-programs-started", other_programs_started },
    { "another-program-here", another_program_here },
    { "signals-during-exchange", signals_during_exchange },
    { "cancelled-during-exchange", cancelled_during_exchange },
    { "owner-killed", owner_killed },
    { "peer-killed", peer_killed },
    { 0 },
};
