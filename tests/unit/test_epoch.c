/* SPDX-License-Identifier: BSD-2-Clause */
/* Grace periods: who is waited for, and what becomes of memory when waiting is in vain. */

#include "fabric.h"

#include "hca/arena.h"
#include "hca/epoch.h"
#include "hca/mr.h"
#include "hca/proc.h"
#include "dma/agent.h"
#include "dma/copy.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int join_fabric(void **state)
{
    fabric_open();
    return 0;
}

static unsigned lines_in_use(void)
{
    unsigned count = 0;

    for (unsigned i = 0; i < MAX_THREAD_LINES; i++)
        count += load_relaxed(&proc_slot(proc_self)->threads[i].used);
    return count;
}

/* ---- more threads than lines ---- */

#define THREADS 40

static sem_t all_have_lines, inside;
static pthread_barrier_t go, over; /* all keep their lines until it is over */
static atomic_bool has_left;

static void *hold_a_line(void *arg)
{
    epoch_enter();
    epoch_exit();
    sem_post(&all_have_lines);
    pthread_barrier_wait(&go);
    pthread_barrier_wait(&over);
    return NULL;
}

static void *stay_inside(void *arg)
{
    epoch_enter();
    epoch_exit();
    sem_post(&all_have_lines);
    pthread_barrier_wait(&go);
    epoch_enter();
    sem_post(&inside);
    usleep(100000);
    store_relaxed(&has_left, true);
    epoch_exit();
    pthread_barrier_wait(&over);
    return NULL;
}

static void *wait_for_grace(void *arg)
{
    epoch_enter();
    epoch_exit();
    sem_post(&all_have_lines);
    pthread_barrier_wait(&go);
    sem_wait(&inside);
    bool complete = epoch_grace();
    pthread_barrier_wait(&over);
    return complete && load_relaxed(&has_left) ? NULL : "it did not wait";
}

static uint64_t source = 0x1122334455667788, target;

/* The process copies for itself, as it does for peers that may not reach into it. */
static void *ask_the_agent(void *arg)
{
    struct local_list local = { .iov = { { &source, 8 } }, .count = 1, .length = 8,
                                .unmapped = true };
    struct mem_ref ref = { .kind = MEM_PROCESS, .proc = proc_self, .addr = (uintptr_t)&target,
                           .length = 8 };

    epoch_enter();
    epoch_exit();
    sem_post(&all_have_lines);
    pthread_barrier_wait(&go);
    agent_start();
    epoch_enter();
    int err = copy_out(&local, &ref, 1);
    epoch_exit();
    pthread_barrier_wait(&over);
    return !err && target == source ? NULL : "the agent did not answer";
}

/* The last two share the last line. */
static void start_more_than_there_are_lines(void *(*before_last)(void *), void *(*last)(void *))
{
    pthread_t threads[THREADS];
    void *complaint = NULL;

    sem_init(&all_have_lines, 0, 0);
    sem_init(&inside, 0, 0);
    pthread_barrier_init(&go, NULL, THREADS);
    pthread_barrier_init(&over, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        void *(*body)(void *) = i == THREADS - 2   ? before_last
                                : i == THREADS - 1 ? last
                                                   : hold_a_line;
        assert_int_equal(pthread_create(&threads[i], NULL, body, NULL), 0);
        sem_wait(&all_have_lines);
        if (i == THREADS - 3)
            assert_int_equal(lines_in_use(), MAX_THREAD_LINES - 1); /* one is the agent's */
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], i == THREADS - 1 ? &complaint : NULL);
    assert_null(complaint);
}

static void threads_without_a_line_of_their_own_are_waited_for(void **state)
{
    start_more_than_there_are_lines(stay_inside, wait_for_grace);
}

/* It starts when all lines are taken, and is waited for inside an epoch. */
static void the_agent_does_not_wait_for_those_who_wait_for_it(void **state)
{
    start_more_than_there_are_lines(hold_a_line, ask_the_agent);
}

/* ---- the last functions of a thread ---- */

static pthread_key_t late_key;
static bool late_was_seen;

static void use_it_late(void *value)
{
    epoch_enter();
    struct thread_line *line = epoch_line;
    late_was_seen = load_relaxed(&line->used) && line >= proc_slot(proc_self)->threads &&
                    line < proc_slot(proc_self)->threads + MAX_THREAD_LINES;
    epoch_exit();
}

static void *end_late(void *arg)
{
    epoch_enter();
    epoch_exit();
    pthread_setspecific(late_key, arg);
    return NULL;
}

