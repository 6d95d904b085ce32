/* SPDX-License-Identifier: BSD-2-Clause */
/* Traffic between two adapters of a modelled fabric in which packets are lost, duplicated, held up
 * and spoilt: what the verbs promise must hold all the same.
 *
 *     lossy rc|uc MESSAGES SEED      both ways at once, everything checked
 *     lossy dead                     nothing passes: the error that this must end in */
#include "rig.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW   16
#define RECEIVES (2 * WINDOW)
#define LARGEST  20000
#define QUIET    100  /* looks in a row that find nothing: what is lost is lost */
#define PATIENCE 2000 /* such looks: it hangs */

enum kind { SEND, SEND_IMM, WRITE, WRITE_IMM, READ, FETCH_ADD, KINDS };

static const enum ibv_wr_opcode opcodes[KINDS] = {
    IBV_WR_SEND,      IBV_WR_SEND_WITH_IMM,        IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
    IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
};

/* What the peer writes to, reads from and adds to. */
struct shared {
    uint8_t written[WINDOW][LARGEST];
    uint8_t constant[LARGEST];
    uint64_t counter;
};

struct end {
    struct rig rig;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct end *peer;
    struct {
        struct shared shared;
        uint8_t slots[WINDOW][LARGEST];
        uint8_t received[RECEIVES][LARGEST];
    } * memory;
    uint32_t posted, completed; /* operations */
    uint32_t arrived;           /* the peer's operations up to here are known to have arrived */
    uint32_t received;
    uint64_t added;
};

static struct end ends[2];
static uint64_t seed;
static bool reliable;

static void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

static void fail(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    exit(1);
}

/* ---- what is to happen, from the seed ---- */

static uint64_t chance(const struct end *from, uint32_t number)
{
    return rig_mix(seed * 2 + (from - ends) + ((uint64_t)number << 32));
}

static enum kind kind_of(const struct end *from, uint32_t number)
{
    return reliable ? chance(from, number) % KINDS : SEND_IMM;
}

static bool takes_receive(enum kind kind)
{
    return kind == SEND || kind == SEND_IMM || kind == WRITE_IMM;
}

static uint32_t length_of(const struct end *from, uint32_t number)
{
    uint64_t dice = chance(from, number) >> 8;

    if (kind_of(from, number) == FETCH_ADD)
        return sizeof(uint64_t);
    return dice % 3 ? dice / 3 % 300 : dice / 3 % (LARGEST + 1);
}

static uint8_t byte_of(const struct end *from, uint32_t number, uint32_t at)
{
    return (from - ends) * 101 + number * 31 + at * 7 + (at >> 8);
}

static void check_bytes(const uint8_t *bytes, const struct end *from, uint32_t number,
                        const char *what)
{
    for (uint32_t i = 0; i < length_of(from, number); i++) {
        if (bytes[i] != byte_of(from, number, i))
            fail("%s of operation %u: byte %u is wrong", what, number, i);
    }
}

/* ---- posting ---- */

static void post_receive(struct end *end, uint32_t slot)
{
    struct ibv_sge sge = { (uintptr_t)end->memory->received[slot], LARGEST, end->mr->lkey };
    struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

    if (ibv_post_recv(end->qp, &wr, &bad))
        fail("ibv_post_recv fails");
}

static uint64_t remote_address(struct end *peer, enum kind kind, uint32_t number)
{
    struct shared *shared = &peer->memory->shared;

    switch (kind) {
    case READ:
        return (uintptr_t)shared->constant;
    case FETCH_ADD:
        return (uintptr_t)&shared->counter;
    default:
        return (uintptr_t)shared->written[number % WINDOW];
    }
}

static void post(struct end *end)
{
    uint32_t number = end->posted++;
    enum kind kind = kind_of(end, number);
    uint8_t *slot = end->memory->slots[number % WINDOW];
    uint32_t length = length_of(end, number);
    struct ibv_sge sge = { (uintptr_t)slot, length, end->mr->lkey };
    struct ibv_send_wr wr = { .wr_id = number,
                              .sg_list = &sge,
                              .num_sge = 1,
                              .opcode = opcodes[kind],
                              .send_flags = IBV_SEND_SIGNALED,
                              .imm_data = number },
                       *bad;
    uint64_t address = remote_address(end->peer, kind, number);

    for (uint32_t i = 0; i < length; i++)
        slot[i] = byte_of(end, number, i);
    if (kind == FETCH_ADD) {
        wr.wr.atomic.remote_addr = address;
        wr.wr.atomic.rkey = end->peer->mr->rkey;
        wr.wr.atomic.compare_add = 1;
    } else {
        wr.wr.rdma.remote_addr = address;
        wr.wr.rdma.rkey = end->peer->mr->rkey;
    }
    if (ibv_post_send(end->qp, &wr, &bad))
        fail("ibv_post_send fails");
}

