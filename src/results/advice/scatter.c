/* SPDX-License-Identifier: BSD-2-Clause */
/* Scatter or copy: whether the adapter or the processor should scatter noncontiguous data. */
#include "advisers.h"
#include "pair.h"

#include <string.h>

static bool find(const struct advice_input *input, struct pair *out)
{
    return pair_find(input, "scatter", "copy", "adapter", "bandwidth", out) ||
           pair_find(input, "strided", "transfer then store", "scatter by adapter", NULL, out);
}

static void advise_scatter(const struct advice_input *input, struct advice *out)
{
    struct pair pair;
    const char *axis;

    if (!find(input, &pair)) {
        advice_none(out, "neither 'scatter' nor 'strided' was measured both ways");
        return;
    }
    axis = pair.first.series->axis;
    switch (pair.crossing.kind) {
    case CROSSING_NONE:
        advice_none(out, "scattering by the adapter and copying are indistinguishable");
        return;
    case CROSSING_FIRST:
        advice_say(out, "Send in one piece and copy: the adapter's scatter is never faster.");
        pair_evidence(out, &pair);
        return;
    case CROSSING_SECOND:
        advice_say(out, "Let the adapter scatter: it is never slower, and faster from %s %s on.",
                   axis, advice_size_text(pair.crossing.x));
        break;
    case CROSSING_AT:
        advice_say(out, "Let the adapter scatter from %s %s on; below, send in one piece and copy.",
                   axis, advice_size_text(pair.crossing.x));
        break;
    }
    advice_found(out, "scatter_from", pair.crossing.x, pair.first.series->axis_unit);
    pair_evidence(out, &pair);
}

const struct adviser scatter_adviser = {
    .name = "scatter-or-copy",
    .question = "From which block size should the adapter scatter?",
    .advise = advise_scatter,
};
