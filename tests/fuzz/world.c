/* SPDX-License-Identifier: BSD-2-Clause */
#include "world.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void violated(const char *fmt, ...)
{
    va_list args;

    fprintf(stderr, "violated: ");
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}

bool input_done(const struct input *in)
{
    return in->size == 0;
}

void take_bytes(struct input *in, void *out, size_t len)
{
    size_t n = len < in->size ? len : in->size;

    memset(out, 0, len);
    memcpy(out, in->data, n);
    in->data += n;
    in->size -= n;
}

uint8_t take8(struct input *in)
{
    uint8_t value;

    take_bytes(in, &value, sizeof(value));
    return value;
}

uint32_t take32(struct input *in)
{
    uint32_t value;

    take_bytes(in, &value, sizeof(value));
    return value;
}

uint64_t take64(struct input *in)
{
    uint64_t value;

    take_bytes(in, &value, sizeof(value));
    return value;
}

uint32_t take_edge(struct input *in)
{
    uint8_t shape = take8(in);

    if (shape < 160)
        return shape % 40;
    if (shape < 192)
        return 1u << (shape % 32);
    if (shape < 224)
        return (1u << (shape % 32)) - 1;
    if (shape < 232)
        return -(uint32_t)(shape - 223);
    return take32(in);
}

/* Inside the arena, in the reserved range behind it, or invalid. */
uint64_t wild_address(struct world *world, struct input *in)
{
    uint64_t arena = (uintptr_t)world->arena;
    uint8_t shape = take8(in);

    if (shape < 160)
        return arena + (take32(in) % ARENA_BYTES);
    if (shape < 190)
        return arena + ARENA_BYTES - shape % 16;
    if (shape < 220)
        return arena + ARENA_BYTES + take32(in) % (1u << 30);
    if (shape < 230)
        return shape % 16;
    return shape < 240 ? UINT64_MAX - shape % 16 : 0xffff800000000000ull + take32(in);
}

/* Shorter than the reserved range, or so long that any address would wrap. */
uint64_t wild_length(struct input *in)
{
    uint8_t shape = take8(in);

    if (shape < 128)
        return shape;
    if (shape < 200)
        return take32(in) % ARENA_BYTES;
    if (shape < 240)
        return take32(in);
    return UINT64_MAX - shape % 8;
}

uint32_t wild_key(struct world *world, struct input *in, bool remote)
{
    struct ibv_mr *mr = PICK(world, mr, in);
    uint8_t shape = take8(in);

    if (!mr || shape >= 230)
        return take32(in);
    uint32_t key = remote ? mr->rkey : mr->lkey;
    return shape >= 210 ? key ^ (1u << shape % 32) : key;
}

/* ---- the bystander ---- */

static struct {
    struct rig rig;
    struct ibv_cq *cq;
    struct ibv_qp *qp[2];
    struct ibv_mr *mr;
    uint64_t word[2];
    uint64_t count;
} bystander;

static struct ibv_qp *plain_qp(struct rig *rig, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = { .max_send_wr = 8,
                 .max_recv_wr = 8,
                 .max_send_sge = 4,
                 .max_recv_sge = 4,
                 .max_inline_data = 64 },
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_qp *qp = ibv_create_qp(rig->pd, &attr);

    if (!qp)
        violated("creating a plain QP: %s", strerror(errno));
    return qp;
}

static void connect_pair(struct rig *rig, struct ibv_qp *a, struct ibv_qp *b)
{
    struct rig_timing timing = { .timeout = 4, .retry_cnt = 1, .rnr_retry = 1, .min_rnr_timer = 1 };
    struct rig_addr to_a, to_b;

    rig_addr_of(rig, a, 0, &to_a);
    rig_addr_of(rig, b, 0, &to_b);
    if (rig_qp_connect(a, 0, &to_b, RIG_ACCESS_ALL, &timing) ||
        rig_qp_connect(b, 0, &to_a, RIG_ACCESS_ALL, &timing))
        violated("connecting a plain pair");
}

static void bystander_open(void)
{
    if (rig_open(&bystander.rig))
        violated("opening the device");
    bystander.cq = ibv_create_cq(bystander.rig.ctx, 16, NULL, NULL, 0);
    bystander.mr = ibv_reg_mr(bystander.rig.pd, bystander.word, sizeof(bystander.word),
                              IBV_ACCESS_LOCAL_WRITE);
    if (!bystander.cq || !bystander.mr)
        violated("the bystander's objects: %s", strerror(errno));
    for (int i = 0; i < 2; i++)
        bystander.qp[i] = plain_qp(&bystander.rig, bystander.cq);
    connect_pair(&bystander.rig, bystander.qp[0], bystander.qp[1]);
}

