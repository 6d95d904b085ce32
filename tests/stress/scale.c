/* SPDX-License-Identifier: BSD-2-Clause */
/* Hundreds of processes, ten thousand connected queue pairs, a million memory regions. */
#include "rig.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_CROWD     1024
#define MAX_QPS       20000
#define SEND_DEPTH    128
#define RECV_DEPTH    128
#define SEGMENT_LIMIT (4ull << 30)

struct stage {
    _Atomic unsigned arrived[8];
    _Atomic int failed;
    char report[256];
    struct rig_addr addr[2][MAX_QPS];
    uint64_t segment_before;
    uint64_t segment_after;
};

static struct stage *stage;
static pid_t children[MAX_CROWD];
static char fabric[64];

static void give_up(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
static void give_up(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    if (!atomic_exchange(&stage->failed, 1))
        vsnprintf(stage->report, sizeof(stage->report), fmt, args);
    va_end(args);
    _exit(1);
}

static void meet(int point, unsigned crowd)
{
    atomic_fetch_add(&stage->arrived[point], 1);
    while (atomic_load(&stage->arrived[point]) < crowd) {
        if (atomic_load(&stage->failed))
            _exit(1);
        usleep(500);
    }
}

static uint64_t segment_bytes(void)
{
    char path[256];
    struct stat st;

    rig_segment_path(fabric, path, sizeof(path));
    return stat(path, &st) ? 0 : st.st_blocks * 512ull;
}

static struct ibv_qp *make_qp(struct rig *rig, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = { .max_send_wr = SEND_DEPTH,
                 .max_recv_wr = RECV_DEPTH,
                 .max_send_sge = 1,
                 .max_recv_sge = 1 },
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_qp *qp = ibv_create_qp(rig->pd, &attr);

    if (!qp)
        give_up("ibv_create_qp: %s", strerror(errno));
    return qp;
}

static void send_word(struct ibv_qp *qp, struct ibv_mr *mr, uint64_t *word)
{
    struct ibv_sge sge = { .addr = (uintptr_t)word, .length = 8, .lkey = mr->lkey };
    struct ibv_send_wr wr = { .wr_id = 1,
                              .sg_list = &sge,
                              .num_sge = 1,
                              .opcode = IBV_WR_SEND,
                              .send_flags = IBV_SEND_SIGNALED };
    struct ibv_send_wr *bad;
    int err = ibv_post_send(qp, &wr, &bad);

    if (err)
        give_up("ibv_post_send: %s", strerror(err));
}

static void post_word(struct ibv_qp *qp, struct ibv_mr *mr, uint64_t *word)
{
    struct ibv_sge sge = { .addr = (uintptr_t)word, .length = 8, .lkey = mr->lkey };
    struct ibv_recv_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 }, *bad;
    int err = ibv_post_recv(qp, &wr, &bad);

    if (err)
        give_up("ibv_post_recv: %s", strerror(err));
}

static void expect_completions(struct ibv_cq *cq, int count)
{
    struct ibv_wc wc;

    while (count--) {
        if (rig_poll(cq, &wc, 30000) != 1)
            give_up("no completion within 30 s");
        if (wc.status != IBV_WC_SUCCESS)
            give_up("completed with %s", ibv_wc_status_str(wc.status));
    }
}

static void crowd_member(int me, int crowd)
{
    uint64_t words[2] = { rig_mix(me), 0 };
    struct rig rig;
    int left = (me + crowd - 1) % crowd;
    int right = (me + 1) % crowd;
    int err = rig_open(&rig);

    if (err)
        give_up("process %d cannot open the device: %s", me, strerror(err));
    struct ibv_cq *cq = ibv_create_cq(rig.ctx, 16, NULL, NULL, 0);
    struct ibv_mr *mr = ibv_reg_mr(rig.pd, words, sizeof(words), IBV_ACCESS_LOCAL_WRITE);
    if (!cq || !mr)
        give_up("process %d has no CQ or MR: %s", me, strerror(errno));
    struct ibv_qp *to_right = make_qp(&rig, cq);
    struct ibv_qp *to_left = make_qp(&rig, cq);
    rig_addr_of(&rig, to_right, 0, &stage->addr[0][me]);
    rig_addr_of(&rig, to_left, 0, &stage->addr[1][me]);
    meet(0, crowd);
    if (rig_qp_connect(to_right, 0, &stage->addr[1][right], 0, &rig_patient) ||
        rig_qp_connect(to_left, 0, &stage->addr[0][left], 0, &rig_patient))
        give_up("process %d cannot connect", me);
    post_word(to_left, mr, &words[1]);
    meet(1, crowd);
    send_word(to_right, mr, &words[0]);
    expect_completions(cq, 2);
    if (words[1] != rig_mix(left))
        give_up("process %d received the wrong word", me);
    meet(2, crowd);
    if (ibv_destroy_qp(to_right) || ibv_destroy_qp(to_left) || ibv_destroy_cq(cq) ||
        ibv_dereg_mr(mr) || rig_close(&rig))
        give_up("process %d cannot clean up", me);
}

