/* Striping: from which size a message is better cut over two ports than sent through one. */
#include "advisers.h"
#include "pair.h"

static bool find(const struct body *body, struct pair *out)
{
    return pair_find(body, "two-port", "one process binding", "one process striping", "bandwidth",
                     out) ||
           pair_find(body, "two-port", "binding", "striping", "bandwidth", out);
}

static void advise_stripe(const struct body *body, struct advice *out)
{
    struct pair pair;

    if (!find(body, &pair)) {
        advice_silent(out, "there is no 'two-port' with striping and binding");
        return;
    }
    switch (pair.crossing.kind) {
    case CROSSING_NONE:
        advice_silent(out, "striping and binding cannot be told apart");
        return;
    case CROSSING_FIRST:
        advice_silent(out, "striping is never faster than binding");
        return;
    case CROSSING_SECOND:
        advice_say(out, "Stripe messages from %s on over both ports; it is never slower.",
                   advice_size_text(pair.crossing.x));
        break;
    case CROSSING_AT:
        advice_say(out, "Stripe messages from %s on over both ports; smaller ones go through one.",
                   advice_size_text(pair.crossing.x));
        break;
    }
    advice_found(out, "threshold", pair.crossing.x, "B");
    pair_evidence(out, &pair);
    advice_parameter(out, "stripe_threshold", pair.crossing.x);
}

const struct adviser stripe_adviser = {
    .name = "striping-threshold",
    .question = "From which size should messages be striped?",
    .advice_make = advise_stripe,
};
