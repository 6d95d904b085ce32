/* SPDX-License-Identifier: BSD-2-Clause */
/* Two ends of a reliable connection exchange messages of all kinds and sizes, several at once, and
 * check every byte.
 *
 *     exchange [--busy | --window | --unmapped] PORT GID SEED ROUNDS            the target
 *     exchange [--busy | --window | --unmapped] PORT GID SEED ROUNDS HOST       the initiator
 *
 * Both ends derive each round from the seed. A TCP connection carries addresses and separates the
 * rounds; it is no witness for data. With --busy, all operations are one-sided, and the target
 * computes during a round: it makes no verbs call, and changes memory that the initiator reads. With
 * --window, the target's memory is accessed through a memory window, which it invalidates at last.
 * With --unmapped, operations on memory that is registered and no longer there come first; they must
 * fail, and nothing else. */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define LANES      8 /* operations at once */
#define LANE_BYTES (256 << 10)
#define PATIENCE_S 60
#define HOT_WORDS  256 /* that a busy target keeps changing */
#define HOT_READS  10  /* in a round */
#define HOT_OFFSET (LANES * LANE_BYTES + 1024)

enum operation { SEND, SEND_IMM, WRITE, WRITE_IMM, READ, ADD, SWAP, OPERATIONS };

static const enum ibv_wr_opcode opcodes[] = {
    IBV_WR_SEND,      IBV_WR_SEND_WITH_IMM,        IBV_WR_RDMA_WRITE,         IBV_WR_RDMA_WRITE_WITH_IMM,
    IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP,
};

struct end {
    uint32_t qpn, psn, key;
    uint64_t address;
    union ibv_gid gid;
};

struct step {
    enum operation operation;
    uint32_t length;
    uint32_t offset;
    uint64_t seed;
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t *lanes;      /* LANES * LANE_BYTES */
static uint64_t *counters;  /* behind the lanes: one for each lane */
static struct end own, peer;
static int control;
static bool initiator, busy, windowed, unmapped;
static uint64_t state;

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fprintf(stderr, "%s: ", initiator ? "initiator" : "target");
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    exit(1);
}

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

static uint64_t draw(void)
{
    return mix(state++);
}

/* ---- setting up ---- */

static void transfer(void *bytes, size_t length, bool out)
{
    for (size_t done = 0; done < length;) {
        ssize_t n = out ? write(control, (char *)bytes + done, length - done)
                        : read(control, (char *)bytes + done, length - done);
        if (n <= 0)
            fail("the other end has gone");
        done += n;
    }
}

static void barrier(void)
{
    char byte = 0;

    transfer(&byte, 1, true);
    transfer(&byte, 1, false);
}

static void connect_control(const char *port, const char *host)
{
    struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(atoi(port)) };
    int fd = socket(AF_INET6, SOCK_STREAM, 0), one = 1;

    if (!host) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        if (bind(fd, (struct sockaddr *)&any, sizeof(any)) || listen(fd, 1))
            fail("cannot listen");
        control = accept(fd, NULL, NULL);
        return;
    }
    struct addrinfo *info;
    if (getaddrinfo(host, port, NULL, &info))
        fail("unknown host");
    for (int tries = 0; tries < 1000; tries++) {
        control = socket(info->ai_family, SOCK_STREAM, 0);
        if (!connect(control, info->ai_addr, info->ai_addrlen))
            return;
        close(control);
        usleep(50000);
    }
    fail("cannot connect");
}

static void open_device(int gid)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    size_t bytes = LANES * LANE_BYTES + 4096;

    context = list && list[0] ? ibv_open_device(list[0]) : NULL;
    if (!context)
        fail("no device");
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 256, NULL, NULL, 0);
    lanes = aligned_alloc(4096, bytes);
    memset(lanes, 0, bytes);
    counters = (uint64_t *)(lanes + LANES * LANE_BYTES);
    mr = ibv_reg_mr(pd, lanes, bytes,
                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                        IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .cap = { .max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 2, .max_recv_sge = 2 },
    };
    qp = ibv_create_qp(pd, &init);
    if (!mr || !qp)
        fail("cannot create objects");
    own = (struct end){ qp->qp_num, draw() & 0xffffff, mr->rkey, (uintptr_t)lanes };
    if (ibv_query_gid(context, 1, gid, &own.gid))
        fail("no GID %d", gid);
}

