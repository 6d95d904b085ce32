/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes communicate while a third overwrites words of their segment, as a faulty peer
 * might. From then on any error is allowed, but neither process may crash or hang.
 */
#include "rig.h"

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BUF_BYTES  65536
#define DEPTH      16
#define PAIRS      3
#define RUN_US     30000
#define LIMIT_US   12000000
#define MEANINGFUL (1u << 20)

struct offer {
    struct rig_addr addr[PAIRS];
    uint64_t buf;
    uint32_t rkey;
};

struct talker {
    struct rig rig;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_qp *qp[PAIRS];
    struct ibv_mr *mr;
    uint8_t *buf;
    struct ibv_ah *ah;
    struct offer theirs;
    uint64_t dice;
};

static uint64_t roll(struct talker *talker, uint64_t sides)
{
    talker->dice = rig_mix(talker->dice);
    return talker->dice % sides;
}

static struct ibv_qp *make_qp(struct talker *talker, enum ibv_qp_type type, struct ibv_srq *srq)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = talker->cq,
        .recv_cq = talker->cq,
        .srq = srq,
        .cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 2, .max_recv_sge = 2 },
        .qp_type = type,
    };

    return ibv_create_qp(talker->rig.pd, &attr);
}

static bool talker_open(struct talker *talker, struct offer *mine)
{
    struct ibv_srq_init_attr srq = { .attr = { .max_wr = DEPTH, .max_sge = 2 } };

    if (rig_open(&talker->rig))
        return false;
    talker->buf = mmap(NULL, BUF_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    talker->cq = ibv_create_cq(talker->rig.ctx, 256, NULL, NULL, 0);
    talker->srq = ibv_create_srq(talker->rig.pd, &srq);
    talker->mr = ibv_reg_mr(talker->rig.pd, talker->buf, BUF_BYTES, RIG_ACCESS_ALL);
    if (!talker->cq || !talker->srq || !talker->mr)
        return false;
    talker->qp[0] = make_qp(talker, IBV_QPT_RC, NULL);
    talker->qp[1] = make_qp(talker, IBV_QPT_RC, talker->srq);
    talker->qp[2] = make_qp(talker, IBV_QPT_UD, NULL);
    for (int i = 0; i < PAIRS; i++) {
        if (!talker->qp[i])
            return false;
        rig_addr_of(&talker->rig, talker->qp[i], 0, &mine->addr[i]);
    }
    mine->buf = (uintptr_t)talker->buf;
    mine->rkey = talker->mr->rkey;
    return true;
}

static bool talker_connect(struct talker *talker)
{
    struct rig_timing timing = { .timeout = 6, .retry_cnt = 2, .rnr_retry = 2, .min_rnr_timer = 1 };
    struct ibv_ah_attr attr;

    rig_fill_ah(&talker->theirs.addr[2], &attr);
    talker->ah = ibv_create_ah(talker->rig.pd, &attr);
    for (int i = 0; i < PAIRS; i++)
        if (rig_qp_connect(talker->qp[i], 0, &talker->theirs.addr[i], RIG_ACCESS_ALL, &timing))
            return false;
    return talker->ah != NULL;
}

static void post_receive(struct talker *talker, int i)
{
    struct ibv_sge sge = { .addr = (uintptr_t)talker->buf,
                           .length = 8192,
                           .lkey = talker->mr->lkey };
    struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

    if (i == 1)
        ibv_post_srq_recv(talker->srq, &wr, &bad);
    else
        ibv_post_recv(talker->qp[i], &wr, &bad);
}

static void post_send(struct talker *talker, int i)
{
    static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND,       IBV_WR_SEND_WITH_IMM,
                                                  IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
                                                  IBV_WR_RDMA_READ,  IBV_WR_ATOMIC_FETCH_AND_ADD };
    static const uint32_t lengths[] = { 0, 8, 64, 1000, 8000 };
    struct ibv_sge sge = { .addr = (uintptr_t)talker->buf + 16384, .lkey = talker->mr->lkey };
    struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED };
    struct ibv_send_wr *bad;

    sge.length = lengths[roll(talker, 5)];
    wr.opcode = opcodes[roll(talker, i == 2 ? 2 : 6)];
    if (i == 2) {
        sge.length %= 1024;
        wr.wr.ud.ah = talker->ah;
        wr.wr.ud.remote_qpn = talker->theirs.addr[2].qpn;
        wr.wr.ud.remote_qkey = RIG_QKEY;
    } else if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        sge.length = 8;
        wr.wr.atomic.remote_addr = talker->theirs.buf;
        wr.wr.atomic.rkey = talker->theirs.rkey;
        wr.wr.atomic.compare_add = 1;
    } else {
        wr.wr.rdma.remote_addr = talker->theirs.buf + 32768;
        wr.wr.rdma.rkey = talker->theirs.rkey;
    }
    ibv_post_send(talker->qp[i], &wr, &bad);
}

