/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of devices, and many objects of one device. */

#include "fabric.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct ibv_context *context;

static int join_fabric(void **state)
{
    context = fabric_open();
    return 0;
}

/* ---- names ---- */

enum { LISTERS = 4, LISTS = 50000, LOOKS = 4 };

static bool names_are_whole(struct ibv_device *device)
{
    return !strcmp(ibv_get_device_name(device), "verbena0") &&
           !strcmp(device->dev_name, "uverbs0") &&
           !strcmp(device->ibdev_path, "/sys/class/infiniband/verbena0");
}

static void *read_names(void *arg)
{
    atomic_uint *torn = arg;

    for (int i = 0; i < LISTS; i++) {
        struct ibv_device **list = ibv_get_device_list(NULL);
        for (int looks = 0; looks < LOOKS; looks++)
            *torn += !list || !names_are_whole(list[0]);
        ibv_free_device_list(list);
    }
    return NULL;
}

static void names_are_whole_while_others_ask(void **state)
{
    pthread_t threads[LISTERS];
    atomic_uint torn = 0;

    for (int i = 0; i < LISTERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_names, &torn), 0);
    for (int i = 0; i < LISTERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(torn, 0);
}

static void a_child_lists_devices_while_its_parent_does(void **state)
{
    pthread_t thread;
    atomic_uint torn = 0;

    assert_int_equal(pthread_create(&thread, NULL, read_names, &torn), 0);
    for (int i = 0; i < 20; i++) {
        int status;
        pid_t child = fork();
        if (!child) {
            alarm(20);
            struct ibv_device **list = ibv_get_device_list(NULL);
            _exit(!list || !names_are_whole(list[0]));
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    pthread_join(thread, NULL);
    assert_int_equal(torn, 0);
}

/* ---- objects that end in another order than they began ---- */

enum { OBJECTS = 60 };

static int order_of(int round, int i)
{
    static const int steps[] = { 1, OBJECTS - 1, 7 }; /* oldest first, newest first, mixed */

    return (i + 1) * steps[round] % OBJECTS;
}

static void queues_end_in_any_order(void **state)
{
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };

    for (int round = 0; round < 3; round++) {
        struct ibv_comp_channel *channels[OBJECTS];
        struct ibv_cq *cqs[OBJECTS], *shared[OBJECTS];
        struct ibv_srq *srqs[OBJECTS];
        for (int i = 0; i < OBJECTS; i++) {
            channels[i] = ibv_create_comp_channel(context);
            cqs[i] = ibv_create_cq(context, 1, NULL, channels[i], 0);
            shared[i] = ibv_create_cq(context, 1, NULL, channels[0], 0);
            srqs[i] = ibv_create_srq(pd, &init);
            assert_true(cqs[i] && shared[i] && srqs[i]);
        }
        for (int i = 0; i < OBJECTS; i++) {
            assert_int_equal(ibv_destroy_cq(shared[order_of(round, i)]), 0);
            assert_int_equal(ibv_destroy_cq(cqs[order_of(round, i)]), 0);
            assert_int_equal(ibv_destroy_srq(srqs[order_of(round, i)]), 0);
        }
        for (int i = 0; i < OBJECTS; i++)
            assert_int_equal(ibv_destroy_comp_channel(channels[order_of(round, i)]), 0);
    }
    assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* What is in use cannot be taken away, and nothing is in use any more once its user has gone. */
static void what_is_in_use_stays(void **state)
{
    struct ibv_xrcd_init_attr domain = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT
    };
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
    struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, channel, 0);
    struct ibv_xrcd *xrcd = ibv_open_xrcd(context, &domain);
    struct ibv_srq_init_attr_ex shared = {
        .attr = { .max_wr = 1, .max_sge = 1 },
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                     IBV_SRQ_INIT_ATTR_CQ,
        .srq_type = IBV_SRQT_XRC, .pd = pd, .xrcd = xrcd, .cq = cq,
    };
    struct ibv_srq *srq = ibv_create_srq_ex(context, &shared);
    struct ibv_qp_init_attr_ex target = { .qp_type = IBV_QPT_XRC_RECV,
                                          .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd };
    struct ibv_qp *qp = fabric_rc_qp(pd, cq, 1), *receiver = ibv_create_qp_ex(context, &target);

    assert_true(pd && channel && cq && xrcd && srq && qp && receiver);
    assert_int_equal(ibv_destroy_comp_channel(channel), EBUSY);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_cq(cq), EBUSY);
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    assert_int_equal(ibv_close_xrcd(xrcd), EBUSY);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    assert_int_equal(ibv_close_xrcd(xrcd), EBUSY);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_destroy_comp_channel(channel), 0);
    assert_int_equal(ibv_destroy_qp(receiver), 0);
    assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_whole_while_others_ask),
        cmocka_unit_test(a_child_lists_devices_while_its_parent_does),
        cmocka_unit_test(queues_end_in_any_order),
        cmocka_unit_test(what_is_in_use_stays),
    };

    return cmocka_run_group_tests_name("devices", tests, join_fabric, NULL);
}
