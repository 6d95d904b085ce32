/* SPDX-License-Identifier: BSD-2-Clause */
#include "cases.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum task { IDLE, CONNECT, OPERATE, USE, WRITE_ON, ANSWERED };

#define USES 200 /* of one page: an exchange costs as much as thirty copies */

/* Shared by owner and peer. */
struct desk {
    atomic_int task;
    struct rig_addr owner, peer;
    atomic_int peer_ready;
    enum ibv_wr_opcode opcode;
    uint64_t at, value;
    uint32_t key;
    enum ibv_wc_status status;
    atomic_int stopped;
};

struct rig owner;
pid_t peer_pid;
void (*peer_prepare)(void);
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct desk *desk;

/* ---- queue pairs ---- */

static void make_qp(struct rig *rig)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
        .cap = { .max_send_wr = 8, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
    };

    if (qp)
        ibv_destroy_qp(qp);
    qp = ibv_create_qp(rig->pd, &init);
    CHECK(qp, "ibv_create_qp: %s", strerror(errno));
}

static void open_rig(struct rig *rig)
{
    int err = rig_open(rig);

    CHECK(!err, "rig_open: %s", strerror(err));
    cq = ibv_create_cq(rig->ctx, 16, NULL, NULL, 0);
    CHECK(cq, "ibv_create_cq: %s", strerror(errno));
}

/* ---- the peer ---- */

static enum ibv_wc_status operate(struct ibv_mr *mr, uint64_t *word)
{
    struct ibv_sge sge = { (uintptr_t)word, 8, mr->lkey };
    struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = desk->opcode };
    struct ibv_wc wc = { .status = IBV_WC_GENERAL_ERR };

    if (desk->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = desk->at;
        wr.wr.atomic.rkey = desk->key;
        wr.wr.atomic.compare_add = desk->value;
    } else {
        wr.wr.rdma.remote_addr = desk->at;
        wr.wr.rdma.rkey = desk->key;
        *word = desk->value;
    }
    CHECK_INT(ibv_post_send(qp, &wr, &bad), 0);
    CHECK_INT(rig_poll(cq, &wc, 5000), 1);
    desk->value = *word;
    return wc.status;
}

static void work(struct rig *rig, struct ibv_mr *mr, uint64_t *word, int task)
{
    switch (task) {
    case CONNECT:
        make_qp(rig);
        rig_addr_of(rig, qp, 0, &desk->peer);
        atomic_store(&desk->peer_ready, 1);
        while (atomic_load(&desk->peer_ready) != 2)
            sched_yield();
        CHECK_INT(rig_qp_connect(qp, 0, &desk->owner, RIG_ACCESS_ALL, &rig_patient), 0);
        break;
    case OPERATE:
        desk->status = operate(mr, word);
        break;
    case USE:
        for (int i = 0; i < USES; i++)
            CHECK_INT(desk->status = operate(mr, word), IBV_WC_SUCCESS);
        break;
    case WRITE_ON:
        atomic_store(&desk->task, ANSWERED);
        desk->opcode = IBV_WR_RDMA_WRITE;
        do
            desk->value++;
        while (!(desk->status = operate(mr, word)));
        atomic_store(&desk->stopped, 1);
        return;
    }
    atomic_store(&desk->task, ANSWERED);
}

static void be_peer(const char *way)
{
    static uint64_t word;
    struct rig rig;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("VERBENA_MR", way, 1);
    if (peer_prepare)
        peer_prepare();
    open_rig(&rig);
    struct ibv_mr *mr = ibv_reg_mr(rig.pd, &word, 8, IBV_ACCESS_LOCAL_WRITE);
    CHECK(mr, "ibv_reg_mr: %s", strerror(errno));
    for (;;) {
        int task = atomic_load(&desk->task);
        if (task == IDLE || task == ANSWERED)
            usleep(20);
        else
            work(&rig, mr, &word, task);
    }
}

/* ---- commands to the peer ---- */

static void ask(int task)
{
    atomic_store(&desk->task, task);
}

static void await_answer(void)
{
    while (atomic_load(&desk->task) != ANSWERED) {
        CHECK(!waitpid(peer_pid, NULL, WNOHANG), "the peer has ended");
        usleep(10);
    }
}

static enum ibv_wc_status ask_operation(enum ibv_wr_opcode opcode, const void *at, uint32_t key,
                                        uint64_t *value)
{
    desk->opcode = opcode;
    desk->at = (uintptr_t)at;
    desk->key = key;
    desk->value = *value;
    ask(OPERATE);
    await_answer();
    *value = desk->value;
    return desk->status;
}

enum ibv_wc_status peer_write(const void *at, uint32_t key, uint64_t value)
{
    return ask_operation(IBV_WR_RDMA_WRITE, at, key, &value);
}

enum ibv_wc_status peer_read(const void *at, uint32_t key, uint64_t *value)
{
    return ask_operation(IBV_WR_RDMA_READ, at, key, value);
}

enum ibv_wc_status peer_add(const void *at, uint32_t key, uint64_t more)
{
    return ask_operation(IBV_WR_ATOMIC_FETCH_AND_ADD, at, key, &more);
}