static void make_and_end(struct talker *talker)
{
    struct ibv_cq *cq = ibv_create_cq(talker->rig.ctx, 64, NULL, NULL, 0);
    struct ibv_mr *mr = ibv_reg_mr(talker->rig.pd, talker->buf, 4096, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_qp *qp = make_qp(talker, IBV_QPT_RC, NULL);

    if (qp)
        ibv_destroy_qp(qp);
    if (mr)
        ibv_dereg_mr(mr);
    if (cq)
        ibv_destroy_cq(cq);
}

static void talk_once(struct talker *talker)
{
    struct ibv_wc wc[16];
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    int i = roll(talker, PAIRS);

    switch (roll(talker, 12)) {
    case 0:
        make_and_end(talker);
        break;
    case 1:
        ibv_query_qp(talker->qp[i], &attr, IBV_QP_STATE, &init);
        break;
    case 2:
        ibv_resize_cq(talker->cq, 256 + roll(talker, 512));
        break;
    case 3:
    case 4:
    case 5:
        post_receive(talker, i);
        break;
    case 6:
    case 7:
    case 8:
        post_send(talker, i);
        break;
    default:
        ibv_poll_cq(talker->cq, 16, wc);
    }
}

static void talk(struct talker *talker, uint64_t us)
{
    uint64_t end = rig_now_us() + us;

    while (rig_now_us() < end)
        for (int i = 0; i < 20; i++)
            talk_once(talker);
}

static void end_objects(struct talker *talker)
{
    for (int i = 0; i < PAIRS; i++)
        ibv_destroy_qp(talker->qp[i]);
    ibv_destroy_srq(talker->srq);
    ibv_destroy_ah(talker->ah);
    ibv_destroy_cq(talker->cq);
    ibv_dereg_mr(talker->mr);
    rig_close(&talker->rig);
}

/* Prints a backtrace, then crashes. */
static void report_crash(int sig)
{
    void *frames[24];

    backtrace_symbols_fd(frames, backtrace(frames, 24), STDERR_FILENO);
    signal(sig, SIG_DFL);
    raise(sig);
}

static int talker_main(int fd, uint64_t seed)
{
    static const int crashes[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL };
    struct talker talker = { .dice = seed };
    struct offer mine;
    char byte = 0;

    for (int i = 0; i < 5; i++)
        signal(crashes[i], report_crash);

    if (!talker_open(&talker, &mine) || send(fd, &mine, sizeof(mine), 0) != sizeof(mine) ||
        recv(fd, &talker.theirs, sizeof(mine), 0) != sizeof(mine) || !talker_connect(&talker))
        return 2;
    talk(&talker, 3000);
    if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1)
        return 2;
    talk(&talker, RUN_US);
    end_objects(&talker);
    return 0;
}

/* ---- the process that overwrites ---- */

struct damage {
    uint64_t *words;
    uint64_t count;
    uint64_t dice;
    bool print;
    uint32_t meaningful;
    uint32_t list[MEANINGFUL];
};

static uint64_t next_dice(struct damage *damage)
{
    return damage->dice = rig_mix(damage->dice);
}

static uint64_t bad_value(struct damage *damage, uint64_t old)
{
    uint64_t other = damage->words[next_dice(damage) % damage->count];

    switch (next_dice(damage) % 8) {
    case 0:
        return 0;
    case 1:
        return UINT64_MAX;
    case 2:
        return old ^ (1ull << next_dice(damage) % 64);
    case 3:
        return old + next_dice(damage) % 64 - 32;
    case 4:
        return other;
    case 5:
        return next_dice(damage) % 65536;
    case 6:
        return (old & 0xffffffffull) | next_dice(damage) << 32;
    default:
        return next_dice(damage);
    }
}

/* Mostly words that are in use, that is, not zero; sometimes any word. */
static void list_meaningful(struct damage *damage)
{
    damage->meaningful = 0;
    for (uint64_t i = 0; i < damage->count && damage->meaningful < MEANINGFUL; i++)
        if (damage->words[i])
            damage->list[damage->meaningful++] = i;
}

static uint64_t pick_word(struct damage *damage)
{
    if (!damage->meaningful || next_dice(damage) % 8 == 0)
        return next_dice(damage) % damage->count;
    return damage->list[next_dice(damage) % damage->meaningful];
}

static void overwrite(struct damage *damage, int words)
{
    list_meaningful(damage);
    while (words--) {
        uint64_t at = pick_word(damage);
        uint64_t old = damage->words[at];
        uint64_t bad = bad_value(damage, old);
        if (damage->print)
            printf("# offset %#llx: %#llx becomes %#llx\n", (unsigned long long)at * 8,
                   (unsigned long long)old, (unsigned long long)bad);
        damage->words[at] = bad;
    }
}

