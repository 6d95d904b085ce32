/* SPDX-License-Identifier: BSD-2-Clause */
/* Striping: from which size on a message should be split over two ports. */
#include "advisers.h"
#include "pair.h"

static bool find(const struct advice_input *input, struct pair *out)
{
    return pair_find(input, "two-port", "one process binding", "one process striping", "bandwidth",
                     out) ||
           pair_find(input, "two-port", "binding", "striping", "bandwidth", out);
}

static void advise_stripe(const struct advice_input *input, struct advice *out)
{
    struct pair pair;

    if (!find(input, &pair)) {
        advice_none(out, "no 'two-port' experiment with striping and binding");
        return;
    }
    switch (pair.crossing.kind) {
    case CROSSING_NONE:
        advice_none(out, "striping and binding are indistinguishable");
        return;
    case CROSSING_FIRST:
        advice_none(out, "striping is never faster than binding");
        return;
    case CROSSING_SECOND:
        advice_say(out, "Stripe messages from %s on over both ports; it is never slower.",
                   advice_size_text(pair.crossing.x));
        break;
    case CROSSING_AT:
        advice_say(out,
                   "Stripe messages from %s on over both ports; send smaller ones through one.",
                   advice_size_text(pair.crossing.x));
        break;
    }
    advice_found(out, "threshold", pair.crossing.x, "B");
    pair_evidence(out, &pair);
    advice_parameter(out, MTL_stripe_threshold, pair.crossing.x);
}

const struct adviser stripe_adviser = {
    .name = "striping-threshold",
    .question = "From which size should messages be striped?",
    .advise = advise_stripe,
};
