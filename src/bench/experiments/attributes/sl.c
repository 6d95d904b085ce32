/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether service levels differ, and whether one is protected from the traffic of another. */
#include "runs.h"
#include "bench/measure/background_load.h"
#include "bench/measure/pingpong.h"
#include "bench/measure/sampling.h"
#include "bench/measure/variants.h"

#define LOAD_SIZE  65536
#define LOAD_DEPTH 8

struct protection {
    struct bench *bench;
    struct flow flow; /* between ranks 0 and 1 */
    struct star load;
};

/* Tries to create an address handle of the port itself with this level. */
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

/* Adds the levels that all ranks support. */
static int choose_levels(struct bench *bench, struct variants *variants)
{
    const struct number_list *levels = &bench->settings->levels;
    bool mine[NUMBERS_MAX], all[CONTROL_RANKS_MAX * NUMBERS_MAX];

    for (unsigned int i = 0; i < levels->count; i++)
        mine[i] = level_works(bench, levels->value[i]);
    if (bench_exchange(bench, mine, levels->count, all))
        return BENCH_FAILED;
    for (unsigned int i = 0; i < levels->count; i++) {
        unsigned int level = levels->value[i];
        struct flow_spec *spec;
        bool works = true;

        for (int rank = 0; rank < bench->ranks; rank++)
            works &= all[rank * levels->count + i];
        if (!works) {
            bench_note(bench, "left out", "level %u, which the device refuses", level);
            continue;
        }
        spec = variants_add(variants, "sl %u", level);
        if (!spec)
            return bench_fail(bench, "more than %u levels", VARIANTS_MAX);
        spec->sl = level;
        spec->peer = background_load_peer(bench);
    }
    return BENCH_OK;
}

/* ---- beside background load ---- */

static int end_load(void *context)
{
    struct star *load = context;

    return background_load_stop(load, load->count);
}

static int run_beside(void *context, uint64_t warmup, struct histogram *samples)
{
    struct protection *protection = context;
    struct bench *bench = protection->bench;
    struct pingpong_plan plan = { .iterations = bench->settings->iterations,
                                  .warmup = warmup,
                                  .after = end_load,
                                  .after_context = &protection->load };

    if (bench->rank < BACKGROUND_LOAD_FIRST_RANK)
        return pingpong_run(&protection->flow, &plan, samples);
    return bench_barrier(bench) || background_load_run(star_flow(bench, &protection->load)) ||
                   bench_barrier(bench)
               ? BENCH_FAILED
               : BENCH_OK;
}

static int measure_beside(struct protection *protection, const struct flow_spec *spec,
                          struct summary *out)
{
    int status;

    if (flow_open(protection->bench, spec, &protection->flow))
        return BENCH_FAILED;
    status = sampling_iterations(protection->bench, run_beside, protection,
                                 pingpong_scale(spec->operation), out);
    flow_close(&protection->flow);
    return status;
}

/* Every further node writes to rank 0, at the first level. */
static int open_load(const struct variants *variants, struct protection *protection)
{
    struct flow_spec spec;

    flow_defaults(variants->bench, -1, &spec);
    spec.operation = OPERATION_WRITE;
    spec.size = LOAD_SIZE;
    spec.depth = LOAD_DEPTH;
    spec.sl = variants->specs[0].sl;
    return background_load_open(variants->bench, &spec, &protection->load);
}

static int measure_protection(const struct variants *variants)
{
    struct bench *bench = variants->bench;
    struct protection protection = { .bench = bench };
    int status = open_load(variants, &protection);

    if (status)
        return BENCH_FAILED;
    bench_panel(bench, &(struct panel_spec){ .quantity = "latency beside load",
                                             .unit = "us",
                                             .axis = "size",
                                             .axis_unit = "B",
                                             .better = BETTER_LOWER,
                                             .count = variants->count,
                                             .names = variants->names.list });
    for (unsigned int i = 0; i < variants->count && !status; i++) {
        struct flow_spec spec = variants->specs[i];
        struct summary summary;

        spec.size = bench->settings->sizes.value[0];
        status = measure_beside(&protection, &spec, &summary);
        if (!status)
            bench_point(bench, i, spec.size, &summary);
    }
    star_close(&protection.load);
    return status;
}

int sl_run(struct bench *bench)
{
    struct variants variants = { .bench = bench };

    if (choose_levels(bench, &variants))
        return BENCH_FAILED;
    if (!variants.count)
        return bench_skip(bench, "the device refuses every service level");
    if (variants_measure(&variants))
        return BENCH_FAILED;
    return bench->ranks > BACKGROUND_LOAD_FIRST_RANK ? measure_protection(&variants) : BENCH_OK;
}
