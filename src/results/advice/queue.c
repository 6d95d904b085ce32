/* SPDX-License-Identifier: BSD-2-Clause */
/* One completion queue for all connections, or one for each, polled round robin. */
#include "advisers.h"
#include "pair.h"

#include <math.h>

static void advise_queue(const struct advice_input *input, struct advice *out)
{
    struct pair pair;
    double from;

    if (!pair_find(input, "multi-vi", "round robin", "completion queue", NULL, &pair)) {
        advice_none(out, "no 'multi-vi' experiment with both ways of finding completions");
        return;
    }
    from = ceil(pair.crossing.x);
    switch (pair.crossing.kind) {
    case CROSSING_NONE:
        advice_none(out, "one completion queue and round robin over many are indistinguishable");
        return;
    case CROSSING_FIRST:
        advice_say(out, "Give each connection its own completion queue and poll them round robin: "
                        "one queue for all is never faster.");
        pair_evidence(out, &pair);
        return;
    case CROSSING_SECOND:
        advice_say(out,
                   "Use one completion queue for all connections: it is never slower, and "
                   "faster from %.0f connections on.",
                   from);
        break;
    case CROSSING_AT:
        advice_say(out,
                   "Use one completion queue from %.0f connections on; with fewer, polling "
                   "a queue for each round robin is faster.",
                   from);
        break;
    }
    advice_found(out, "shared_from", from, "connections");
    pair_evidence(out, &pair);
}

const struct adviser queue_adviser = {
    .name = "cq-or-round-robin",
    .question = "From how many connections on is one completion queue better?",
    .advise = advise_queue,
};
