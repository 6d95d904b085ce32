/* One completion queue, or a round over the queues of all connections. */
#include "advisers.h"
#include "pair.h"

#include <math.h>

static void advise_queue(const struct body *body, struct advice *out)
{
    struct pair pair;
    double from;

    if (!pair_find(body, "multi-vi", "round robin", "completion queue", NULL, &pair)) {
        advice_silent(out, "there is no 'multi-vi' with both ways of finding completions");
        return;
    }
    from = ceil(pair.crossing.x);
    switch (pair.crossing.kind) {
    case CROSSING_NONE:
        advice_silent(out, "one completion queue and a round of many cannot be told apart");
        return;
    case CROSSING_FIRST:
        advice_say(out, "Give each connection a completion queue of its own and go round them: one "
                        "queue for all is never faster.");
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
                   "Use one completion queue from %.0f connections on; with fewer, going round "
                   "the queues of each is faster.",
                   from);
        break;
    }
    advice_found(out, "shared_from", from, "connections");
    pair_evidence(out, &pair);
    advice_parameter(out, "shared_cq_from", from);
}

const struct adviser queue_adviser = {
    .name = "cq-or-round-robin",
    .question = "From how many connections on is one completion queue better?",
    .advice_make = advise_queue,
};
