#include "segments.h"

int segment_sweep_init(struct bench *bench, const char *one, const char *many,
                       bool (*point)(const struct sweep *sweep, unsigned int curve, uint64_t size,
                                     struct flow_spec *spec),
                       struct segment_sweep *out)
{
    if (keep_up_to(bench, &bench->settings->segments, bench->adapter->limits.max_sge,
                   "segments per message", &out->counts))
        return BENCH_FAILED;
    name_counts(&out->names, &out->counts, one, many);
    out->sweep = (struct sweep){ .axis = "size",
                                 .axis_unit = "B",
                                 .values = &bench->settings->sizes,
                                 .curves = out->counts.count,
                                 .names = out->names.list,
                                 .point = point,
                                 .context = &out->counts };
    return BENCH_OK;
}
