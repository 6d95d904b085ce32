/* SPDX-License-Identifier: BSD-2-Clause */
/* The segment's memory: the arena, the tables, keys and their checks. */

#include "fabric.h"

#include "hca/arena.h"
#include "hca/epoch.h"
#include "hca/mr.h"
#include "hca/mw.h"
#include "hca/proc.h"
#include "dma/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/resource.h>

static int join_fabric(void **state)
{
    fabric_open();
    return 0;
}

static void blocks_are_zeroed_apart_and_reused(void **state)
{
    enum { COUNT = 200 };
    unsigned char *blocks[COUNT];
    const uint64_t size = 192;

    for (int i = 0; i < COUNT; i++) {
        blocks[i] = arena_alloc(size);
        assert_non_null(blocks[i]);
        for (uint64_t b = 0; b < size; b++)
            assert_int_equal(blocks[i][b], 0);
        memset(blocks[i], i + 1, size);
    }
    for (int i = 0; i < COUNT; i++)
        for (uint64_t b = 0; b < size; b++)
            assert_int_equal(blocks[i][b], (unsigned char)(i + 1));
    uint64_t used = arena_bytes_used();
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < COUNT; i++)
            arena_free(blocks[i], size);
        for (int i = 0; i < COUNT; i++) {
            blocks[i] = arena_alloc(size);
            assert_int_equal(blocks[i][size - 1], 0);
        }
    }
    assert_int_equal(arena_bytes_used(), used);
    for (int i = 0; i < COUNT; i++)
        arena_free(blocks[i], size);
}

static void small_blocks_of_one_size_make_room_for_another(void **state)
{
    enum { COUNT = 1000 };
    static void *blocks[COUNT];
    uint64_t before = arena_bytes_used();

    for (int i = 0; i < COUNT; i++)
        blocks[i] = arena_alloc(4096);
    assert_true(arena_bytes_used() >= before + COUNT * 4096 - UNIT_SIZE);
    for (int i = 0; i < COUNT; i++)
        arena_free(blocks[i], 4096);
    assert_true(arena_bytes_used() <= before + UNIT_SIZE);
}

static void large_blocks_go_back_to_the_system(void **state)
{
    uint64_t before = arena_bytes_used();
    char *block = arena_alloc(5 << 20);

    assert_non_null(block);
    assert_true(arena_bytes_used() >= before + (5 << 20));
    memset(block, 7, 5 << 20);
    arena_free(block, 5 << 20);
    assert_int_equal(arena_bytes_used(), before);
    block = arena_alloc(5 << 20);
    assert_int_equal(block[12345], 0);
    arena_free(block, 5 << 20);
}

static void impossible_sizes_fail_cleanly(void **state)
{
    uint64_t before = arena_bytes_used();

    assert_null(arena_alloc(1ull << 45));
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(arena_bytes_used(), before);
}

/* Stands in for the C library's: the file system is full when 'full' is set. */
static bool full;

int posix_fallocate(int fd, off_t offset, off_t length)
{
    if (full)
        return ENOSPC;
    return fallocate(fd, 0, offset, length) ? errno : 0;
}

/* A verb reports ENOMEM for want of room, whoever has none: the segment or its file system. Other
 * reasons stay what they are. */
static void a_full_file_system_is_want_of_memory(void **state)
{
    uint64_t before = arena_bytes_used();
    struct rlimit whole, small;

    full = true;
    errno = 0;
    assert_null(arena_alloc(5 << 20));
    assert_int_equal(errno, ENOMEM);
    full = false;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &whole), 0);
    small = whole;
    small.rlim_cur = 1 << 20;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    errno = 0;
    assert_null(arena_alloc(5 << 20));
    assert_int_equal(errno, EFBIG);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &whole), 0);
    assert_int_equal(arena_bytes_used(), before);
}

static void offsets_outside_the_segment_have_no_pointer(void **state)
{
    assert_null(seg_at(0, 8));
    assert_null(seg_at(seg_limit, 8));
    assert_null(seg_at(seg_limit - 8, 16));
    assert_null(seg_at(UINT64_MAX - 7, 64));
    assert_null(seg_at(sizeof(struct segment) + 3, 8));
}

