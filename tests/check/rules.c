/* SPDX-License-Identifier: BSD-2-Clause */
/* Breaks one rule that no adapter notices: rules CASE. */
#include "bed.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct bed bed;

static void poll_both(void)
{
    for (int i = 0; i < 2; i++)
        BED_NEED(bed_poll(&bed).status == IBV_WC_SUCCESS);
}

static void reuse_too_early(void)
{
    BED_NEED(!bed_receive(&bed, 1, 512, 3));
    BED_NEED(!bed_send(&bed, 0, 512, 4));
    bed.memory[100]++;
    poll_both();
    bed_free(&bed);
}

static void reuse_in_time(void)
{
    for (int i = 0; i < 100; i++) {
        BED_NEED(!bed_receive(&bed, 1, 512, 3));
        BED_NEED(!bed_send(&bed, 0, 512, 4));
        poll_both();
        bed.memory[100]++;
    }
    bed_free(&bed);
}

static void deregister_too_early(void)
{
    BED_NEED(!bed_receive(&bed, 1, 512, 3));
    BED_NEED(!bed_send(&bed, 0, 512, 4));
    BED_NEED(!ibv_dereg_mr(bed.mr));
}

/* Posts a send from a mapping of its own. */
static struct ibv_mr *send_from_mapping(void)
{
    size_t bytes = 2 * BED_BYTES;
    struct bed sender = bed;

    sender.memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sender.mr = ibv_reg_mr(bed.pd, sender.memory, bytes, IBV_ACCESS_LOCAL_WRITE);
    BED_NEED(sender.mr);
    BED_NEED(!bed_receive(&bed, 1, 512, 3));
    BED_NEED(!bed_send(&sender, 0, 512, 4));
    return sender.mr;
}

/* Other memory at the same address, or a model would read none. */
static void map_there(const struct ibv_mr *mr, int fixed)
{
    BED_NEED(mmap(mr->addr, mr->length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | fixed,
                  -1, 0) == mr->addr);
}

static void complete_send(struct ibv_mr *mr)
{
    poll_both();
    BED_NEED(!ibv_dereg_mr(mr));
    bed_free(&bed);
}

static void unmap_too_early(void)
{
    struct ibv_mr *mr = send_from_mapping();

    BED_NEED(!munmap(mr->addr, mr->length));
    map_there(mr, MAP_FIXED_NOREPLACE);
    complete_send(mr);
}

static void map_over_too_early(void)
{
    struct ibv_mr *mr = send_from_mapping();

    map_there(mr, MAP_FIXED);
    complete_send(mr);
}

