/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Concurrent accesses to registered memory: threads, the kernel on behalf of a thread, and peers
 * that map or copy write to their own words, while ranges of the memory are registered, exchanged
 * and deregistered, and children are forked. Every word must have the value that its writer wrote
 * last.
 *
 * Rounds of some milliseconds, each on fresh memory, because a page is exchanged only once.
 */

#include "rig.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE             4096
#define PAGES            48
#define AREA             ((size_t)PAGES * PAGE)
#define WORDS            (AREA / 8)
#define RANGES           6
#define BATCH            2000 /* stores between two checks for a pause */
#define STEPS            40   /* registrations in a round */
#define RESPONSE_SECONDS 20

/* The writer of a word is its number modulo WRITERS. */
enum writer { THREAD_A, THREAD_B, KERNEL, MAPPER, COPIER, SUM, SENTINEL, NOBODY, WRITERS };

enum phase { PAUSE, RUN, STOP };

/* A region that peers may use after they have incremented `users`. */
struct range {
    _Atomic uint32_t key; /* 0: none */
    atomic_uint users;
    uint64_t start, length;
};

struct control {
    _Atomic uint32_t phase;
    atomic_uint pauses, idle; /* number of pauses, and of writers that have seen the last one */
    atomic_uint failures;
    uint64_t area;
    uint32_t
        base_key; /* of all of it, but for the first word: not page-aligned, so never exchanged */
    struct range ranges[RANGES];
    struct rig_addr owner[2], peer[2];
    atomic_uint ready;
    _Atomic uint64_t writes[WRITERS], sums[2];
    uint64_t expected[WORDS];
    _Atomic uint64_t added[WORDS];
};

static struct control *control;
static uint64_t seed;

static void report_mismatch(const char *who, unsigned word, uint64_t is, uint64_t want)
{
    if (atomic_fetch_add(&control->failures, 1) < 5) {
        printf("# %s: word %u of page %u is %lu, not %lu\n", who, word % 512, word / 512,
               (unsigned long)is, (unsigned long)want);
        fflush(stdout);
    }
}

static uint64_t next_random(uint64_t *state)
{
    return rig_mix(*state += 0x9e3779b97f4a7c15ull);
}

static unsigned own_word(uint64_t *random, enum writer writer)
{
    return next_random(random) % (WORDS / WRITERS) * WRITERS + writer;
}

/* Waits for the end of a pause; false: the test is over. */
static bool may_write(void)
{
    static _Thread_local unsigned seen;
    uint32_t phase = atomic_load(&control->phase);

    if (phase == RUN) {
        usleep(1); /* there are more writers than processors */
        return true;
    }
    for (; phase == PAUSE; phase = atomic_load(&control->phase)) {
        unsigned pause = atomic_load(&control->pauses);
        if (pause != seen) { /* it may have missed a whole round */
            seen = pause;
            atomic_fetch_add(&control->idle, 1);
        }
        usleep(50);
    }
    return phase == RUN;
}

/* ---- writers in the owner ---- */

static void *write_by_stores(void *argument)
{
    enum writer writer = (enum writer)(uintptr_t)argument;
    uint64_t random = seed + writer;

    while (may_write()) {
        volatile uint64_t *area = (volatile uint64_t *)control->area;
        for (int i = 0; i < BATCH; i++) {
            unsigned w = own_word(&random, writer);
            if (area[w] != control->expected[w])
                report_mismatch("thread", w, area[w], control->expected[w]);
            area[w] = ++control->expected[w];
        }
        atomic_fetch_add(&control->writes[writer], BATCH);
    }
    return NULL;
}

static void *write_by_kernel(void *argument)
{
    uint64_t random = seed + KERNEL;
    int ends[2];

    if (pipe(ends)) {
        perror("pipe");
        exit(1);
    }
    while (may_write()) {
        uint64_t *area = (uint64_t *)control->area;
        for (int i = 0; i < 20; i++) {
            unsigned w = own_word(&random, KERNEL);
            uint64_t value = ++control->expected[w];
            if (write(ends[1], &value, 8) != 8 || read(ends[0], &area[w], 8) != 8)
                report_mismatch(strerror(errno), w, 0, value);
            if (area[w] != value)
                report_mismatch("kernel", w, area[w], value);
        }
        atomic_fetch_add(&control->writes[KERNEL], 20);
    }
    return argument;
}

