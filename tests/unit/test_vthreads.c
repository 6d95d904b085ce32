/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of vthreads: who gets a slot that another thread had. */
#include "fabric.h"

#include "hca/proc.h"
#include "sim/sched/sched.h"
#include "sim/sched/vthread_index.h"
#include "sim/sched/vthread_table.h"

#include <pthread.h>
#include <stdlib.h>

#define NO_PROCESS UINT32_MAX

static struct ibv_context *context;

static int open_table(void **state)
{
    context = fabric_open();
    sched = calloc(1, sizeof(*sched));
    return !sched;
}

static int close_table(void **state)
{
    free(sched);
    sched = NULL;
    return ibv_close_device(context);
}

static struct vthread *leave_slot(uint32_t process)
{
    struct vthread *left = &sched->vthreads[0];

    *left = (struct vthread){ .process = process, .state = VTHREAD_FREE, .hands_over = true };
    sched->vthread_high = 1;
    return left;
}

/* Its thread is about to store who runs next: a new owner would be taken for it. */
static void test_a_slot_is_not_free_while_its_thread_hands_over(void **state)
{
    struct vthread *left = leave_slot(proc_word(proc_self));

    assert_ptr_equal(vthread_alloc(), left + 1);
    store_release(&left->hands_over, false);
    assert_ptr_equal(vthread_alloc(), left);
}

static void test_a_slot_of_a_dead_process_is_free(void **state)
{
    struct vthread *left = leave_slot(NO_PROCESS);

    assert_ptr_equal(vthread_alloc(), left);
    assert_false(load_relaxed(&left->hands_over));
}

/* A completion queue of a process that has gone, or the new owner would wake for that one alone. */
static void test_a_new_owner_polls_any_completion_queue(void **state)
{
    struct vthread *left = leave_slot(NO_PROCESS);

    left->polls_only = (const struct shared_cq *)context;
    left->waits_for_cqe = true;
    assert_ptr_equal(vthread_alloc(), left);
    assert_null(left->polls_only);
    assert_false(left->waits_for_cqe);
}

#define JOIN_ROUNDS 500

static void *raise_high(void *done)
{
    for (uint32_t high = 1; high <= VTHREADS_MAX; high++)
        store_release(&sched->vthread_high, high);
    store_release((atomic_bool *)done, true);
    return NULL;
}

/* A thread that is joining has taken its slot, but its state and its times are not set yet. */
static void test_a_thread_that_is_joining_is_not_due(void **state)
{
    bool due = false;

    for (int round = 0; round < JOIN_ROUNDS; round++) {
        atomic_bool done = false;
        pthread_t joining;

        memset(sched, 0, sizeof(*sched));
        assert_int_equal(pthread_create(&joining, NULL, raise_high, &done), 0);
        while (!load_acquire(&done)) {
            vthread_index_stale();
            vthread_index_refresh();
            due |= vthread_index_due() || vthread_index_recheck();
        }
        pthread_join(joining, NULL);
    }
    assert_false(due);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_slot_is_not_free_while_its_thread_hands_over),
        cmocka_unit_test(test_a_slot_of_a_dead_process_is_free),
        cmocka_unit_test(test_a_new_owner_polls_any_completion_queue),
        cmocka_unit_test(test_a_thread_that_is_joining_is_not_due),
    };

    return cmocka_run_group_tests(tests, open_table, close_table);
}