void bystander_check(void)
{
    uint32_t lkey = bystander.mr->lkey;
    struct ibv_sge out = { .addr = (uintptr_t)&bystander.word[0], .length = 8, .lkey = lkey };
    struct ibv_sge in = { .addr = (uintptr_t)&bystander.word[1], .length = 8, .lkey = lkey };
    struct ibv_recv_wr recv_wr = { .sg_list = &in, .num_sge = 1 }, *bad_recv;
    struct ibv_send_wr send_wr = {
        .sg_list = &out, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED
    };
    struct ibv_send_wr *bad_send;
    struct ibv_wc wc;

    bystander.word[0] = rig_mix(++bystander.count);
    if (ibv_post_recv(bystander.qp[1], &recv_wr, &bad_recv) ||
        ibv_post_send(bystander.qp[0], &send_wr, &bad_send))
        violated("the bystander cannot post");
    for (int i = 0; i < 2; i++)
        if (rig_poll(bystander.cq, &wc, 5000) != 1 || wc.status != IBV_WC_SUCCESS)
            violated("the bystander was disturbed");
    if (bystander.word[1] != rig_mix(bystander.count))
        violated("the bystander received wrong bytes");
}

/* ---- the world of one input ---- */

static uint8_t *reserve_arena(void)
{
    uint8_t *room =
        mmap(NULL, ROOM_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (room == MAP_FAILED || mprotect(room, ARENA_BYTES, PROT_READ | PROT_WRITE))
        violated("reserving memory: %s", strerror(errno));
    return room;
}

void world_begin(struct world *world)
{
    static struct rig rig;
    static uint8_t *arena;

    if (!arena) {
        arena = reserve_arena();
        if (rig_open(&rig))
            violated("opening the device");
        bystander_open();
    }
    memset(world, 0, sizeof(*world));
    world->rig = rig;
    world->arena = arena;
    world->pd[0] = rig.pd;
    world->channel = ibv_create_comp_channel(rig.ctx);
    world->cq[0] = ibv_create_cq(rig.ctx, 64, NULL, world->channel, 0);
    world->mr[0] = ibv_reg_mr(rig.pd, arena, ARENA_BYTES, RIG_ACCESS_ALL | IBV_ACCESS_MW_BIND);
    if (!world->channel || !world->cq[0] || !world->mr[0])
        violated("the first objects: %s", strerror(errno));
    world->mr[1] = ibv_reg_mr(rig.pd, arena, 2 * ARENA_BYTES, RIG_ACCESS_ALL);
    if (world->mr[1])
        violated("memory that is not there was registered");
    for (int i = 0; i < 2; i++)
        world->qp[i] = plain_qp(&rig, world->cq[0]);
    connect_pair(&rig, world->qp[0], world->qp[1]);
    struct ibv_ah_attr attr = { .dlid = rig.port.lid, .port_num = 1 };
    world->ah[0] = ibv_create_ah(rig.pd, &attr);
    if (!world->ah[0])
        violated("the first address handle: %s", strerror(errno));
}

static void must_end(int err, const char *what, int index)
{
    if (err)
        violated("%s of object %d at the end: %s", what, index, strerror(err));
}

static void end_queues(struct world *world)
{
    for (int i = 0; i < world->groups; i++)
        ibv_detach_mcast(world->group[i].qp, &world->group[i].gid, world->group[i].lid);
    for (int i = 0; i < POOL; i++)
        if (world->qp[i])
            must_end(ibv_destroy_qp(world->qp[i]), "ibv_destroy_qp", i);
    for (int i = 0; i < POOL; i++)
        if (world->srq[i])
            must_end(ibv_destroy_srq(world->srq[i]), "ibv_destroy_srq", i);
    for (int i = 0; i < POOL; i++)
        if (world->cq[i])
            must_end(ibv_destroy_cq(world->cq[i]), "ibv_destroy_cq", i);
    for (int i = 0; i < POOL; i++)
        if (world->xrcd[i])
            must_end(ibv_close_xrcd(world->xrcd[i]), "ibv_close_xrcd", i);
}

void world_end(struct world *world)
{
    end_queues(world);
    for (int i = 0; i < POOL; i++) {
        if (world->mw[i])
            must_end(ibv_dealloc_mw(world->mw[i]), "ibv_dealloc_mw", i);
        if (world->ah[i])
            must_end(ibv_destroy_ah(world->ah[i]), "ibv_destroy_ah", i);
    }
    for (int i = 0; i < POOL; i++)
        if (world->mr[i])
            must_end(ibv_dereg_mr(world->mr[i]), "ibv_dereg_mr", i);
    for (int i = 0; i < POOL; i++) {
        if (world->dm[i])
            must_end(ibv_free_dm(world->dm[i]), "ibv_free_dm", i);
        if (world->pd[i] && i)
            must_end(ibv_dealloc_pd(world->pd[i]), "ibv_dealloc_pd", i);
    }
    must_end(ibv_destroy_comp_channel(world->channel), "ibv_destroy_comp_channel", 0);
    bystander_check();
}
