/* SPDX-License-Identifier: BSD-2-Clause */
#include "replay/fabric.h"

#include "hca/segment.h"
#include "sim/model/model.h"
#include "sim/model/owned_qp.h"

#include <sys/mman.h>

/* Reserved; the kernel provides what is used. */
#define LARGEST_RESERVE  (1ull << 40)
#define SMALLEST_RESERVE (1ull << 30)

/* Unicast LIDs end at 0xbfff (InfiniBand Architecture Specification, volume 1, 4.1.3). */
#define LIDS 0xbfff

static char *memory;
static uint64_t memory_size;

static void *reserve(uint64_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1, 0);

    return at == MAP_FAILED ? NULL : at;
}

static bool open_memory(void)
{
    for (memory_size = LARGEST_RESERVE; memory_size >= SMALLEST_RESERVE; memory_size /= 2) {
        memory = reserve(memory_size);
        if (memory)
            break;
    }
    if (!memory)
        return false;
    madvise(memory, memory_size, MADV_HUGEPAGE); /* fewer TLB misses; works without, too */
    pool_memory = (struct pool_memory *)memory;
    pool_memory->is_private = true;
    pool_memory->fresh = memory + round_up(sizeof(*pool_memory), CACHE_LINE);
    pool_memory->fresh_left = memory_size - (pool_memory->fresh - memory);
    seg = reserve(sizeof(*seg));
    sched = pool_alloc_permanent(sizeof(*sched));
    model = pool_alloc_permanent(sizeof(*model));
    return seg && sched && model;
}

static int read_parameters(const struct replay_settings *settings, char *error, size_t size)
{
    if (replay_settings_parameters(settings, &model->parameters, error, size))
        return -1;
    return settings->faults && faults_read(settings->faults, &model->faults, error, size) ? -1 : 0;
}

int fabric_open(const struct replay_settings *settings, const struct fabric_size *wanted,
                char *error, size_t size)
{
    uint32_t paths = wanted->devices * wanted->ports;

    if (!open_memory())
        return goal_fail(error, size, "cannot reserve %llu MiB of address space for the model",
                         SMALLEST_RESERVE >> 20);
    if (read_parameters(settings, error, size))
        return -1;
    if ((uint64_t)wanted->nodes * paths > LIDS)
        return goal_fail(error, size,
                         "%u nodes with %u ports each: InfiniBand addresses %u ports in a subnet; "
                         "raise --ranks-per-node",
                         wanted->nodes, paths, LIDS);
    seg->nodes = wanted->nodes;
    seg->devices = wanted->devices;
    seg->ports = wanted->ports;
    seg->first_lid = 1;
    model->qp_index_bits = 4;
    while (model->qp_index_bits < 31 && 1ull << model->qp_index_bits < wanted->qps + 2)
        model->qp_index_bits++;
    if (model_init())
        return goal_fail(error, size, "cannot create a fabric of %u nodes", wanted->nodes);
    owned_qp_init();
    return 0;
}

uint64_t fabric_memory(void)
{
    return memory_size - pool_memory->fresh_left;
}
