/* SPDX-License-Identifier: BSD-2-Clause */
/* Copy or register: from which size on registering the user's buffer is cheaper than copying it
 * into a registered one. */
#include "advisers.h"
#include "pair.h"

static void conclude(struct advice *out, double size)
{
    advice_found(out, "break_even", size, "B");
    advice_parameter(out, MTL_eager_limit, size);
}

static bool from_cache_experiment(const struct advice_input *input, struct advice *out)
{
    struct pair pair, cached;

    if (!pair_find(input, "registration-cache", "copy", "register", "time", &pair) ||
        pair.crossing.kind != CROSSING_AT)
        return false;
    pair_evidence(out, &pair);
    conclude(out, pair.crossing.x);
    if (pair_find(input, "registration-cache", "copy", "registered", "time", &cached) &&
        cached.crossing.kind == CROSSING_AT) {
        advice_say(out,
                   "Copy messages below %s into registered buffers, register those above; if a "
                   "registration can be reused, register from %s on.",
                   advice_size_text(pair.crossing.x), advice_size_text(cached.crossing.x));
        advice_found(out, "break_even_cached", cached.crossing.x, "B");
        pair_evidence(out, &cached);
    } else {
        advice_say(out, "Copy messages below %s into registered buffers, register those above.",
                   advice_size_text(pair.crossing.x));
    }
    return true;
}

/* Computes copy times at the sizes for which registration costs are known. MB/s are bytes per us.
 */
static void copy_times(const struct curve *cost, double bandwidth, struct curve *out)
{
    for (unsigned int i = 0; i < cost->count; i++)
        out->y[i] = cost->x[i] / bandwidth;
}

static bool from_parts(const struct advice_input *input, struct advice *out)
{
    struct source on, off, copy;
    struct curve cost, release, rates, copying;
    struct crossing crossing;
    unsigned int best = 0;

    if (!advice_source_find(input, "mr-reg", "register", "time", &on) ||
        !advice_source_find(input, "mr-dereg", "deregister", "time", &off) ||
        !advice_source_find(input, "strided", "local", "bandwidth", &copy))
        return false;
    curve_of(on.series, &cost);
    curve_of(off.series, &release);
    curve_of(copy.series, &rates);
    curves_match(&cost, &release);
    curve_of(on.series, &copying);
    for (unsigned int i = 1; i < rates.count; i++)
        best = rates.y[i] > rates.y[best] ? i : best;
    curves_match(&copying, &release);
    for (unsigned int i = 0; i < cost.count; i++)
        cost.y[i] += release.y[i];
    if (rates.count)
        copy_times(&cost, rates.y[best], &copying);
    copying.exact = advice_source_is_exact(&copy);
    cost.exact = advice_source_is_exact(&on) && advice_source_is_exact(&off);
    crossing = crossing_find(&copying, &cost, BETTER_LOWER);
    if (crossing.kind == CROSSING_AT) {
        advice_say(out,
                   "Copy messages below %s into registered buffers, register those above (from the "
                   "times to register and deregister, and the rate of local copies).",
                   advice_size_text(crossing.x));
        conclude(out, crossing.x);
        advice_evidence(out, &on, cost.x[crossing.below]);
        advice_evidence(out, &off, cost.x[crossing.below]);
        advice_evidence(out, &copy, rates.x[best]);
    }
    curve_free(&cost);
    curve_free(&release);
    curve_free(&rates);
    curve_free(&copying);
    return crossing.kind == CROSSING_AT;
}

static void advise_register(const struct advice_input *input, struct advice *out)
{
    if (!from_cache_experiment(input, out) && !from_parts(input, out))
        advice_none(out, "copying and registering do not cost the same at any measured size");
}

const struct adviser register_adviser = {
    .name = "copy-or-register",
    .question = "From which size is registering cheaper than copying?",
    .advise = advise_register,
};