static bool map_segment(const char *fabric, struct damage *damage)
{
    char path[256];
    struct stat st;

    rig_segment_path(fabric, path, sizeof(path));
    int fd = open(path, O_RDWR);
    if (fd < 0 || fstat(fd, &st))
        return false;
    damage->count = st.st_size / 8;
    damage->words = mmap(NULL, st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return damage->words != MAP_FAILED;
}

struct trial {
    uint64_t seed;
    bool print;
    char fabric[64];
    pid_t pid[2];
    int fd[2];
    char reason[128];
};

static void start(struct trial *trial)
{
    for (int i = 0; i < 2; i++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
            perror("socketpair");
            exit(2);
        }
        trial->pid[i] = fork();
        if (trial->pid[i] == 0) {
            close(pair[0]);
            exit(talker_main(pair[1], rig_mix(trial->seed * 2 + i)));
        }
        close(pair[1]);
        trial->fd[i] = pair[0];
    }
}

/* Before the processes know of each other they have not begun to talk, so none has ended yet. */
static bool introduce(struct trial *trial, struct damage *damage)
{
    struct offer offer[2];
    char byte;

    for (int i = 0; i < 2; i++)
        if (recv(trial->fd[i], &offer[i], sizeof(offer[i]), 0) != sizeof(offer[i]))
            return false;
    if (!map_segment(trial->fabric, damage))
        return false;
    for (int i = 0; i < 2; i++)
        if (send(trial->fd[i], &offer[!i], sizeof(offer[0]), MSG_NOSIGNAL) < 0)
            return false;
    for (int i = 0; i < 2; i++)
        if (recv(trial->fd[i], &byte, 1, 0) != 1)
            return false;
    return true;
}

static void wait_both(struct trial *trial)
{
    uint64_t end = rig_now_us() + LIMIT_US;

    for (int left = 2; left;) {
        for (int i = 0; i < 2; i++) {
            int status;
            if (!trial->pid[i] || waitpid(trial->pid[i], &status, WNOHANG) <= 0)
                continue;
            trial->pid[i] = 0;
            left--;
            if (WIFSIGNALED(status) && !trial->reason[0])
                snprintf(trial->reason, sizeof(trial->reason), "a process died by signal %d (%s)",
                         WTERMSIG(status), strsignal(WTERMSIG(status)));
        }
        if (left && rig_now_us() > end) {
            if (!trial->reason[0])
                snprintf(trial->reason, sizeof(trial->reason), "%d processes hang", left);
            for (int i = 0; i < 2; i++)
                if (trial->pid[i])
                    kill(trial->pid[i], SIGABRT); /* prints where it hangs */
            usleep(100000);
            for (int i = 0; i < 2; i++)
                if (trial->pid[i])
                    kill(trial->pid[i], SIGKILL);
        }
        usleep(300);
    }
}

static bool run_trial(uint64_t seed, int number, bool print)
{
    struct trial trial = { .seed = seed, .print = print };
    static struct damage damage;
    char path[256];

    damage.dice = rig_mix(seed ^ 0x64616d616765ull);
    damage.print = print;
    snprintf(trial.fabric, sizeof(trial.fabric), "broken-%d-%d", getpid(), number);
    setenv("VERBENA_FABRIC", trial.fabric, 1);
    fflush(NULL);
    start(&trial);
    if (!introduce(&trial, &damage)) {
        snprintf(trial.reason, sizeof(trial.reason), "the processes did not get to talk");
    } else {
        int words = 1 << next_dice(&damage) % 7;
        for (int burst = 0; burst < 4; burst++) {
            overwrite(&damage, (words + 3) / 4);
            usleep(next_dice(&damage) % 5000);
        }
        munmap(damage.words, damage.count * 8);
    }
    wait_both(&trial);
    close(trial.fd[0]);
    close(trial.fd[1]);
    rig_segment_path(trial.fabric, path, sizeof(path));
    unlink(path);
    if (trial.reason[0])
        printf("FAIL segment-%d: %s (seed %llu)\n", number, trial.reason, (unsigned long long)seed);
    fflush(stdout);
    return !trial.reason[0];
}

int main(int argc, char **argv)
{
    static const struct option names[] = {
        { "seed", required_argument, NULL, 's' },
        { "trials", required_argument, NULL, 't' },
        { "seconds", required_argument, NULL, 'd' },
        { "print", no_argument, NULL, 'p' },
        { NULL, 0, NULL, 0 },
    };
    uint64_t seed = time(NULL) * 1000003ull + getpid();
    int trials = 1, failed = 0, done = 0, c;
    unsigned seconds = 3600;
    bool print = false;

    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (c == 's')
            seed = strtoull(optarg, NULL, 0);
        else if (c == 't')
            trials = atoi(optarg);
        else if (c == 'd')
            seconds = atoi(optarg);
        else if (c == 'p')
            print = true;
        else
            return 2;
    }
    setenv("VERBENA_LOG", "error", 0);
    printf("# seed %llu\n", (unsigned long long)seed);
    uint64_t end = rig_now_us() + seconds * 1000000ull;
    for (; done < trials && rig_now_us() < end; done++)
        failed += !run_trial(seed + done, done, print);
    printf("%s corrupted-segment (%d trials, seed %llu)\n", failed ? "# failed" : "ok", done,
           (unsigned long long)seed);
    printf("%d passed, %d failed\n", failed ? 0 : 1, failed);
    return failed ? 1 : 0;
}
