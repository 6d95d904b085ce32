/* SPDX-License-Identifier: BSD-2-Clause */
#include "star.h"

#include <stdlib.h>

static int peer_in_star(const struct bench *bench, int other)
{
    if (!bench->rank)
        return other;
    return bench->rank == other ? 0 : -1;
}

int star_open(struct bench *bench, const struct flow_spec *spec, int first, unsigned int count,
              struct star *out)
{
    struct flow_spec one = *spec;

    *out = (struct star){ .first = first, .flows = calloc(count + 1, sizeof(*out->flows)) };
    if (!out->flows)
        return bench_fail(bench, "out of memory");
    for (; out->count < count; out->count++) {
        one.peer = peer_in_star(bench, first + out->count);
        if (flow_open(bench, &one, &out->flows[out->count])) {
            star_close(out);
            return BENCH_FAILED;
        }
    }
    return BENCH_OK;
}

void star_close(struct star *star)
{
    for (unsigned int i = 0; i < star->count; i++)
        flow_close(&star->flows[i]);
    free(star->flows);
    *star = (struct star){ 0 };
}

struct flow *star_flow(const struct bench *bench, const struct star *star)
{
    int index = bench->rank - star->first;

    return index >= 0 && index < (int)star->count ? &star->flows[index] : NULL;
}