static void connect_qp(int gid)
{
    struct ibv_port_attr port;
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
                                .port_num = 1,
                                .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
                                                   IBV_ACCESS_REMOTE_READ |
                                                   IBV_ACCESS_REMOTE_ATOMIC };

    transfer(&own, sizeof(own), true);
    transfer(&peer, sizeof(peer), false);
    if (ibv_query_port(context, 1, &port) ||
        ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
        fail("INIT");
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = port.active_mtu;
    attr.dest_qp_num = peer.qpn;
    attr.rq_psn = peer.psn;
    attr.max_dest_rd_atomic = 4;
    attr.min_rnr_timer = 1;
    attr.ah_attr = (struct ibv_ah_attr){ .is_global = 1, .port_num = 1 };
    attr.ah_attr.grh = (struct ibv_global_route){ .dgid = peer.gid, .sgid_index = gid,
                                                  .hop_limit = 64 };
    if (ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                          IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
        fail("RTR");
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = own.psn;
    attr.timeout = 16; /* 268 ms: the machine may be busy */
    attr.retry_cnt = 7;
    attr.rnr_retry = 7;
    attr.max_rd_atomic = 4;
    if (ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                          IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
        fail("RTS");
}

/* ---- rounds ---- */

static bool consumes_receive(const struct step *step)
{
    return step->operation == SEND || step->operation == SEND_IMM || step->operation == WRITE_IMM;
}

static void plan(struct step steps[LANES])
{
    for (int i = 0; i < LANES; i++) {
        struct step *step = &steps[i];

        do
            step->operation = draw() % OPERATIONS;
        while (busy && consumes_receive(step));
        step->length = draw() % 4 ? draw() % 20000 : draw() % (LANE_BYTES - 64);
        step->offset = draw() % 64;
        step->seed = draw();
        if (step->operation >= ADD)
            step->length = 8;
    }
}

static void fill(uint8_t *to, const struct step *step)
{
    for (uint32_t i = 0; i < step->length; i++)
        to[i] = mix(step->seed + i / 8) >> i % 8 * 8;
}

static void check(const uint8_t *at, const struct step *step, unsigned round, int lane)
{
    for (uint32_t i = 0; i < step->length; i++)
        if (at[i] != (uint8_t)(mix(step->seed + i / 8) >> i % 8 * 8))
            fail("round %u, lane %d, operation %d: byte %u of %u is wrong", round, lane,
                 step->operation, i, step->length);
    if (at[step->length] != 0xee)
        fail("round %u, lane %d: a byte behind the message was written", round, lane);
}

static uint8_t *lane(int i, const struct step *step)
{
    return lanes + (size_t)i * LANE_BYTES + step->offset;
}

/* A QP that only receives does not notice that its peer is gone. */
static bool initiator_is_gone(void)
{
    char byte;
    ssize_t n = recv(control, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return !n || (n < 0 && errno != EAGAIN);
}

static void wait_completions(unsigned count, const struct step *steps, unsigned round)
{
    time_t started = time(NULL), looked = started;
    int next = 0; /* lane whose receive completes next */

    while (count) {
        struct ibv_wc wc;
        int got = ibv_poll_cq(cq, 1, &wc);
        time_t now = time(NULL);

        if (!initiator && now != looked && initiator_is_gone())
            fail("the other end has gone");
        looked = now;
        if (got < 0 || now - started > PATIENCE_S)
            fail("round %u: %u completions are missing", round, count);
        if (!got)
            continue;
        if (wc.status != IBV_WC_SUCCESS)
            fail("round %u: %s", round, ibv_wc_status_str(wc.status));
        count--;
        if (initiator)
            continue;
        while (!consumes_receive(&steps[next]))
            next++;
        if (wc.byte_len != steps[next].length || (int)wc.wr_id != next)
            fail("round %u, lane %d: %u bytes instead of %u", round, next, wc.byte_len,
                 steps[next].length);
        if (steps[next].operation != SEND && wc.imm_data != htonl(steps[next].length ^ 0x5a))
            fail("round %u, lane %d: wrong immediate data", round, next);
        next++;
    }
}

static unsigned post_receives(const struct step *steps)
{
    unsigned count = 0;

    for (int i = 0; i < LANES; i++) {
        /* two pieces, to cross the boundary between SGEs */
        uint32_t first = steps[i].length / 3;
        struct ibv_sge sge[2] = { { (uintptr_t)lane(i, &steps[i]), first, mr->lkey },
                                  { (uintptr_t)lane(i, &steps[i]) + first,
                                    steps[i].length - first, mr->lkey } };
        struct ibv_recv_wr wr = { .wr_id = i, .sg_list = sge, .num_sge = 2 }, *bad;

        if (!consumes_receive(&steps[i]))
            continue;
        count++;
        if (ibv_post_recv(qp, &wr, &bad))
            fail("post_recv");
    }
    return count;
}

static void post_sends(const struct step *steps, unsigned round)
{
    struct ibv_send_wr wrs[LANES], *bad;
    struct ibv_sge sges[LANES];

    for (int i = 0; i < LANES; i++) {
        const struct step *step = &steps[i];
        uint64_t remote = peer.address + (lane(i, step) - lanes);

        sges[i] = (struct ibv_sge){ (uintptr_t)lane(i, step), step->length, mr->lkey };
        wrs[i] = (struct ibv_send_wr){ .wr_id = i,
                                       .next = i + 1 < LANES ? &wrs[i + 1] : NULL,
                                       .sg_list = &sges[i],
                                       .num_sge = step->length ? 1 : 0,
                                       .opcode = opcodes[step->operation],
                                       .send_flags = IBV_SEND_SIGNALED,
                                       .imm_data = htonl(step->length ^ 0x5a) };
        if (step->operation >= ADD) {
            sges[i].addr = (uintptr_t)&counters[i];
            wrs[i].wr.atomic.remote_addr =
                peer.address + ((uint8_t *)&counters[i] - lanes);
            wrs[i].wr.atomic.rkey = peer.key;
            wrs[i].wr.atomic.compare_add = step->operation == ADD ? 1 : round;
            wrs[i].wr.atomic.swap = round + 1;
        } else {
            wrs[i].wr.rdma.remote_addr = remote;
            wrs[i].wr.rdma.rkey = peer.key;
        }
    }
    if (ibv_post_send(qp, wrs, &bad))
        fail("post_send");
}

static struct ibv_wc await_completion(void)
{
    time_t started = time(NULL);
    struct ibv_wc wc;
    int got;

    while (!(got = ibv_poll_cq(cq, 1, &wc)) && time(NULL) - started < PATIENCE_S)
        ;
    if (got != 1)
        fail("no completion");
    return wc;
}

/* ---- a memory window ---- */

static struct ibv_wc execute(struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;

    wr->send_flags = IBV_SEND_SIGNALED;
    if (ibv_post_send(qp, wr, &bad))
        fail("post_send");
    return await_completion();
}

/* The key of the window takes the place of the region's. */
static void open_window(void)
{
    struct ibv_mw *mw = initiator ? NULL : ibv_alloc_mw(pd, IBV_MW_TYPE_2);

    if (initiator) {
        transfer(&peer.key, sizeof(peer.key), false);
        return;
    }
    if (!mw)
        fail("alloc_mw");
    own.key = ibv_inc_rkey(mw->rkey);
    struct ibv_send_wr bind = {
        .opcode = IBV_WR_BIND_MW,
        .bind_mw = { .mw = mw,
                     .rkey = own.key,
                     .bind_info = { .mr = mr,
                                    .addr = own.address,
                                    .length = mr->length,
                                    .mw_access_flags = IBV_ACCESS_REMOTE_WRITE |
                                                       IBV_ACCESS_REMOTE_READ |
                                                       IBV_ACCESS_REMOTE_ATOMIC } },
    };
    if (execute(&bind).status != IBV_WC_SUCCESS)
        fail("the window cannot be bound");
    transfer(&own.key, sizeof(own.key), true);
}

static void close_window(void)
{
    struct ibv_send_wr invalidate = { .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = own.key };
    struct ibv_sge sge = { (uintptr_t)lanes, 64, mr->lkey };
    struct ibv_send_wr write = { .opcode = IBV_WR_RDMA_WRITE,
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .wr.rdma = { peer.address, peer.key } };

    if (!initiator && execute(&invalidate).status != IBV_WC_SUCCESS)
        fail("the window cannot be invalidated");
    barrier();
    if (initiator && execute(&write).status != IBV_WC_REM_ACCESS_ERR)
        fail("a write through an invalidated window does not fail with an access error");
    barrier();
}

/* ---- memory that has gone ---- */

#define GONE_BYTES 65536

/* Either the program unmaps it, or the file behind it loses its pages. Nothing else may get its
 * place meanwhile. */
static struct ibv_mr *register_and_lose(bool unmaps)
{
    int fd = memfd_create("gone", 0), flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;

    if (fd < 0 || ftruncate(fd, GONE_BYTES))
        fail("memfd_create");
    void *memory = mmap(NULL, GONE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    struct ibv_mr *gone = ibv_reg_mr(pd, memory, GONE_BYTES,
                                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                         IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    if (!gone || (unmaps ? mmap(memory, GONE_BYTES, PROT_NONE, flags, -1, 0) != memory
                         : ftruncate(fd, 0)))
        fail("register_and_lose");
    close(fd);
    return gone;
}

static void expect(enum operation operation, enum ibv_wc_status wanted)
{
    struct ibv_wc wc = await_completion();

    if (wc.status != wanted)
        fail("operation %d on memory that has gone: %s instead of %s", operation,
             ibv_wc_status_str(wc.status), ibv_wc_status_str(wanted));
}

static void reconnect(int gid)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
    struct ibv_wc wc;

    barrier();
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
        fail("RESET");
    while (ibv_poll_cq(cq, 1, &wc) > 0)
        ;
    connect_qp(gid);
    barrier();
}

static void post(enum operation operation, uint64_t address, uint32_t length, uint32_t key)
{
    struct ibv_sge sge = { address, length, key };
    struct ibv_send_wr wr = { .sg_list = &sge,
                              .num_sge = 1,
                              .opcode = opcodes[operation],
                              .send_flags = IBV_SEND_SIGNALED },
                       *bad;

    wr.wr.rdma.remote_addr = peer.address;
    wr.wr.rdma.rkey = peer.key;
    if (operation == ADD) {
        wr.wr.atomic.remote_addr = peer.address;
        wr.wr.atomic.rkey = peer.key;
    }
    if (ibv_post_send(qp, &wr, &bad))
        fail("post_send");
}

/* The target's memory: with one-sided operations, only its service thread notices. */
static void lose_remote_memory(enum operation operation, const struct ibv_mr *gone)
{
    struct ibv_sge sge = { (uintptr_t)gone->addr, GONE_BYTES, gone->lkey };
    struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

    if (!initiator && operation == SEND && ibv_post_recv(qp, &wr, &bad))
        fail("post_recv");
    barrier();
    if (initiator) {
        post(operation, (uintptr_t)lanes, operation == ADD ? 8 : 20000, mr->lkey);
        expect(operation, IBV_WC_REM_OP_ERR);
    } else if (operation == SEND) {
        expect(operation, IBV_WC_LOC_PROT_ERR);
    }
}

/* The initiator's own: payload that is sent, and space for what is read. */
static void lose_local_memory(enum operation operation, const struct ibv_mr *gone)
{
    if (!initiator)
        return;
    post(operation, (uintptr_t)gone->addr, operation == ADD ? 8 : 20000, gone->lkey);
    expect(operation, IBV_WC_LOC_PROT_ERR);
}

static void lose_memory(int gid)
{
    static const enum operation operations[] = { WRITE, READ, ADD, SEND };
    struct end kept = own;

    for (int i = 0; i < 8; i++) {
        struct ibv_mr *gone = register_and_lose(i & 1);

        own.address = (uintptr_t)gone->addr;
        own.key = gone->rkey;
        reconnect(gid);
        lose_remote_memory(operations[i / 2], gone);
        own = kept;
        reconnect(gid);
        lose_local_memory(operations[i / 2], gone);
        barrier();
        if (ibv_dereg_mr(gone))
            fail("dereg_mr");
    }
    reconnect(gid);
}

static volatile uint64_t *hot_words(void)
{
    return (uint64_t *)(lanes + HOT_OFFSET);
}

static void change_hot_words(void)
{
    for (int i = 0; i < HOT_WORDS; i++)
        hot_words()[i]++;
}

static void compute_until_initiator_is_done(void)
{
    char byte;

    do
        for (int i = 0; i < 1000; i++)
            change_hot_words();
    while (recv(control, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN);
}

static void read_hot_words(unsigned round)
{
    struct ibv_sge sge = { (uintptr_t)hot_words(), HOT_WORDS * sizeof(uint64_t), mr->lkey };
    struct ibv_send_wr wr = { .sg_list = &sge,
                              .num_sge = 1,
                              .opcode = IBV_WR_RDMA_READ,
                              .send_flags = IBV_SEND_SIGNALED,
                              .wr.rdma = { peer.address + HOT_OFFSET, peer.key } },
                       *bad;

    if (ibv_post_send(qp, &wr, &bad))
        fail("post_send");
    wait_completions(1, NULL, round);
    for (int i = 0; i < HOT_WORDS; i++)
        if (hot_words()[i] < round)
            fail("round %u: word %d is %llu", round, i, (unsigned long long)hot_words()[i]);
}

/* Both atomics of round r change every lane's counter from r to r + 1. */
static void prepare(const struct step *steps, unsigned round)
{
    for (int i = 0; i < LANES; i++) {
        uint8_t *at = lane(i, &steps[i]);
        bool source = initiator == (steps[i].operation != READ);

        memset(lanes + (size_t)i * LANE_BYTES, 0xee, LANE_BYTES);
        if (source && steps[i].operation < ADD)
            fill(at, &steps[i]);
        counters[i] = initiator ? UINT64_MAX : round;
    }
}

static void verify(const struct step *steps, unsigned round)
{
    for (int i = 0; i < LANES; i++) {
        if (steps[i].operation >= ADD) {
            if (counters[i] != (initiator ? round : round + 1))
                fail("round %u, lane %d: an atomic left %llu", round, i,
                     (unsigned long long)counters[i]);
        } else if (initiator == (steps[i].operation == READ)) {
            check(lane(i, &steps[i]), &steps[i], round, i);
        }
    }
}

static void run_round(unsigned round)
{
    struct step steps[LANES];
    bool late; /* receives are posted after the sends: the target is not ready */
    unsigned receives = 0;

    plan(steps);
    late = draw() % 4 == 0;
    prepare(steps, round);
    if (!initiator && !late)
        receives = post_receives(steps);
    barrier();
    if (initiator) {
        post_sends(steps, round);
        wait_completions(LANES, steps, round);
        for (int i = 0; busy && i < HOT_READS; i++)
            read_hot_words(round);
    } else if (busy) {
        compute_until_initiator_is_done();
    } else {
        if (late) {
            usleep(500);
            receives = post_receives(steps);
        }
        wait_completions(receives, steps, round);
    }
    barrier();
    verify(steps, round);
    barrier();
}

int main(int argc, char **argv)
{
    busy = argc > 1 && !strcmp(argv[1], "--busy");
    windowed = argc > 1 && !strcmp(argv[1], "--window");
    unmapped = argc > 1 && !strcmp(argv[1], "--unmapped");
    argv += busy || windowed || unmapped;
    argc -= busy || windowed || unmapped;
    if (argc < 5) {
        fprintf(stderr, "usage: exchange [--busy | --window | --unmapped] PORT GID SEED ROUNDS [HOST]\n");
        return 2;
    }
    unsigned rounds = atoi(argv[4]);
    initiator = argc > 5;
    signal(SIGPIPE, SIG_IGN);
    state = getpid();
    connect_control(argv[1], argv[5]);
    open_device(atoi(argv[2]));
    connect_qp(atoi(argv[2]));
    if (windowed)
        open_window();
    if (unmapped)
        lose_memory(atoi(argv[2]));
    state = strtoull(argv[3], NULL, 0) << 32;
    for (unsigned round = 0; round < rounds; round++)
        run_round(round);
    if (windowed)
        close_window();
    printf("%u rounds\n", rounds);
    return 0;
}
