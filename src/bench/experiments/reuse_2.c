/* One buffer again and again, and between its uses always new ones: what does an address cost that
 * the adapter has not seen? */
#include "reuse.h"

#include <unistd.h>

/* What the buffers of one side may take each way; beyond it the new ones come round again. */
#define MEMORY_MAX (64ull << 20)

static uint64_t buffers_of(size_t size)
{
    uint64_t page = sysconf(_SC_PAGESIZE), bytes = (size / page + 1) * page;

    return bytes < MEMORY_MAX ? MEMORY_MAX / bytes : 1;
}

static unsigned int length_of(const struct bench *bench, unsigned int percent, const char **why)
{
    uint64_t messages = bench->settings->iterations + bench->settings->warmup;

    (void)why;
    if (percent == 100)
        return 1;
    return messages < buffers_of(0) ? messages : buffers_of(0);
}

static void order_of(unsigned int percent, unsigned int length, unsigned int *buffers)
{
    unsigned int fresh = 0;

    for (unsigned int i = 0; i < length; i++)
        buffers[i] = (uint64_t)i * percent % 100 < percent ? 0 : ++fresh;
}

/* Cut to what the memory holds, where the common buffer would be next if there is one. */
static void fit(struct flow_spec *spec)
{
    const unsigned int *buffers = spec->buffer_of;
    uint64_t most = buffers_of(spec->size);
    unsigned int end = 0;

    while (end < spec->slots && buffers[end] <= most)
        end++;
    while (end < spec->slots && end > 1 && !buffers[0] && buffers[end])
        end--;
    spec->slots = end;
}

static int run(struct bench *bench)
{
    static const struct reuse_scheme scheme = { .length = length_of,
                                                .order = order_of,
                                                .fit = fit };

    return reuse_measure(bench, &scheme);
}

const struct experiment experiment_reuse_2 = {
    .name = "reuse-2",
    .group = "translation",
    .title = "What does an address cost that the adapter has not seen?",
    .source = "MIBA section 5.2.2, scheme 2, and figures 6c and 6d; Mem/MemFree table 1",
    .options = "--sizes 2..1M --reuse 100,75,50,25,0 --iterations 1000",
    .quick = "--sizes 8,4K,64K --reuse 100,50,0 --iterations 200 --repetitions 3",
    .ranks = 2,
    .run = run,
};
