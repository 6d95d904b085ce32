/* SPDX-License-Identifier: BSD-2-Clause */
/* Inline data: up to which size it is worth it. */
#include "advisers.h"
#include "pair.h"

#include <math.h>

static double largest_size(const struct series *series)
{
    double largest = 0;

    for (unsigned int i = 0; i < series->count; i++)
        largest = fmax(largest, series->points[i].x);
    return largest;
}

static void advise_inline(const struct advice_input *input, struct advice *out)
{
    struct pair pair;
    double limit = 0;

    if (!pair_find(input, "inline", "inline", "copied", "latency", &pair)) {
        advice_none(out, "no 'inline' experiment with the series 'inline' and 'copied'");
        return;
    }
    switch (pair.crossing.kind) {
    case CROSSING_NONE:
        advice_none(out, "inline data is neither clearly faster nor slower");
        return;
    case CROSSING_AT:
        limit = floor(pair.crossing.x);
        advice_say(out,
                   "Send up to %.0f bytes inline: above, it is slower than letting the adapter "
                   "fetch the data.",
                   limit);
        break;
    case CROSSING_FIRST:
        limit = largest_size(pair.first.series);
        advice_say(out, "Send inline whatever fits (%.0f bytes were tried): it is never slower.",
                   limit);
        break;
    case CROSSING_SECOND:
        advice_say(out, "Do not send inline: it is never faster.");
        break;
    }
    advice_found(out, "inline_limit", limit, "B");
    pair_evidence(out, &pair);
    advice_parameter(out, MTL_inline_limit, limit);
}

const struct adviser inline_adviser = {
    .name = "inline-limit",
    .question = "Up to which size is inline data worth it?",
    .advise = advise_inline,
};