static void a_thread_that_ends_is_seen_to_the_last(void **state)
{
    unsigned before = lines_in_use();
    pthread_t thread;

    assert_int_equal(pthread_key_create(&late_key, use_it_late), 0);
    assert_int_equal(pthread_create(&thread, NULL, end_late, &late_key), 0);
    pthread_join(thread, NULL);
    assert_true(late_was_seen);
    assert_int_equal(lines_in_use(), before);
    pthread_key_delete(late_key);
}

/* ---- a thread that is stopped ---- */

/* While it hurries, each look at the clock takes 10 ms. */
static atomic_bool hurries;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static _Atomic uint64_t ahead;
    int err = syscall(SYS_clock_gettime, clock, now);

    if (load_relaxed(&hurries))
        atomic_fetch_add(&ahead, 10);
    now->tv_sec += load_relaxed(&ahead) / 1000;
    return err;
}

static sem_t stopped, resume;
static char region[4096];

static void *stop_inside(void *arg)
{
    epoch_enter();
    sem_post(&stopped);
    sem_wait(&resume);
    epoch_exit();
    return NULL;
}

static void *allocate_filled(uint64_t size, int byte)
{
    void *block = arena_alloc(size);

    assert_non_null(block);
    return memset(block, byte, size);
}

static void what_a_stopped_thread_may_write_to_is_kept(void **state)
{
    const uint64_t size = 3 * UNIT_SIZE;
    struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
    struct ibv_pd *pd = ibv_alloc_pd(fabric_open());
    struct ibv_cq *cq = ibv_create_cq(pd->context, 16, NULL, NULL, 0);
    struct ibv_qp *a = fabric_rc_qp(pd, cq, 4), *b = fabric_rc_qp(pd, cq, 4);
    struct ibv_mr *mr = ibv_reg_mr(pd, region, sizeof(region), IBV_ACCESS_LOCAL_WRITE);
    uint8_t *block = allocate_filled(size, 0x5a);
    uint64_t used = arena_bytes_used();
    struct mem_ref ref;
    pthread_t thread;

    fabric_connect(a, b);
    store_relaxed(&shared_mr_find(mr->lkey)->touched, 1); /* by a peer */

    sem_init(&stopped, 0, 0);
    sem_init(&resume, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, stop_inside, NULL), 0);
    sem_wait(&stopped);
    store_relaxed(&hurries, true);
    assert_false(epoch_grace());
    store_relaxed(&hurries, false);
    arena_free(block, size);
    assert_int_equal(arena_bytes_used(), used);
    assert_int_equal(block[size - 1], 0x5a);
    assert_int_equal(ibv_dereg_mr(mr), EBUSY);
    assert_true(mr_local(mr->lkey, ((struct hca_pd *)pd)->id, (uintptr_t)region, 1, true, &ref));
    assert_int_equal(ibv_modify_qp(a, &reset, IBV_QP_STATE), EBUSY);
    assert_int_equal(a->state, IBV_QPS_ERR);
    sem_post(&resume);
    pthread_join(thread, NULL);
    assert_true(epoch_grace());
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_modify_qp(a, &reset, IBV_QP_STATE), 0);
    assert_true(arena_bytes_used() < used);
    ibv_destroy_qp(a);
    ibv_destroy_qp(b);
    ibv_destroy_cq(cq);
    ibv_dealloc_pd(pd);
}

/* ---- membarrier, and none ---- */

static void with_membarrier_readers_pay_nothing(void **state)
{
    long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

    if (commands < 0 || !(commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED))
        skip();
    assert_true(epoch_grace());
    assert_int_equal(load_relaxed(&seg->strong_fences), 0);
}

/* The filter holds for this thread to its end: this test is the last. */
static void without_membarrier_readers_pay_a_fence(void **state)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { .len = sizeof(filter) / sizeof(filter[0]), .filter = filter };

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        skip();
    store_relaxed(&seg->strong_fences, 0);
    assert_true(epoch_grace());
    assert_int_equal(load_relaxed(&seg->strong_fences), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_without_a_line_of_their_own_are_waited_for),
        cmocka_unit_test(the_agent_does_not_wait_for_those_who_wait_for_it),
        cmocka_unit_test(a_thread_that_ends_is_seen_to_the_last),
        cmocka_unit_test(what_a_stopped_thread_may_write_to_is_kept),
        cmocka_unit_test(with_membarrier_readers_pay_nothing),
        cmocka_unit_test(without_membarrier_readers_pay_a_fence),
    };

    return cmocka_run_group_tests_name("epoch", tests, join_fabric, NULL);
}
