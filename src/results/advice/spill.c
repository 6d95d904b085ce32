/* SPDX-License-Identifier: BSD-2-Clause */
/* How many queue pairs or memory regions fit into the adapter's context cache. */
#include "advisers.h"

#include <math.h>

/* Neighbouring points no further apart than this ratio give a number, others a range. */
#define NUMBER_RATIO 1.15

struct subject {
    const char *things; /* queue pairs or regions */
    const char *cached; /* what the adapter caches for each */
    bool is_qps;        /* else nothing can be set: a smaller cache of registrations would register more
                         * often, which costs more than the misses */
};

static void say(struct advice *out, const struct subject *subject, const struct source *source,
                double fits, double spills, const struct step *step)
{
    const struct series *series = source->series;
    double rise = 100 * (step->high / step->low - 1);

    if (spills <= NUMBER_RATIO * fits)
        advice_say(out,
                   "Keep no more than %.0f %s busy: beyond, %s rises by %.0f%%, from %s to %s; the "
                   "adapter seems to cache %s of about %.0f.",
                   fits, subject->things, series->quantity, rise,
                   advice_quantity_text(step->low, series->unit),
                   advice_quantity_text(step->high, series->unit), subject->cached, fits);
    else
        advice_say(out,
                   "Keep no more than %.0f %s busy: at %.0f, %s has risen by %.0f%%, from %s to %s; "
                   "the adapter seems to cache %s of %.0f to %.0f.",
                   fits, subject->things, spills, series->quantity, rise,
                   advice_quantity_text(step->low, series->unit),
                   advice_quantity_text(step->high, series->unit), subject->cached, fits,
                   spills - 1);
}

static void look_for_step(struct advice *out, const struct subject *subject,
                          const struct source *source)
{
    struct curve curve;
    struct step step;
    double fits, spills;

    curve_of(source->series, &curve);
    if (step_find(&curve, &step)) {
        fits = floor(step.corner);
        spills = curve.x[step.last_low + 1];
        say(out, subject, source, fits, spills, &step);
        advice_found(out, "fits", fits, subject->things);
        advice_found(out, "spills", spills, subject->things);
        advice_found(out, "rise", step.high / step.low, "times");
        advice_evidence(out, source, curve.x[step.last_low]);
        advice_evidence(out, source, spills);
        if (subject->is_qps)
            advice_parameter(out, MTL_active_qps, fits);
    } else {
        advice_none(out, "%s shows no step up to %.0f %s", source->series->quantity,
                    curve.count ? curve.x[curve.count - 1] : 0, subject->things);
    }
    curve_free(&curve);
}

static void advise_spill(const struct advice_input *input, struct advice *out)
{
    static const struct subject queue_pairs = { "queue pairs", "the contexts", true };
    struct source source;

    if (advice_source_find(input, "icm-qp", "first QP", "latency", &source) ||
        advice_source_find(input, "multi-qp", "latency", "latency", &source))
        look_for_step(out, &queue_pairs, &source);
    else
        advice_none(out, "neither 'icm-qp' nor 'multi-qp' has a latency");
}

const struct adviser spill_adviser = {
    .name = "qps-before-spill",
    .question = "How many queue pairs does the adapter's cache hold?",
    .advise = advise_spill,
};

static void advise_region(const struct advice_input *input, struct advice *out)
{
    static const struct subject regions = { "regions", "the translations", false };
    struct source source;

    if (advice_source_along(input, "icm-mtt", "regions", &source) &&
        source.series->better == BETTER_LOWER)
        look_for_step(out, &regions, &source);
    else
        advice_none(out, "no 'icm-mtt' experiment over the number of regions");
}

const struct adviser region_adviser = {
    .name = "regions-before-spill",
    .question = "How many regions does the adapter's cache hold?",
    .advise = advise_region,
};