static void a_key_is_valid_only_while_it_is_registered(void **state)
{
    struct mem_ref ref;
    char bytes[100];
    uint32_t key, next;
    struct shared_mr *mr = mr_create(7, MR_USER, (uintptr_t)bytes, (uintptr_t)bytes, sizeof(bytes),
                                     IBV_ACCESS_LOCAL_WRITE, &key);

    assert_non_null(mr);
    assert_true(mr_local(key, 7, (uintptr_t)bytes, 100, true, &ref));
    assert_int_equal(ref.addr, (uintptr_t)bytes);
    assert_false(mr_local(key + 1, 7, (uintptr_t)bytes, 1, true, &ref));
    mr_destroy(mr);
    assert_false(mr_local(key, 7, (uintptr_t)bytes, 100, true, &ref));
    mr = mr_create(7, MR_USER, (uintptr_t)bytes, (uintptr_t)bytes, sizeof(bytes), 0, &next);
    assert_int_not_equal(key, next);
    mr_destroy(mr);
}

/* The owner of a window chooses the tag of its key; the next key is another one. */
static void a_bound_key_is_not_given_out_again(void **state)
{
    struct mem_ref ref;
    char bytes[100];
    uint32_t key, bound;
    uint8_t tag;
    struct shared_mr *mr = mr_create(7, MR_USER, (uintptr_t)bytes, (uintptr_t)bytes, sizeof(bytes),
                                     IBV_ACCESS_LOCAL_WRITE, &key);

    assert_non_null(mr);
    tag = (uint8_t)(key + 1);
    bound = mr_validate(mr, tag);
    assert_int_equal(bound & 0xff, tag);
    assert_true(mr_local(bound, 7, (uintptr_t)bytes, 100, true, &ref));
    assert_false(mr_local(key, 7, (uintptr_t)bytes, 100, true, &ref));
    assert_int_equal(mr_next_tag(mr), (uint8_t)(tag + 1));
    mr_destroy(mr);
}

static void every_check_of_a_region_counts(void **state)
{
    struct mem_ref ref;
    char bytes[100];
    const uint64_t iova = 0x1000;
    uint32_t key;
    struct shared_mr *mr = mr_create(3, MR_USER, (uintptr_t)bytes, iova, sizeof(bytes),
                                     IBV_ACCESS_REMOTE_READ, &key);
    const unsigned read = IBV_ACCESS_REMOTE_READ;

    assert_true(mr_remote(key, proc_self, 3, 1, iova + 10, 90, read, &ref));
    assert_int_equal(ref.addr, (uintptr_t)bytes + 10);
    assert_true(mr_remote(key, proc_self, 3, 1, iova + 100, 0, read, &ref));
    assert_false(mr_remote(key, proc_self, 3, 1, iova + 10, 91, read, &ref));
    assert_false(mr_remote(key, proc_self, 3, 1, iova - 1, 1, read, &ref));
    assert_false(mr_remote(key, proc_self, 3, 1, iova, UINT64_MAX, read, &ref));
    assert_false(mr_remote(key, proc_self, 3, 1, UINT64_MAX, 2, read, &ref));
    assert_false(mr_remote(key, proc_self, 4, 1, iova, 1, read, &ref));
    assert_false(mr_remote(key, proc_self + 1, 3, 1, iova, 1, read, &ref));
    assert_false(mr_remote(key, proc_self, 3, 1, iova, 1, IBV_ACCESS_REMOTE_WRITE, &ref));
    assert_false(mr_local(key, 3, iova, 1, true, &ref));
    assert_true(mr_local(key, 3, iova, 1, false, &ref));
    mr_destroy(mr);
}

/* Peers read a second entry, which a process does not trust itself. */
static void peers_see_the_same_region(void **state)
{
    char bytes[100];
    uint32_t key;
    struct shared_mr *mr = mr_create(3, MW_TYPE_2, (uintptr_t)bytes, 0x1000, sizeof(bytes),
                                     IBV_ACCESS_REMOTE_READ, &key);
    struct shared_mr *seen = mr_published(mr);

    mr->bound_qpn = 9;
    key = mr_validate(mr, (uint8_t)(key + 1));
    assert_ptr_equal(shared_mr_find(key), seen);
    assert_ptr_not_equal(seen, mr);
    assert_int_equal(load_relaxed(&seen->key), key);
    assert_int_equal(seen->access, IBV_ACCESS_REMOTE_READ);
    assert_int_equal(seen->iova, 0x1000);
    assert_int_equal(seen->addr, (uintptr_t)bytes);
    assert_int_equal(seen->length, sizeof(bytes));
    assert_int_equal(seen->pd, 3);
    assert_int_equal(seen->proc, proc_self);
    assert_int_equal(seen->kind, MW_TYPE_2);
    assert_int_equal(seen->bound_qpn, 9);
    assert_int_equal(seen->index, mr->index);
    mr_destroy(mr);
    assert_null(shared_mr_find(key));
}