/* Allocates and frees blocks of all sizes next to it, some of them registered. */
static void *churn(void *argument)
{
    struct ibv_pd *pd = argument;
    uint64_t random = seed + 99;

    while (may_write()) {
        size_t size = 1 + next_random(&random) % (6 * PAGE);
        char *block = NULL, fill = (char)next_random(&random);
        struct ibv_mr *mr = NULL;
        if (posix_memalign((void **)&block, next_random(&random) % 2 ? PAGE : 64, size))
            continue;
        memset(block, fill, size);
        if (next_random(&random) % 2)
            mr = ibv_reg_mr(pd, block, size, RIG_ACCESS_ALL);
        for (size_t i = 0; i < size; i += 61)
            if (block[i] != fill)
                report_mismatch("allocator", 0, block[i], fill);
        if (mr)
            ibv_dereg_mr(mr);
        if (next_random(&random) % 2 && (block = realloc(block, size * 3)) &&
            block[size - 1] != fill)
            report_mismatch("realloc", 0, block[size - 1], fill);
        free(block);
    }
    return NULL;
}

/* ---- peers ---- */

struct peer {
    struct rig rig;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint64_t *word;
};

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
        .cap = { .max_send_wr = 8, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
    };

    return ibv_create_qp(pd, &init);
}

static bool operate(struct peer *p, enum ibv_wr_opcode opcode, unsigned word, uint32_t key)
{
    struct ibv_sge sge = { (uintptr_t)p->word, 8, p->mr->lkey };
    struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode };
    struct ibv_wc wc;
    uint64_t at = control->area + 8ull * word;

    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = at;
        wr.wr.atomic.rkey = key;
        wr.wr.atomic.compare_add = 1;
    } else {
        wr.wr.rdma.remote_addr = at;
        wr.wr.rdma.rkey = key;
    }
    if (ibv_post_send(p->qp, &wr, &bad) || rig_poll(p->cq, &wc, RESPONSE_SECONDS * 1000) != 1 ||
        wc.status != IBV_WC_SUCCESS) {
        printf("# opcode %d failed: %s\n", opcode, ibv_wc_status_str(wc.status));
        fflush(stdout);
        atomic_fetch_add(&control->failures, 1);
        return false;
    }
    return true;
}

/* A key that is valid for the word until it is returned. */
static struct range *borrow(uint64_t *random, unsigned word, uint32_t *key)
{
    struct range *r = &control->ranges[next_random(random) % RANGES];
    uint64_t at = control->area + 8ull * word;

    *key = control->base_key;
    if (next_random(random) % 4 == 0)
        return NULL;
    atomic_fetch_add(&r->users, 1);
    uint32_t offered = atomic_load(&r->key);
    if (offered && at >= r->start && at + 8 <= r->start + r->length) {
        *key = offered;
        return r;
    }
    atomic_fetch_sub(&r->users, 1);
    return NULL;
}

static bool step(struct peer *p, enum writer writer, uint64_t *random)
{
    bool add = next_random(random) % 4 == 0;
    unsigned w = own_word(random, add ? SUM : writer);
    uint32_t key;
    struct range *r;
    bool good = true;

    if (!w) /* not in the region with base_key */
        return true;
    r = borrow(random, w, &key);
    if (add) {
        good = operate(p, IBV_WR_ATOMIC_FETCH_AND_ADD, w, key);
        atomic_fetch_add(&control->added[w], 1);
    } else {
        good = operate(p, IBV_WR_RDMA_READ, w, key);
        if (good && *p->word != control->expected[w])
            report_mismatch("peer", w, *p->word, control->expected[w]);
        *p->word = ++control->expected[w];
        good = good && operate(p, IBV_WR_RDMA_WRITE, w, key);
    }
    if (r)
        atomic_fetch_sub(&r->users, 1);
    atomic_fetch_add(&control->writes[add ? SUM : writer], 1);
    return good;
}

static void meet(struct ibv_qp *qp, const struct rig *rig, struct rig_addr *mine,
                 const struct rig_addr *theirs, unsigned everybody)
{
    rig_addr_of(rig, qp, 0, mine);
    atomic_fetch_add(&control->ready, 1);
    while (atomic_load(&control->ready) < everybody)
        usleep(100);
    if (rig_qp_connect(qp, 0, theirs, RIG_ACCESS_ALL, &rig_patient)) {
        printf("FAIL torture: cannot connect\n");
        exit(1);
    }
}