/* ---- what comes back ---- */

static void check_sent(struct end *end, const struct ibv_wc *wc)
{
    uint32_t number = end->completed++;
    const uint8_t *slot = end->memory->slots[number % WINDOW];

    if (wc->wr_id != number)
        fail("operation %u completes before %u", (uint32_t)wc->wr_id, number);
    switch (kind_of(end, number)) {
    case READ:
        if (memcmp(slot, end->peer->memory->shared.constant, length_of(end, number)))
            fail("operation %u has read something else", number);
        break;
    case FETCH_ADD:
        if (*(const uint64_t *)slot != end->added++)
            fail("operation %u is not addition number %llu", number,
                 (unsigned long long)end->added);
        break;
    default:
        break;
    }
}

/* Which of the peer's operations has filled this receive. */
static uint32_t number_of_arrival(struct end *end, const struct ibv_wc *wc)
{
    if (!reliable) {
        if (wc->imm_data < end->arrived)
            fail("message %u arrives out of order or twice", wc->imm_data);
        return wc->imm_data;
    }
    while (!takes_receive(kind_of(end->peer, end->arrived)))
        end->arrived++;
    return end->arrived;
}

static void check_received(struct end *end, const struct ibv_wc *wc)
{
    uint32_t number = number_of_arrival(end, wc);
    enum kind kind = kind_of(end->peer, number);

    if (kind != SEND && wc->imm_data != number)
        fail("operation %u arrives where %u should", wc->imm_data, number);
    if (wc->byte_len != length_of(end->peer, number))
        fail("operation %u arrives with %u bytes", number, wc->byte_len);
    check_bytes(kind == WRITE_IMM ? end->memory->shared.written[number % WINDOW]
                                  : end->memory->received[wc->wr_id],
                end->peer, number, kind == WRITE_IMM ? "written data" : "received data");
    end->arrived = number + 1;
    end->received++;
    post_receive(end, wc->wr_id);
}

static bool take(struct end *end)
{
    struct ibv_wc wc;

    if (ibv_poll_cq(end->cq, 1, &wc) != 1)
        return false;
    if (wc.status != IBV_WC_SUCCESS)
        fail("work request %llu: %s", (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status));
    if (wc.opcode & IBV_WC_RECV)
        check_received(end, &wc);
    else
        check_sent(end, &wc);
    return true;
}

/* The last operation that wrote to each slot is what stands there. */
static void check_written(struct end *end, uint32_t messages)
{
    for (uint32_t number = messages < WINDOW ? 0 : messages - WINDOW; number < messages; number++) {
        enum kind kind = kind_of(end->peer, number);

        if (kind == WRITE || kind == WRITE_IMM)
            check_bytes(end->memory->shared.written[number % WINDOW], end->peer, number,
                        "what stands written");
    }
}

static uint32_t expected(const struct end *end, uint32_t messages)
{
    uint32_t count = 0;

    for (uint32_t number = 0; number < messages; number++)
        count += takes_receive(kind_of(end->peer, number));
    return count;
}

static bool is_done(const struct end *end, uint32_t messages, unsigned int quiet)
{
    return end->completed == messages &&
           (end->received == expected(end, messages) || (!reliable && quiet > QUIET));
}

static void run(uint32_t messages)
{
    unsigned int quiet = 0;

    while (!is_done(&ends[0], messages, quiet) || !is_done(&ends[1], messages, quiet)) {
        bool moved = false;

        for (struct end *end = ends; end < ends + 2; end++) {
            while (end->posted < messages && end->posted - end->completed < WINDOW)
                post(end);
            moved |= take(end);
        }
        quiet = moved ? 0 : quiet + 1;
        if (quiet > PATIENCE)
            fail("%u and %u of %u operations are complete, %u and %u messages arrived, and nothing "
                 "more happens",
                 ends[0].completed, ends[1].completed, messages, ends[1].received,
                 ends[0].received);
    }
    for (struct end *end = ends; end < ends + 2; end++) {
        if (reliable)
            check_written(end, messages);
        printf("%u of %u\n", end->received, expected(end, messages));
    }
}

/* ---- nothing passes ---- */