static char windowed[4096];

static int bind_window(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mr *mr, uint64_t at,
                       uint64_t length, unsigned access)
{
    struct send_wqe wqe = { .mw = mw, .rkey = 0x55 };

    wqe.bind = (struct ibv_mw_bind_info){ mr, (uintptr_t)windowed + at, length, access };
    return mw_bind((struct hca_qp *)qp, &wqe);
}

static int invalidate(struct ibv_qp *qp, uint32_t key)
{
    struct send_wqe wqe = { .imm = key };

    return mw_invalidate((struct hca_qp *)qp, &wqe);
}

static void a_window_opens_what_its_region_allows(void **state)
{
    const unsigned bind = IBV_ACCESS_MW_BIND, write = IBV_ACCESS_LOCAL_WRITE;
    struct ibv_pd *pd = ibv_alloc_pd(fabric_open()), *other = ibv_alloc_pd(fabric_open());
    struct ibv_cq *cq = ibv_create_cq(pd->context, 4, NULL, NULL, 0);
    struct ibv_qp *qp = fabric_rc_qp(pd, cq, 4);
    struct ibv_mr *mr = ibv_reg_mr(pd, windowed, sizeof(windowed), bind | write);
    struct ibv_mr *closed = ibv_reg_mr(pd, windowed, sizeof(windowed), write);
    struct ibv_mr *fixed = ibv_reg_mr(pd, windowed, sizeof(windowed), bind);
    struct ibv_mr *foreign = ibv_reg_mr(other, windowed, sizeof(windowed), bind | write);
    struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
    uint32_t pd_id = ((struct hca_pd *)pd)->id, key;
    struct shared_mr *own = ((struct hca_mw *)mw)->own;
    struct mem_ref ref;

    assert_true(qp && mr && closed && fixed && foreign && mw);
    assert_int_equal(bind_window(qp, mw, closed, 0, 8, IBV_ACCESS_REMOTE_READ), IBV_WC_MW_BIND_ERR);
    assert_int_equal(bind_window(qp, mw, foreign, 0, 8, IBV_ACCESS_REMOTE_READ),
                     IBV_WC_MW_BIND_ERR);
    assert_int_equal(bind_window(qp, mw, fixed, 0, 8, IBV_ACCESS_REMOTE_WRITE),
                     IBV_WC_MW_BIND_ERR);
    assert_int_equal(bind_window(qp, mw, fixed, 0, 8, IBV_ACCESS_REMOTE_ATOMIC),
                     IBV_WC_MW_BIND_ERR);
    assert_int_equal(bind_window(qp, mw, mr, 4000, 97, IBV_ACCESS_REMOTE_READ),
                     IBV_WC_MW_BIND_ERR);
    assert_int_equal(bind_window(qp, mw, fixed, 0, 8, IBV_ACCESS_REMOTE_READ), IBV_WC_SUCCESS);
    assert_int_equal(load_relaxed(&((struct hca_mr *)fixed)->windows), 1);
    assert_int_equal(ibv_dereg_mr(fixed), EBUSY);
    for (int i = 0; i < 2; i++)
        assert_int_equal(bind_window(qp, mw, mr, 4000, 96, IBV_ACCESS_REMOTE_READ), IBV_WC_SUCCESS);
    assert_int_equal(ibv_dereg_mr(fixed), 0);
    assert_int_equal(load_relaxed(&((struct hca_mr *)mr)->windows), 1);
    key = load_relaxed(&own->key);
    assert_int_equal(key & 0xff, 0x55);
    const uint64_t at = (uintptr_t)windowed + 4000;
    const unsigned read = IBV_ACCESS_REMOTE_READ;
    assert_true(mr_remote(key, proc_self, pd_id, qp->qp_num, at, 96, read, &ref));
    assert_int_equal(ref.addr, at);
    assert_false(mr_remote(key, proc_self, pd_id, qp->qp_num, at - 1, 1, read, &ref));
    assert_false(mr_remote(key, proc_self, pd_id, qp->qp_num, at, 8, IBV_ACCESS_REMOTE_WRITE, &ref));
    assert_false(mr_remote(key, proc_self, pd_id, qp->qp_num + 1, at, 8, read, &ref));
    assert_int_equal(invalidate(qp, key + 1), IBV_WC_LOC_PROT_ERR);
    assert_int_equal(invalidate(qp, mr->rkey), IBV_WC_LOC_PROT_ERR);
    assert_int_equal(invalidate(qp, key), IBV_WC_SUCCESS);
    assert_int_equal(invalidate(qp, key), IBV_WC_LOC_PROT_ERR);
    assert_int_equal(bind_window(qp, mw, mr, 8, 8, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED),
                     IBV_WC_SUCCESS);
    key = load_relaxed(&own->key);
    assert_true(mr_remote(key, proc_self, pd_id, qp->qp_num, 0, 8, read, &ref));
    assert_int_equal(ref.addr, (uintptr_t)windowed + 8);
    assert_int_equal(bind_window(qp, mw, mr, 0, 0, 0), IBV_WC_SUCCESS);
    assert_int_equal(load_relaxed(&((struct hca_mr *)mr)->windows), 0);
    assert_false(mr_remote(key, proc_self, pd_id, qp->qp_num, 0, 8, read, &ref));
    assert_int_equal(ibv_dealloc_mw(mw), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dereg_mr(closed), 0);
    assert_int_equal(ibv_dereg_mr(foreign), 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_dealloc_pd(other), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void *stay_inside(void *arg)
{
    atomic_int *stage = arg;

    epoch_enter();
    atomic_store(stage, 1);
    struct timespec nap = { .tv_nsec = 30000000 };
    nanosleep(&nap, NULL);
    atomic_store(stage, 2);
    epoch_exit();
    return NULL;
}

static void a_grace_period_waits_for_those_inside(void **state)
{
    atomic_int stage = 0;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, stay_inside, &stage), 0);
    while (!atomic_load(&stage))
        sched_yield();
    epoch_grace();
    assert_int_equal(atomic_load(&stage), 2);
    pthread_join(thread, NULL);
}

