#include "sim/model/hca.h"

#include "hca/arena.h"
#include "hca/proc.h"
#include "sim/sched/compute.h"
#include "util/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FRESH_BYTES (1u << 20)
#define SMALLEST_BLOCK 6 /* 64 bytes */

struct world *world;

void *world_alloc(uint64_t size)
{
    void *memory;

    size = round_up(size, 64);
    if (size > FRESH_BYTES / 4)
        return arena_alloc_permanent(size);
    if (world->fresh_left < size) {
        memory = arena_alloc_permanent(FRESH_BYTES);
        if (!memory)
            return NULL;
        world->fresh = memory;
        world->fresh_left = FRESH_BYTES;
    }
    memory = world->fresh;
    world->fresh += size;
    world->fresh_left -= size;
    return memory;
}

void *pool_take(struct pool *pool)
{
    void *block = pool->free;

    pool->used++;
    if (likely(block != NULL)) {
        memcpy(&pool->free, block, sizeof(void *));
        return block;
    }
    block = world_alloc(pool->size);
    if (!block)
        pool->used--;
    return block;
}

void pool_give(struct pool *pool, void *block)
{
    memcpy(block, &pool->free, sizeof(void *));
    pool->free = block;
    pool->used--;
}

static struct pool *block_class(uint64_t size)
{
    unsigned int class = SMALLEST_BLOCK;

    while ((1ull << class) < size)
        class++;
    world->blocks[class].size = 1u << class;
    return &world->blocks[class];
}

void *block_take(uint64_t size)
{
    return pool_take(block_class(size));
}

void block_give(void *block, uint64_t size)
{
    pool_give(block_class(size), block);
}

/* ---- making ---- */

static int read_parameters(void)
{
    char error[512];

    if (!parameters_read(getenv("VERBENA_ADAPTER"), getenv("VERBENA_SET"), &world->parameters,
                         error, sizeof(error)))
        return 0;
    log_error("%s", error);
    return EINVAL;
}

static int read_compute(void)
{
    const char *text = getenv("VERBENA_COMPUTE");
    double factor = 0;
    char error[512];

    if (text && compute_read(text, &factor, error, sizeof(error))) {
        log_error("%s", error);
        return EINVAL;
    }
    compute_set(factor);
    return 0;
}

static int make(void)
{
    int err;

    world = arena_alloc_permanent(sizeof(*world));
    if (!world)
        return ENOMEM;
    world->guest_core = -1;
    world->notes.size = sizeof(struct sim_cqe);
    world->packets.size = sizeof(struct sim_packet);
    world->messages.size = sizeof(struct sim_wqe);
    world->queues.size = sizeof(struct sim_qp);
    world->qp_table = world_alloc((1ull << QP_INDEX_BITS) * sizeof(*world->qp_table));
    if (!world->qp_table)
        return ENOMEM;
    err = read_parameters();
    if (!err)
        err = observe_init();
    return err ? err : hca_init_all();
}

int world_attach(void)
{
    uint64_t root;
    int err = read_compute();

    if (err)
        return err;
    if ((uintptr_t)seg != SIM_BASE_ADDRESS) {
        log_error("the place where modelled fabrics are mapped is taken in this process");
        return ENOMEM;
    }
    shm_lock(&seg->sim_lock);
    root = load_acquire(&seg->sim_root);
    if (root) {
        world = (struct world *)((char *)seg + root);
    } else {
        err = make();
        if (!err)
            store_release(&seg->sim_root, seg_offset(world));
    }
    if (!err)
        err = observe_join(!root);
    shm_unlock(&seg->sim_lock);
    return err;
}