static int be_peer(unsigned number)
{
    enum writer writer = number ? COPIER : MAPPER;
    uint64_t random = seed + 1000 + number;
    struct peer p = { 0 };

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("VERBENA_MR", number ? "copy" : "share", 1);
    if (rig_open(&p.rig))
        return 1;
    p.cq = ibv_create_cq(p.rig.ctx, 16, NULL, NULL, 0);
    p.qp = make_qp(p.rig.pd, p.cq);
    p.word = calloc(1, 8);
    p.mr = ibv_reg_mr(p.rig.pd, p.word, 8, IBV_ACCESS_LOCAL_WRITE);
    if (!p.qp || !p.mr)
        return 1;
    meet(p.qp, &p.rig, &control->peer[number], &control->owner[number], 3);
    while (may_write())
        for (int i = 0; i < 20; i++)
            if (!step(&p, writer, &random))
                return 1;
    return 0;
}

/* ---- the owner: registers, forks, and checks ---- */

struct owner {
    struct rig rig;
    uint64_t random;
    struct ibv_mr *base, *mrs[RANGES];
    uint64_t registrations, forks;
    bool by_use; /* VERBENA_MR=auto: memory is exchanged when peers have used it */
};

static void withdraw(struct owner *o, unsigned i)
{
    struct range *r = &control->ranges[i];

    if (!o->mrs[i])
        return;
    atomic_store(&r->key, 0);
    while (atomic_load(&r->users))
        sched_yield();
    if (ibv_dereg_mr(o->mrs[i]))
        report_mismatch("ibv_dereg_mr", 0, 0, 0);
    o->mrs[i] = NULL;
}

/* Any range of pages: it may overlap or adjoin others, or have been registered before. */
static void offer(struct owner *o, unsigned i)
{
    struct range *r = &control->ranges[i];
    unsigned first = next_random(&o->random) % PAGES;
    unsigned pages = 1 + next_random(&o->random) % 8;

    if (pages > PAGES - first)
        pages = PAGES - first;
    while (atomic_load(&r->users)) /* peers that found no key */
        sched_yield();
    r->start = control->area + (uint64_t)first * PAGE;
    r->length = (uint64_t)pages * PAGE;
    o->mrs[i] = ibv_reg_mr(o->rig.pd, (void *)r->start, r->length, RIG_ACCESS_ALL);
    if (!o->mrs[i]) {
        report_mismatch("ibv_reg_mr", 0, errno, 0);
        return;
    }
    o->registrations++;
    atomic_store(&r->key, o->mrs[i]->rkey);
}

/* The child has a private copy of the memory at the fork. */
static int be_child(void)
{
    volatile uint64_t *area = (volatile uint64_t *)control->area;
    static uint64_t before[WORDS];

    for (unsigned w = 0; w < WORDS; w++)
        before[w] = area[w];
    usleep(300);
    for (unsigned w = 0; w < WORDS; w++) {
        if (area[w] != before[w])
            return 2;
        if (w % WRITERS == SENTINEL && area[w] != control->expected[w])
            return 3;
        area[w] = ~0ull;
    }
    return 0;
}

static void fork_child(struct owner *o)
{
    uint64_t *area = (uint64_t *)control->area;
    int status;

    for (unsigned w = SENTINEL; w < WORDS; w += WRITERS)
        area[w] = ++control->expected[w];
    pid_t child = fork();
    if (!child)
        _exit(be_child());
    for (unsigned w = SENTINEL; w < WORDS; w += WRITERS * 16)
        area[w] = control->expected[w]; /* the same value again: copy-on-write must not matter */
    if (child < 0 || waitpid(child, &status, 0) < 0 || status)
        report_mismatch("child", 0, child < 0 ? 255 : WEXITSTATUS(status), 0);
    o->forks++;
}

static void start_round(struct owner *o)
{
    void *area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (area == MAP_FAILED) {
        printf("FAIL torture: mmap: %s\n", strerror(errno));
        exit(1);
    }
    memset(control->expected, 0, sizeof(control->expected));
    memset(control->added, 0, sizeof(control->added));
    control->area = (uintptr_t)area;
    o->base = ibv_reg_mr(o->rig.pd, (char *)area + 8, AREA - 8, RIG_ACCESS_ALL);
    if (!o->base) {
        printf("FAIL torture: ibv_reg_mr: %s\n", strerror(errno));
        exit(1);
    }
    control->base_key = o->base->rkey;
    atomic_store(&control->phase, RUN);
}

