/* Whether the service levels differ. */
#include "variants.h"

/* An address of the port itself, with this level: the device says whether it knows it. */
static bool level_works(const struct bench *bench, uint8_t level)
{
    const struct adapter *adapter = bench->adapter;
    struct ibv_ah_attr path = {
        .dlid = adapter->port_attributes.lid,
        .sl = level,
        .port_num = adapter->port,
        .is_global = adapter->global,
        .grh = { .dgid = adapter->gid, .sgid_index = adapter->gid_index, .hop_limit = 1 },
    };
    struct ibv_ah *handle = ibv_create_ah(adapter->pd, &path);

    if (handle)
        ibv_destroy_ah(handle);
    return handle;
}

/* Levels that both sides know. */
static int choose_levels(struct bench *bench, struct variants *variants)
{
    const struct number_list *levels = &bench->settings->levels;
    bool mine[NUMBERS_MAX], all[2 * NUMBERS_MAX];

    for (unsigned int i = 0; i < levels->count; i++)
        mine[i] = level_works(bench, levels->value[i]);
    if (bench_exchange(bench, mine, levels->count, all))
        return BENCH_FAILED;
    for (unsigned int i = 0; i < levels->count; i++) {
        unsigned int level = levels->value[i];
        struct flow_spec *spec;

        if (!all[i] || !all[levels->count + i]) {
            bench_note(bench, "left out", "level %u, which the device refuses", level);
            continue;
        }
        spec = variants_add(variants, "sl %u", level);
        if (!spec)
            return bench_fail(bench, "more than %u levels", VARIANTS_MAX);
        spec->sl = level;
    }
    return BENCH_OK;
}

static int run(struct bench *bench)
{
    struct variants variants = { .bench = bench };

    if (choose_levels(bench, &variants))
        return BENCH_FAILED;
    if (!variants.count)
        return bench_skip(bench, "the device refuses every service level");
    return variants_measure(&variants);
}

const struct experiment experiment_sl = {
    .name = "sl",
    .group = "attributes",
    .title = "Do the service levels differ?",
    .source = "MIBA section 2; measured as its figures 5a and 5b",
    .options = "--sizes 8,4K,64K,1M --levels 0..7:1 --iterations 1000",
    .quick = "--sizes 8,64K --levels 0,1,7 --iterations 200 --repetitions 3",
    .ranks = 2,
    .run = run,
};