static void expect(struct end *end, uint64_t wr_id, enum ibv_wc_status status)
{
    struct ibv_wc wc;
    int count = rig_poll(end->cq, &wc, 10000);

    if (count != 1)
        fail("no completion of work request %llu", (unsigned long long)wr_id);
    if (wc.wr_id != wr_id || wc.status != status)
        fail("work request %llu: %s, where %llu was to end with: %s", (unsigned long long)wc.wr_id,
             ibv_wc_status_str(wc.status), (unsigned long long)wr_id, ibv_wc_status_str(status));
}

static void run_dead(void)
{
    uint64_t (*now)(void) = (uint64_t(*)(void))dlsym(RTLD_DEFAULT, "verbena_now");
    uint64_t patience = (4096ull << rig_patient.timeout) * (rig_patient.retry_cnt + 1), began;
    struct end *end = &ends[0];
    uint64_t took;

    if (!now)
        fail("this is no modelled fabric");
    began = now();
    for (int i = 0; i < 4; i++)
        post(end);
    expect(end, 0, IBV_WC_RETRY_EXC_ERR);
    took = now() - began;
    if (took < patience || took > patience * 11 / 10)
        fail("it gave up after %llu ns instead of %llu", (unsigned long long)took,
             (unsigned long long)patience);
    post(end);
    for (int i = 1; i < 5; i++)
        expect(end, i, IBV_WC_WR_FLUSH_ERR);
    for (int i = 0; i < RECEIVES; i++)
        expect(end, i, IBV_WC_WR_FLUSH_ERR);
}

/* ---- setting up ---- */

static int open_device(struct rig *rig, int index)
{
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);

    if (!list || count <= index)
        return -1;
    rig->ctx = ibv_open_device(list[index]);
    ibv_free_device_list(list);
    if (!rig->ctx || ibv_query_port(rig->ctx, 1, &rig->port) ||
        ibv_query_gid(rig->ctx, 1, 0, &rig->gid))
        return -1;
    rig->pd = ibv_alloc_pd(rig->ctx);
    return rig->pd ? 0 : -1;
}

static void set_up(struct end *end)
{
    struct ibv_qp_init_attr init = {
        .qp_type = reliable ? IBV_QPT_RC : IBV_QPT_UC,
        .cap = { .max_send_wr = WINDOW,
                 .max_recv_wr = RECEIVES,
                 .max_send_sge = 1,
                 .max_recv_sge = 1 },
    };
    int number = end - ends;

    end->peer = &ends[!number];
    if (open_device(&end->rig, number))
        fail("adapter %d cannot be opened", number);
    end->memory = calloc(1, sizeof(*end->memory));
    for (uint32_t i = 0; i < LARGEST; i++)
        end->memory->shared.constant[i] = byte_of(end, 1234, i);
    end->mr = ibv_reg_mr(end->rig.pd, end->memory, sizeof(*end->memory), RIG_ACCESS_ALL);
    end->cq = ibv_create_cq(end->rig.ctx, WINDOW + RECEIVES, NULL, NULL, 0);
    init.send_cq = init.recv_cq = end->cq;
    end->qp = end->cq ? ibv_create_qp(end->rig.pd, &init) : NULL;
    if (!end->mr || !end->qp)
        fail("no queue pair on adapter %d", number);
}

static void join(struct end *end)
{
    struct rig_addr remote;
    /* Close to where packet numbers begin again. */
    uint32_t psn = 0xffffff - 20;

    rig_addr_of(&end->peer->rig, end->peer->qp, psn, &remote);
    if (rig_qp_connect(end->qp, psn, &remote, RIG_ACCESS_ALL, &rig_patient))
        fail("the queue pairs cannot be connected");
    for (uint32_t slot = 0; slot < RECEIVES; slot++)
        post_receive(end, slot);
}

static void tear_down(struct end *end)
{
    if (ibv_destroy_qp(end->qp) || ibv_destroy_cq(end->cq) || ibv_dereg_mr(end->mr) ||
        rig_close(&end->rig))
        fail("something cannot be destroyed");
    free(end->memory);
}

int main(int argc, char **argv)
{
    bool dead = argc == 2 && !strcmp(argv[1], "dead");

    if (!dead && (argc != 4 || (strcmp(argv[1], "rc") && strcmp(argv[1], "uc"))))
        fail("usage: lossy rc|uc MESSAGES SEED, or lossy dead");
    reliable = strcmp(argv[1], "uc");
    seed = dead ? 1 : strtoull(argv[3], NULL, 10);
    set_up(&ends[0]);
    set_up(&ends[1]);
    join(&ends[0]);
    join(&ends[1]);
    if (dead)
        run_dead();
    else
        run(strtoul(argv[2], NULL, 10));
    tear_down(&ends[0]);
    tear_down(&ends[1]);
    return 0;
}
