#include "registration.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define MOST_BYTES_PER_POINT (1ull << 30)

/* Used memory is mapped once for each size, and stays for the next turn. */
struct memory {
    const uint64_t *size;
    bool fresh;
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
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (memory->fresh ? 0 : MAP_POPULATE);

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
                          errno == ENOMEM ? "; see 'ulimit -l'" : "");
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

    if (memory->fresh)
        unmap(memory);
    return BENCH_OK;
}

int region_lives(struct bench *bench, const struct cycle_span *used, const struct cycle_span *fresh)
{
    static const cycle_step steps[] = { step_map, step_register, step_deregister, step_unmap,
                                        NULL };
    uint64_t size;
    struct memory touched = { .size = &size }, untouched = { .size = &size, .fresh = true };
    struct cycle cycles[] = {
        { .steps = steps, .spans = used, .span_count = 1, .object = &touched },
        { .steps = steps, .spans = fresh, .span_count = 1, .object = &untouched },
    };
    struct cycle_sweep sweep = { .axis = "size",
                                 .axis_unit = "B",
                                 .values = &bench->settings->sizes,
                                 .limit = bench->adapter->limits.max_mr_size,
                                 .value = &size,
                                 .calls = 1,
                                 .most_total = MOST_BYTES_PER_POINT };
    int status = cycle_measure(bench, &sweep, cycles, fresh ? 2 : 1);

    unmap(&touched);
    unmap(&untouched);
    return status;
}