void peer_use(const void *at, uint32_t key, uint64_t value)
{
    uint64_t seen;

    desk->opcode = IBV_WR_RDMA_WRITE;
    desk->at = (uintptr_t)at;
    desk->key = key;
    desk->value = value;
    ask(USE);
    await_answer();
    CHECK_INT(peer_read(at, key, &seen), IBV_WC_SUCCESS);
    CHECK_INT(seen, value);
}

void peer_write_on(const void *at, uint32_t key)
{
    desk->at = (uintptr_t)at;
    desk->key = key;
    desk->value = 0;
    atomic_store(&desk->stopped, 0);
    ask(WRITE_ON);
    await_answer();
}

enum ibv_wc_status peer_stopped(void)
{
    for (int i = 0; i < 50000 && !atomic_load(&desk->stopped); i++)
        usleep(100);
    CHECK(atomic_load(&desk->stopped), "the peer goes on");
    return desk->status;
}

#define REGION_FILE "memfd:verbena-region"

static unsigned count_mappings(pid_t pid, const char *name, const char *rights, uintptr_t covering)
{
    unsigned long start, end;
    char path[64], line[512], has[8];
    unsigned count = 0;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "r");
    CHECK(maps, "%s: %s", path, strerror(errno));
    while (fgets(line, sizeof(line), maps))
        if (sscanf(line, "%lx-%lx %7s", &start, &end, has) == 3 &&
            strstr(line, name) && (!rights || !strcmp(has, rights)) &&
            (!covering || (covering >= start && covering < end)))
            count++;
    fclose(maps);
    return count;
}

unsigned peer_mappings(const char *rights)
{
    return count_mappings(peer_pid, REGION_FILE, rights, 0);
}

bool peer_attached(void)
{
    return count_mappings(peer_pid, "/SYSV", NULL, 0);
}

bool is_exchanged(const void *at)
{
    return count_mappings(getpid(), REGION_FILE, NULL, (uintptr_t)at);
}

/* ---- the owner ---- */

void owner_reconnect(void)
{
    ask(CONNECT);
    make_qp(&owner);
    rig_addr_of(&owner, qp, 0, &desk->owner);
    while (atomic_load(&desk->peer_ready) != 1)
        sched_yield();
    atomic_store(&desk->peer_ready, 2);
    CHECK_INT(rig_qp_connect(qp, 0, &desk->peer, RIG_ACCESS_ALL, &rig_patient), 0);
    await_answer();
    atomic_store(&desk->peer_ready, 0);
}

void owner_open(const char *own_way, const char *peer_way)
{
    desk = mmap(NULL, sizeof(*desk), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(desk != MAP_FAILED, "mmap: %s", strerror(errno));
    peer_pid = fork();
    CHECK(peer_pid >= 0, "fork: %s", strerror(errno));
    if (!peer_pid)
        be_peer(peer_way);
    setenv("VERBENA_MR", own_way, 1);
    open_rig(&owner);
    owner_reconnect();
}

static uint8_t pattern(size_t i)
{
    return i * 7 + i / PAGE + 3;
}

uint8_t *fresh_pages(size_t pages)
{
    uint8_t *memory =
        mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(memory != MAP_FAILED, "mmap: %s", strerror(errno));
    for (size_t i = 0; i < pages * PAGE; i++)
        memory[i] = pattern(i);
    return memory;
}

bool has_pattern(const uint8_t *memory, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (memory[i] != pattern(i))
            return false;
    return true;
}

struct ibv_mr *must_register(void *memory, size_t bytes, int access)
{
    struct ibv_mr *mr = ibv_reg_mr(owner.pd, memory, bytes, access);

    CHECK(mr, "ibv_reg_mr: %s", strerror(errno));
    return mr;
}

void check_both_ways(uint8_t *memory, uint32_t key)
{
    volatile uint64_t *words = (volatile uint64_t *)memory;
    uint64_t keep[2] = { words[0], words[1] }, seen = 0;

    CHECK_INT(peer_write(memory, key, 0x1122334455667788), IBV_WC_SUCCESS);
    CHECK_INT(words[0], 0x1122334455667788);
    words[1] = 0x99;
    CHECK_INT(peer_read(memory + 8, key, &seen), IBV_WC_SUCCESS);
    CHECK_INT(seen, 0x99);
    CHECK_INT(peer_add(memory + 8, key, 1), IBV_WC_SUCCESS);
    CHECK_INT(words[1], 0x9a);
    words[0] = keep[0];
    words[1] = keep[1];
}

/* ---- running the cases ---- */

/* The peer ends first, so that the owner leaves last and cleans up. */
static void run(const void *argument)
{
    const struct mapped_case *c = argument;

    c->run();
    if (peer_pid > 0) {
        kill(peer_pid, SIGKILL);
        waitpid(peer_pid, NULL, 0);
    }
}

int main(int argc, char **argv)
{
    const struct mapped_case *const tables[] = { program_cases, memory_cases, use_cases };
    bool good = true;

    for (int t = 0; t < 3; t++)
        for (const struct mapped_case *c = tables[t]; c->name; c++)
            if (argc < 2 || !strcmp(argv[1], c->name))
                good &= case_run(c->name, run, c) != CASE_FAILED;
    return good ? 0 : 1;
}
