/* SPDX-License-Identifier: BSD-2-Clause */
#include "mr_lifecycle.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define MAX_BYTES_PER_POINT (1ull << 30)

/* Touched memory is mapped once for each size and kept for the next pass. */
struct memory {
    const uint64_t *size;
    bool untouched;
    void *address;
    size_t length;
    struct ibv_mr *mr;
};

static void unmap(struct memory *memory)
{
    if (memory->address)
        munmap(memory->address, memory->length);
    memory->address = NULL;
}

static int step_map(struct bench *bench, void *object)
{
    struct memory *memory = object;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (memory->untouched ? 0 : MAP_POPULATE);

    if (memory->address && memory->length == *memory->size)
        return BENCH_OK;
    unmap(memory);
    memory->address = mmap(NULL, *memory->size, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory->address == MAP_FAILED) {
        memory->address = NULL;
        return bench_fail(bench, "no %llu bytes of memory: %s", (unsigned long long)*memory->size,
                          strerror(errno));
    }
    memory->length = *memory->size;
    return BENCH_OK;
}

static int step_register(struct bench *bench, void *object)
{
    struct memory *memory = object;

    memory->mr =
        ibv_reg_mr(bench->adapter->pd, memory->address, memory->length,
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    if (!memory->mr)
        return bench_fail(bench, "ibv_reg_mr of %zu bytes: %s%s", memory->length, strerror(errno),
                          adapter_memory_hint(errno));
    return BENCH_OK;
}

static int step_deregister(struct bench *bench, void *object)
{
    int error = ibv_dereg_mr(((struct memory *)object)->mr);

    return error ? bench_fail(bench, "ibv_dereg_mr: %s", strerror(error)) : BENCH_OK;
}

static int step_unmap(struct bench *bench, void *object)
{
    struct memory *memory = object;

    if (memory->untouched)
        unmap(memory);
    return BENCH_OK;
}

int mr_lifecycle_run(struct bench *bench)
{
    static const lifecycle_step steps[] = { step_map, step_register, step_deregister, step_unmap,
                                            NULL };
    const struct mr_lifecycle_spec *spec = bench->experiment->spec;
    uint64_t size;
    struct memory touched = { .size = &size }, untouched = { .size = &size, .untouched = true };
    struct lifecycle lifecycles[] = {
        { .steps = steps, .spans = spec->touched, .object = &touched },
        { .steps = steps, .spans = spec->untouched, .object = &untouched },
    };
    struct lifecycle_sweep sweep = { .axis = "size",
                                     .axis_unit = "B",
                                     .values = &bench->settings->sizes,
                                     .limit = bench->adapter->limits.max_mr_size,
                                     .value = &size,
                                     .calls = 1,
                                     .max_total = MAX_BYTES_PER_POINT };
    int status = lifecycle_measure(bench, &sweep, lifecycles, spec->untouched ? 2 : 1);

    unmap(&touched);
    unmap(&untouched);
    return status;
}