/* ---- a process that copies for others ---- */

static uint64_t agent_source = 0x1122334455667788, agent_target;

static void *copy_by_asking(void *arg)
{
    struct local_list local = { .iov = { { &agent_source, 8 } }, .count = 1, .length = 8,
                                .unmapped = true };
    struct mem_ref ref = { .kind = MEM_PROCESS, .proc = proc_self,
                           .addr = (uintptr_t)&agent_target, .length = 8 };

    return copy_out(&local, &ref, 1) ? "the copy failed" : NULL;
}

/* The owner was stopped in the middle of request 5, whose requester is gone, and goes on. */
static void an_answer_to_another_request_is_not_taken(void **state)
{
    struct copy_request *r = &proc_slot(proc_self)->copy;
    pthread_t thread;
    void *complaint;

    store_relaxed(&proc_slot(proc_self)->agent_running, 1); /* we are the agent */
    store_relaxed(&r->state, 5u << COPY_STATE_BITS | COPY_BUSY);
    assert_int_equal(pthread_create(&thread, NULL, copy_by_asking, NULL), 0);
    usleep(20000);
    copy_serve_peer();
    assert_int_equal(load_relaxed(&r->state), 5u << COPY_STATE_BITS | COPY_BUSY);
    store_release(&r->state, 5u << COPY_STATE_BITS | COPY_DONE);
    for (int i = 0; i < 5000 && agent_target != agent_source; i++) {
        copy_serve_peer();
        usleep(1000);
    }
    pthread_join(thread, &complaint);
    assert_null(complaint);
    assert_int_equal(agent_target, agent_source);
    assert_int_equal(load_relaxed(&r->state), 6u << COPY_STATE_BITS | COPY_DONE);
    store_relaxed(&proc_slot(proc_self)->agent_running, 0);
}