static bool end_round(struct owner *o, unsigned writers)
{
    uint64_t *area = (uint64_t *)control->area, waited = 0;

    atomic_store(&control->idle, 0);
    atomic_store(&control->phase, PAUSE);
    atomic_fetch_add(&control->pauses, 1); /* publishes the pause */
    while (atomic_load(&control->idle) < writers && waited++ < RESPONSE_SECONDS * 10000)
        usleep(100);
    if (atomic_load(&control->idle) < writers) {
        printf("# a writer hangs\n");
        atomic_fetch_add(&control->failures, 1);
        return false;
    }
    for (unsigned w = 0; w < WORDS; w++) {
        uint64_t want = w % WRITERS == SUM ? atomic_load(&control->added[w]) : control->expected[w];
        if (area[w] != want)
            report_mismatch("end of round", w, area[w], want);
    }
    for (unsigned i = 0; i < RANGES; i++)
        withdraw(o, i);
    ibv_dereg_mr(o->base);
    munmap(area, AREA);
    return true;
}

static void one_round(struct owner *o)
{
    for (int i = 0; i < STEPS; i++) {
        unsigned at = next_random(&o->random) % RANGES;
        withdraw(o, at);
        offer(o, at);
        if (next_random(&o->random) % 32 == 0)
            fork_child(o);
        if (o->by_use) /* long enough for peers to use it */
            usleep(next_random(&o->random) % 3000);
        else if (next_random(&o->random) % 4 == 0)
            usleep(next_random(&o->random) % 500);
    }
}

static void connect_peers(struct owner *o)
{
    struct ibv_cq *cq = ibv_create_cq(o->rig.ctx, 16, NULL, NULL, 0);
    struct ibv_qp *qps[2] = { make_qp(o->rig.pd, cq), make_qp(o->rig.pd, cq) };

    if (!qps[0] || !qps[1]) {
        printf("FAIL torture: ibv_create_qp: %s\n", strerror(errno));
        exit(1);
    }
    rig_addr_of(&o->rig, qps[1], 0, &control->owner[1]);
    while (atomic_load(&control->ready) < 2)
        usleep(100);
    meet(qps[0], &o->rig, &control->owner[0], &control->peer[0], 3);
    if (rig_qp_connect(qps[1], 0, &control->peer[1], RIG_ACCESS_ALL, &rig_patient)) {
        printf("FAIL torture: cannot connect\n");
        exit(1);
    }
}

static int be_owner(double seconds)
{
    const char *way = getenv("VERBENA_MR");
    struct owner o = { .random = seed + 5000, .by_use = way && !strcmp(way, "auto") };
    uint64_t end = rig_now_us() + (uint64_t)(seconds * 1e6);
    pthread_t threads[4];
    unsigned rounds = 0;

    if (rig_open(&o.rig))
        return 1;
    connect_peers(&o);
    pthread_create(&threads[0], NULL, write_by_stores, (void *)THREAD_A);
    pthread_create(&threads[1], NULL, write_by_stores, (void *)THREAD_B);
    pthread_create(&threads[2], NULL, write_by_kernel, NULL);
    pthread_create(&threads[3], NULL, churn, o.rig.pd);
    do {
        start_round(&o);
        one_round(&o);
        rounds++;
    } while (end_round(&o, 6) && rig_now_us() < end && !atomic_load(&control->failures));
    atomic_store(&control->phase, STOP);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("# %u rounds, %lu registrations, %lu forks; writes: %lu by threads, %lu by the kernel, "
           "%lu by mapping, %lu by copying, %lu additions\n",
           rounds, (unsigned long)o.registrations, (unsigned long)o.forks,
           (unsigned long)(control->writes[THREAD_A] + control->writes[THREAD_B]),
           (unsigned long)control->writes[KERNEL], (unsigned long)control->writes[MAPPER],
           (unsigned long)control->writes[COPIER], (unsigned long)control->writes[SUM]);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option table[] = { { "seed", required_argument, NULL, 's' },
                                           { "seconds", required_argument, NULL, 't' },
                                           { NULL, 0, NULL, 0 } };
    double seconds = 60;
    pid_t peers[2];
    int c, status, bad = 0;

    seed = rig_now_us();
    while ((c = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (c == 's')
            seed = strtoull(optarg, NULL, 0);
        else if (c == 't')
            seconds = strtod(optarg, NULL);
        else
            return 2;
    }
    printf("# seed %lu\n", (unsigned long)seed);
    fflush(stdout);
    control =
        mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (control == MAP_FAILED)
        return 1;
    for (unsigned i = 0; i < 2; i++)
        if (!(peers[i] = fork()))
            return be_peer(i);
    bad = be_owner(seconds);
    for (unsigned i = 0; i < 2; i++)
        if (waitpid(peers[i], &status, 0) < 0 || status)
            bad = 1;
    if (atomic_load(&control->failures) || bad) {
        printf("FAIL torture: %u writes lost or refused (seed %lu)\n",
               atomic_load(&control->failures), (unsigned long)seed);
        return 1;
    }
    printf("ok torture\n");
    return 0;
}