static void connect_many(struct rig *rig, struct ibv_cq *cq, struct ibv_qp **qp, int me, int pairs)
{
    for (int i = 0; i < pairs; i++) {
        qp[i] = make_qp(rig, cq);
        rig_addr_of(rig, qp[i], 0, &stage->addr[me][i]);
    }
    meet(1, 2);
    for (int i = 0; i < pairs; i++) {
        int err = rig_qp_connect(qp[i], 0, &stage->addr[!me][i], 0, &rig_patient);
        if (err)
            give_up("connecting queue pair %d: %s", i, strerror(err));
    }
    meet(2, 2);
}

static void qp_holder(int me, int pairs)
{
    uint64_t words[2] = { 0, 0 };
    struct rig rig;
    int err = rig_open(&rig);

    if (err)
        give_up("cannot open the device: %s", strerror(err));
    struct ibv_cq *cq = ibv_create_cq(rig.ctx, 4096, NULL, NULL, 0);
    struct ibv_mr *mr = ibv_reg_mr(rig.pd, words, sizeof(words), IBV_ACCESS_LOCAL_WRITE);
    struct ibv_qp **qp = calloc(pairs, sizeof(*qp));
    if (!cq || !mr || !qp)
        give_up("no CQ, MR or memory: %s", strerror(errno));
    meet(0, 2);
    if (me == 0)
        stage->segment_before = segment_bytes();
    connect_many(&rig, cq, qp, me, pairs);
    if (me == 0)
        stage->segment_after = segment_bytes();
    for (int i = 0; i < pairs; i += pairs / 50) {
        words[0] = rig_mix(i * 2 + me);
        post_word(qp[i], mr, &words[1]);
        send_word(qp[i], mr, &words[0]);
        expect_completions(cq, 2);
        if (words[1] != rig_mix(i * 2 + !me))
            give_up("queue pair %d received the wrong word", i);
    }
    meet(3, 2);
    for (int i = 0; i < pairs; i++)
        if (ibv_destroy_qp(qp[i]))
            give_up("ibv_destroy_qp");
    free(qp);
    if (ibv_destroy_cq(cq) || ibv_dereg_mr(mr) || rig_close(&rig))
        give_up("cannot clean up");
}

static int compare_keys(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static void check_distinct(struct ibv_mr **mr, int count)
{
    uint32_t *keys = malloc(count * sizeof(*keys));

    if (!keys)
        give_up("no memory");
    for (int i = 0; i < count; i++)
        keys[i] = mr[i]->rkey;
    qsort(keys, count, sizeof(*keys), compare_keys);
    for (int i = 1; i < count; i++)
        if (keys[i] == keys[i - 1])
            give_up("two live regions share key %#x", keys[i]);
    free(keys);
}

static void read_through(struct ibv_qp *qp, struct ibv_cq *cq, struct ibv_mr *from,
                         struct ibv_mr *into, uint64_t *word, enum ibv_wc_status expected)
{
    struct ibv_sge sge = { .addr = (uintptr_t)word, .length = 8, .lkey = into->lkey };
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED
    };
    struct ibv_send_wr *bad;
    struct ibv_wc wc;

    wr.wr.rdma.remote_addr = (uintptr_t)from->addr;
    wr.wr.rdma.rkey = from->rkey;
    if (ibv_post_send(qp, &wr, &bad) || rig_poll(cq, &wc, 10000) != 1)
        give_up("no completion of a read");
    if (wc.status != expected)
        give_up("a read gave %s", ibv_wc_status_str(wc.status));
}