static void carry(struct ibv_qp *from, struct ibv_qp *to, struct ibv_sge source,
                  struct ibv_sge target)
{
    struct ibv_send_wr *bad_send, send = { .sg_list = &source, .num_sge = 1, .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED };
    struct ibv_recv_wr *bad, receive = { .sg_list = &target, .num_sge = 1 };
    struct ibv_wc wc[2];

    assert_int_equal(ibv_post_recv(to, &receive, &bad), 0);
    assert_int_equal(ibv_post_send(from, &send, &bad_send), 0);
    for (int got = 0; got < 2;)
        got += ibv_poll_cq(from->send_cq, 2 - got, &wc[got]);
    assert_int_equal(wc[0].status, IBV_WC_SUCCESS);
    assert_int_equal(wc[1].status, IBV_WC_SUCCESS);
}

static void the_null_region_reads_as_zeros_and_forgets(void **state)
{
    enum { BYTES = 6 << 20 };
    struct ibv_pd *pd = ibv_alloc_pd(fabric_open());
    struct ibv_cq *cq = ibv_create_cq(pd->context, 16, NULL, NULL, 0);
    struct ibv_qp *a = fabric_rc_qp(pd, cq, 4), *b = fabric_rc_qp(pd, cq, 4);
    unsigned char *buffer = malloc(BYTES);
    struct ibv_mr *mr = ibv_reg_mr(pd, buffer, BYTES, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_mr *null = ibv_alloc_null_mr(pd);
    const uint32_t lengths[] = { 8, 80, 5000, BYTES };
    struct mem_ref ref;

    assert_non_null(null);
    fabric_connect(a, b);
    for (int i = 0; i < 4; i++) {
        struct ibv_sge whole = { (uintptr_t)buffer, lengths[i], mr->lkey };
        struct ibv_sge nothing = { 0xdeadbeef000, lengths[i], null->lkey };
        memset(buffer, 0x5a, BYTES);
        carry(a, b, whole, nothing); /* forgotten */
        assert_int_equal(buffer[lengths[i] - 1], 0x5a);
        carry(a, b, nothing, whole); /* and not read again */
        for (uint32_t at = 0; at < lengths[i]; at++)
            assert_int_equal(buffer[at], 0);
    }
    for (int writing = 0; writing < 2; writing++) { /* the longest message, and no longer one */
        assert_true(mr_local(null->lkey, ((struct hca_pd *)pd)->id, 77, MR_NULL_SPAN, writing,
                             &ref));
        assert_false(mr_local(null->lkey, ((struct hca_pd *)pd)->id, 77, MR_NULL_SPAN + 1, writing,
                              &ref));
    }
    assert_false(mr_remote(null->lkey, proc_self, ((struct hca_pd *)pd)->id, b->qp_num, 0, 8,
                           IBV_ACCESS_REMOTE_READ, &ref));
    assert_int_equal(ibv_rereg_mr(null, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
                                  IBV_ACCESS_REMOTE_READ), IBV_REREG_MR_ERR_INPUT);
    ibv_destroy_qp(a);
    ibv_destroy_qp(b);
    assert_int_equal(ibv_dereg_mr(null), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    free(buffer);
    ibv_destroy_cq(cq);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_zeroed_apart_and_reused),
        cmocka_unit_test(small_blocks_of_one_size_make_room_for_another),
        cmocka_unit_test(large_blocks_go_back_to_the_system),
        cmocka_unit_test(impossible_sizes_fail_cleanly),
        cmocka_unit_test(a_full_file_system_is_want_of_memory),
        cmocka_unit_test(offsets_outside_the_segment_have_no_pointer),
        cmocka_unit_test(a_key_is_valid_only_while_it_is_registered),
        cmocka_unit_test(a_bound_key_is_not_given_out_again),
        cmocka_unit_test(every_check_of_a_region_counts),
        cmocka_unit_test(peers_see_the_same_region),
        cmocka_unit_test(a_window_opens_what_its_region_allows),
        cmocka_unit_test(a_grace_period_waits_for_those_inside),
        cmocka_unit_test(an_answer_to_another_request_is_not_taken),
        cmocka_unit_test(the_null_region_reads_as_zeros_and_forgets),
    };

    return cmocka_run_group_tests_name("memory", tests, join_fabric, NULL);
}
