/* Few buffers in turn: does the adapter remember the addresses of all of them? */
#include "reuse.h"

static unsigned int length_of(const struct bench *bench, unsigned int percent, const char **why)
{
    (void)bench;
    if (!percent)
        *why = "has no meaning in this scheme: the buffers would have no end";
    else if (100 % percent)
        *why = "is left out: 100 divided by it is no whole number of buffers";
    return *why ? 0 : 100 / percent;
}

static void order_of(unsigned int percent, unsigned int length, unsigned int *buffers)
{
    (void)percent;
    for (unsigned int i = 0; i < length; i++)
        buffers[i] = i;
}

static int run(struct bench *bench)
{
    static const struct reuse_scheme scheme = { .length = length_of, .order = order_of };

    return reuse_measure(bench, &scheme);
}

const struct experiment experiment_reuse_1 = {
    .name = "reuse-1",
    .group = "translation",
    .title = "Does the adapter remember where several buffers lie?",
    .source = "MIBA section 5.2.2, scheme 1, and figures 6a and 6b",
    .options = "--sizes 2..64K --reuse 100,50,25,10,5,1 --iterations 1000",
    .quick = "--sizes 8,4K,64K --reuse 100,25,1 --iterations 200 --repetitions 3",
    .ranks = 2,
    .run = run,
};