static void mr_holder(int me, int count)
{
    static uint64_t target[1024];
    uint64_t word = 0;
    struct rig rig;
    struct rig_addr self;
    struct ibv_mr **mr = calloc(count, sizeof(*mr));

    if (!mr || rig_open(&rig))
        give_up("cannot open the device");
    struct ibv_cq *cq = ibv_create_cq(rig.ctx, 16, NULL, NULL, 0);
    struct ibv_qp *qp = make_qp(&rig, cq);
    struct ibv_mr *word_mr = ibv_reg_mr(rig.pd, &word, sizeof(word), IBV_ACCESS_LOCAL_WRITE);
    rig_addr_of(&rig, qp, 0, &self);
    if (!word_mr || rig_qp_connect(qp, 0, &self, IBV_ACCESS_REMOTE_READ, &rig_patient))
        give_up("cannot connect a queue pair with itself");
    for (int i = 0; i < 1024; i++)
        target[i] = rig_mix(i);
    for (int i = 0; i < count; i++) {
        mr[i] = ibv_reg_mr(rig.pd, &target[i % 1024], 8, IBV_ACCESS_REMOTE_READ);
        if (!mr[i])
            give_up("ibv_reg_mr number %d: %s", i, strerror(errno));
    }
    check_distinct(mr, count);
    for (int i = 0; i < count; i += count / 100) {
        read_through(qp, cq, mr[i], word_mr, &word, IBV_WC_SUCCESS);
        if (word != rig_mix(i % 1024))
            give_up("region %d gave the wrong word", i);
    }
    struct ibv_mr gone = *mr[count / 2];
    for (int i = 0; i < count; i++)
        if (ibv_dereg_mr(mr[i]))
            give_up("ibv_dereg_mr number %d", i);
    read_through(qp, cq, &gone, word_mr, &word, IBV_WC_REM_ACCESS_ERR);
    free(mr);
    if (ibv_destroy_qp(qp) || ibv_destroy_cq(cq) || ibv_dereg_mr(word_mr) || rig_close(&rig))
        give_up("cannot clean up");
}

static void report_segment(char *note, size_t size)
{
    uint64_t grown = stage->segment_after - stage->segment_before;

    snprintf(note, size, "%llu bytes of shared memory, %llu per idle connected QP, send %d recv %d",
             (unsigned long long)stage->segment_after, (unsigned long long)(grown / 10000),
             SEND_DEPTH, RECV_DEPTH);
    if (stage->segment_after >= SEGMENT_LIMIT && !atomic_exchange(&stage->failed, 1))
        snprintf(stage->report, sizeof(stage->report), "%llu bytes of shared memory",
                 (unsigned long long)stage->segment_after);
}

struct scale_case {
    const char *name;
    void (*body)(int me, int argument);
    int processes;
    int argument;
    void (*report)(char *note, size_t size);
};

static const struct scale_case cases[] = {
    { "processes-200", crowd_member, 200, 200, NULL },
    { "connected-qps-10000", qp_holder, 2, 5000, report_segment },
    { "mrs-1000000", mr_holder, 1, 1000000, NULL },
};

static void forget_child(pid_t pid)
{
    for (int i = 0; i < MAX_CROWD; i++)
        if (children[i] == pid)
            children[i] = 0;
}

static void wait_children(int count, int limit_s)
{
    uint64_t end = rig_now_us() + limit_s * 1000000ull;
    bool late = false;

    while (count) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid > 0) {
            count--;
            forget_child(pid);
            if (WIFSIGNALED(status) && !atomic_exchange(&stage->failed, 1))
                snprintf(stage->report, sizeof(stage->report), "died by signal %d",
                         WTERMSIG(status));
        } else if (!late && rig_now_us() > end) {
            late = true;
            if (!atomic_exchange(&stage->failed, 1))
                snprintf(stage->report, sizeof(stage->report), "%d processes hang after %d s",
                         count, limit_s);
        } else if (late && rig_now_us() > end + 3000000) {
            for (int i = 0; i < MAX_CROWD; i++)
                if (children[i])
                    kill(children[i], SIGKILL);
        }
        usleep(1000);
    }
}

static bool run_case(const struct scale_case *one)
{
    char path[256];
    char note[256] = "";
    uint64_t start = rig_now_us();

    memset(stage, 0, sizeof(*stage));
    snprintf(fabric, sizeof(fabric), "scale-%d-%s", getpid(), one->name);
    setenv("VERBENA_FABRIC", fabric, 1);
    fflush(NULL);
    for (int p = 0; p < one->processes; p++) {
        pid_t pid = fork();
        children[p] = pid;
        if (pid == 0) {
            one->body(p, one->argument);
            exit(0);
        }
        if (pid < 0) {
            perror("fork");
            exit(2);
        }
    }
    wait_children(one->processes, 60);
    if (one->report)
        one->report(note, sizeof(note));
    rig_segment_path(fabric, path, sizeof(path));
    if (!unlink(path) && !stage->failed) {
        stage->failed = 1;
        snprintf(stage->report, sizeof(stage->report), "segment left behind");
    }
    if (stage->failed)
        printf("FAIL %s: %s\n", one->name, stage->report);
    else
        printf("ok %s (%s%s%.1f s)\n", one->name, note, note[0] ? ", " : "",
               (rig_now_us() - start) / 1e6);
    fflush(stdout);
    return !stage->failed;
}

int main(int argc, char **argv)
{
    int passed = 0, failed = 0;

    stage = mmap(NULL, sizeof(*stage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (stage == MAP_FAILED) {
        perror("mmap");
        return 2;
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (argc > 1 && strcmp(argv[1], cases[i].name))
            continue;
        if (run_case(&cases[i]))
            passed++;
        else
            failed++;
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed ? 1 : 0;
}