static void move_too_early(void)
{
    struct ibv_mr *mr = send_from_mapping();
    void *to = mmap(NULL, mr->length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    BED_NEED(mremap(mr->addr, mr->length, mr->length, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
    map_there(mr, MAP_FIXED_NOREPLACE);
    complete_send(mr);
}

/* The page that the send uses stays, whole. */
static void shrink_mapping(void)
{
    struct ibv_mr *mr = send_from_mapping();

    BED_NEED(mremap(mr->addr, mr->length, 256, 0) == mr->addr);
    complete_send(mr);
}

/* The half of the memory that receives use, in a region that no peer may write. */
static char *make_receive_region(void)
{
    struct ibv_mr *mr = ibv_reg_mr(bed.pd, bed.memory, BED_BYTES, IBV_ACCESS_LOCAL_WRITE);

    BED_NEED(mr);
    bed.mr->lkey = mr->lkey;
    return bed.memory + BED_BYTES / 2;
}

static void write_receive(void)
{
    char *buffer = make_receive_region();

    BED_NEED(!bed_receive(&bed, 1, 512, 3));
    buffer[100]++;
    BED_NEED(!bed_send(&bed, 0, 512, 4));
    poll_both();
}

/* Until the completion, the buffer shows neither the old bytes nor the new; then the message, and
 * behind it the old bytes. */
static void keep_receive(void)
{
    char *buffer = make_receive_region(), expected[512];

    memset(buffer, 1, 512);
    memset(bed.memory, 2, 512);
    memset(expected, 1, 512);
    memset(expected, 2, 77);
    BED_NEED(!bed_receive(&bed, 1, 512, 3));
    BED_NEED(buffer[0] != 1 && buffer[255] != 1);
    BED_NEED(!bed_send(&bed, 0, 77, 4));
    BED_NEED(buffer[0] != 2);
    poll_both();
    BED_NEED(!memcmp(buffer, expected, 512));
}

#define PAGES_BYTES (4 * 4096)

/* Whole pages, registered for receives. */
static struct ibv_sge make_pages(void)
{
    char *pages = mmap(NULL, PAGES_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr = ibv_reg_mr(bed.pd, pages, PAGES_BYTES, IBV_ACCESS_LOCAL_WRITE);

    BED_NEED(mr);
    return (struct ibv_sge){ (uintptr_t)pages, PAGES_BYTES, mr->lkey };
}

static void receive_pages(struct ibv_sge *sge)
{
    struct ibv_recv_wr *bad, wr = { .wr_id = 3, .sg_list = sge, .num_sge = 1 };

    BED_NEED(!ibv_post_recv(bed.qp[1], &wr, &bad));
}

static void send_pages(struct ibv_sge *sge)
{
    struct ibv_send_wr *bad, wr = { .sg_list = sge,
                                    .num_sge = 1,
                                    .opcode = IBV_WR_SEND,
                                    .send_flags = IBV_SEND_SIGNALED };

    BED_NEED(!ibv_post_send(bed.qp[0], &wr, &bad));
    poll_both();
}

/* In virtual time: the access itself is told, and let through. */
static void touch_receive(void)
{
    struct ibv_sge sge = make_pages();

    receive_pages(&sge);
    BED_NEED(!*(volatile char *)(sge.addr + 5000));
    *(volatile char *)(sge.addr + 5000) = 1;
    BED_NEED(!bed_send(&bed, 0, 512, 4));
    poll_both();
}

/* The kernel's access, too. */
static void write_out_receive(void)
{
    struct ibv_sge sge = make_pages();
    int ends[2];

    receive_pages(&sge);
    BED_NEED(!pipe(ends) && write(ends[1], (void *)(sge.addr + 4096), 4096) == 4096);
}

static sigjmp_buf after_fault;

static void on_fault(int number)
{
    siglongjmp(after_fault, 1);
}

/* Nobody else is in the way of such a receive: messages, also long ones; a child; a registration; a
 * flush and a reset; the program's own faults. */
static void guard_receive(void)
{
    struct ibv_sge to = make_pages(), from = make_pages();
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
    char *bytes = (char *)to.addr;
    pid_t child;

    memset((void *)from.addr, 2, PAGES_BYTES);
    receive_pages(&to);
    send_pages(&from);
    BED_NEED(!memcmp(bytes, (void *)from.addr, PAGES_BYTES));
    receive_pages(&to);
    child = fork();
    if (!child)
        _exit(bytes[5000] != 2);
    int status;
    BED_NEED(child > 0 && waitpid(child, &status, 0) == child && !status);
    signal(SIGSEGV, on_fault);
    if (!sigsetjmp(after_fault, 1)) {
        *(volatile char *)8 = 1;
        BED_NEED(false);
    }
    BED_NEED(ibv_reg_mr(bed.pd, bytes, PAGES_BYTES, IBV_ACCESS_LOCAL_WRITE) && bytes[5000] == 2);
    from.length = 100;
    send_pages(&from);
    receive_pages(&to);
    BED_NEED(!ibv_modify_qp(bed.qp[1], &attr, IBV_QP_STATE));
    BED_NEED(bed_poll(&bed).status == IBV_WC_WR_FLUSH_ERR && bytes[5000] == 2);
    receive_pages(&to);
    BED_NEED(!ibv_destroy_qp(bed.qp[1]) && bytes[5000] == 2);
}

/* Whatever is mapped later where a receive was is not the adapter's. */
static void unmap_receive(void)
{
    struct ibv_sge sge = make_pages();
    void *pages = (void *)sge.addr;
    int ends[2];

    receive_pages(&sge);
    BED_NEED(!munmap(pages, PAGES_BYTES));
    BED_NEED(mmap(pages, PAGES_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                  -1, 0) == pages);
    BED_NEED(!ibv_destroy_qp(bed.qp[1]));
    BED_NEED(!pipe(ends) && write(ends[1], pages, 1) < 0 && errno == EFAULT);
}

/* Programs may send from the memory of a receive, if its message comes later. */
static void share_receive(void)
{
    char *buffer = make_receive_region();
    struct ibv_sge sge = { (uintptr_t)buffer, 64, bed.mr->lkey };
    struct ibv_send_wr *bad, wr = { .sg_list = &sge,
                                    .num_sge = 1,
                                    .opcode = IBV_WR_SEND,
                                    .send_flags = IBV_SEND_SIGNALED };

    memset(buffer, 1, 64);
    BED_NEED(!bed_receive(&bed, 1, 64, 3));
    buffer[8] = 2;
    BED_NEED(!ibv_post_send(bed.qp[0], &wr, &bad));
    poll_both();
    BED_NEED(buffer[0] == 1 && buffer[8] == 2 && buffer[63] == 1);
}

static void never_signal(void)
{
    struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_RDMA_WRITE,
                                    .wr.rdma = { (uintptr_t)bed.memory, bed.mr->rkey } };
    int err = 0;

    for (int i = 0; i < 1000 && !err; i++)
        err = ibv_post_send(bed.qp[0], &wr, &bad);
    BED_NEED(err == ENOMEM);
}

static void overrun(void)
{
    struct ibv_wc wc;

    BED_NEED(!ibv_resize_cq(bed.cq, 4));
    for (int i = 0; i < 8; i++)
        BED_NEED(!bed_rdma(&bed, IBV_WR_RDMA_WRITE, (uintptr_t)bed.memory, bed.mr->rkey, 8));
    usleep(1000);
    ibv_poll_cq(bed.cq, 0, &wc);
}

/* Of a failed completion, the documented fields are as they were, and the others useless. */
static void read_failed_completion(void)
{
    struct ibv_wc wc;

    BED_NEED(!bed_rdma(&bed, IBV_WR_RDMA_WRITE, 8, bed.mr->rkey, 8));
    wc = bed_poll(&bed);
    BED_NEED(wc.status == IBV_WC_REM_ACCESS_ERR && wc.wr_id == 7);
    BED_NEED(wc.qp_num == bed.qp[0]->qp_num && wc.opcode != IBV_WC_RDMA_WRITE);
    BED_NEED(wc.byte_len > BED_BYTES);
}

static void use_after_fork(void)
{
    pid_t child = fork();
    struct ibv_wc wc;

    if (!child) {
        ibv_poll_cq(bed.cq, 1, &wc);
        _exit(0);
    }
    BED_NEED(child > 0 && waitpid(child, NULL, 0) == child);
}

static void deregister_twice(void)
{
    BED_NEED(!ibv_dereg_mr(bed.mr));
    ibv_dereg_mr(bed.mr);
}

static struct ibv_qp *of_one_thread;

static void *post_often(void *unused)
{
    struct ibv_recv_wr *bad, wr = { .wr_id = 1 };

    for (int i = 0; i < 20; i++)
        BED_NEED(!ibv_post_recv(of_one_thread, &wr, &bad));
    return NULL;
}

/* Two threads use a QP of a thread domain, without a lock. */
static void use_from_threads(void)
{
    struct ibv_td_init_attr td = { 0 };
    struct ibv_parent_domain_init_attr domain = { .pd = bed.pd };
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
    pthread_t thread;

    domain.td = ibv_alloc_td(bed.context, &td);
    BED_NEED(domain.td);
    bed.pd = ibv_alloc_parent_domain(bed.context, &domain);
    BED_NEED(bed.pd);
    of_one_thread = bed_qp(&bed);
    BED_NEED(!ibv_modify_qp(of_one_thread, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    BED_NEED(!pthread_create(&thread, NULL, post_often, NULL));
    post_often(NULL);
    BED_NEED(!pthread_join(thread, NULL));
}

/* In virtual time: the last byte of a write is there before the first. */
static void last_byte_first(void)
{
    volatile char *target = bed.memory + BED_BYTES / 2;
    bool seen = false;
    struct ibv_wc wc;

    memset(bed.memory, 1, 1024);
    BED_NEED(!bed_rdma(&bed, IBV_WR_RDMA_WRITE, (uintptr_t)target, bed.mr->rkey, 1024));
    while (!ibv_poll_cq(bed.cq, 1, &wc))
        seen |= target[1023] && !target[0];
    BED_NEED(wc.status == IBV_WC_SUCCESS && seen && target[0]);
}

#define COPY_NS    2000
#define PATIENCE_S 20

static atomic_bool written, seen_late;

static uint64_t now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

/* Watches for a last word that is newer than the first, and stays so for longer than a copy takes. */
static void *watch_order(void *unused)
{
    volatile uint64_t *words = (uint64_t *)(bed.memory + BED_BYTES / 2);

    while (!written) {
        uint64_t last = words[127], begin = now_ns();

        while (words[0] < last && now_ns() - begin < COPY_NS)
            ;
        if (words[0] < last)
            seen_late = true;
    }
    return NULL;
}

/* The same, live: another thread has to look. */
static void last_byte_first_live(void)
{
    uint64_t *source = (uint64_t *)bed.memory, end = now_ns() + PATIENCE_S * 1000000000ull;
    pthread_t thread;

    BED_NEED(!pthread_create(&thread, NULL, watch_order, NULL));
    for (uint64_t i = 1; now_ns() < end && !seen_late; i++) {
        for (int word = 0; word < 128; word++)
            source[word] = i;
        BED_NEED(!bed_rdma(&bed, IBV_WR_RDMA_WRITE, (uintptr_t)bed.memory + BED_BYTES / 2,
                           bed.mr->rkey, 1024));
        BED_NEED(bed_poll(&bed).status == IBV_WC_SUCCESS);
        BED_NEED(!memcmp(bed.memory, bed.memory + BED_BYTES / 2, 1024));
    }
    written = true;
    BED_NEED(!pthread_join(thread, NULL) && seen_late);
}

static void leak(void)
{
    BED_NEED(!ibv_destroy_qp(bed.qp[0]) && !ibv_destroy_qp(bed.qp[1]));
    BED_NEED(!ibv_destroy_cq(bed.cq));
    ibv_close_device(bed.context);
}

static void post_after_destroy(void)
{
    BED_NEED(!ibv_destroy_qp(bed.qp[0]));
    bed_send(&bed, 0, 512, 4);
}

static void destroy_twice(void)
{
    BED_NEED(!ibv_destroy_qp(bed.qp[0]));
    ibv_destroy_qp(bed.qp[0]);
}

static void poll_after_destroy(void)
{
    struct ibv_wc wc;

    BED_NEED(!ibv_destroy_qp(bed.qp[0]) && !ibv_destroy_qp(bed.qp[1]));
    BED_NEED(!ibv_destroy_cq(bed.cq));
    ibv_poll_cq(bed.cq, 1, &wc);
}

static const struct bed_case cases[] = {
    { "reuse-too-early", reuse_too_early },
    { "reuse-in-time", reuse_in_time },
    { "deregister-too-early", deregister_too_early },
    { "unmap-too-early", unmap_too_early },
    { "map-over-too-early", map_over_too_early },
    { "move-too-early", move_too_early },
    { "shrink-mapping", shrink_mapping },
    { "write-receive", write_receive },
    { "keep-receive", keep_receive },
    { "share-receive", share_receive },
    { "touch-receive", touch_receive },
    { "write-out-receive", write_out_receive },
    { "guard-receive", guard_receive },
    { "unmap-receive", unmap_receive },
    { "never-signal", never_signal },
    { "overrun", overrun },
    { "read-failed-completion", read_failed_completion },
    { "use-after-fork", use_after_fork },
    { "deregister-twice", deregister_twice },
    { "use-from-threads", use_from_threads },
    { "last-byte-first", last_byte_first },
    { "last-byte-first-live", last_byte_first_live },
    { "leak", leak },
    { "post-after-destroy", post_after_destroy },
    { "destroy-twice", destroy_twice },
    { "poll-after-destroy", poll_after_destroy },
    { NULL, NULL },
};

int main(int count, char **words)
{
    const struct bed_case *chosen = bed_choose(cases, count, words);

    bed_make(&bed);
    chosen->run();
    return 0;
}
