/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows and signalling intervals: the smallest that gives nearly the best performance. */
#include "advisers.h"

#define ENOUGH 0.95

struct knob {
    const char *experiment;
    const char *axis;
    const char *found;
    enum mtl_number parameter;
    const char *before, *after; /* the advice before and after the number */
};

static void advise_level(const struct advice_input *input, const struct knob *knob,
                         struct advice *out)
{
    struct source source;
    struct curve curve;
    unsigned int first;
    double level;

    if (!advice_source_along(input, knob->experiment, knob->axis, &source)) {
        advice_none(out, "no '%s' experiment over the %s", knob->experiment, knob->axis);
        return;
    }
    curve_of(source.series, &curve);
    if (curve_levels_off(&curve, source.series->better, ENOUGH, &first, &level)) {
        advice_say(out, "%s %.0f %s: that reaches %s; more gives %s.", knob->before,
                   curve.x[first], knob->after,
                   advice_quantity_text(curve.y[first], source.series->unit),
                   advice_quantity_text(level, source.series->unit));
        advice_found(out, knob->found, curve.x[first], "requests");
        advice_evidence(out, &source, curve.x[0]);
        advice_evidence(out, &source, curve.x[first]);
        advice_evidence(out, &source, curve.x[curve.count - 1]);
        advice_parameter(out, knob->parameter, curve.x[first]);
    } else {
        advice_none(out, "the %s makes no difference, or the curve has not levelled off",
                    knob->axis);
    }
    curve_free(&curve);
}

static void advise_window(const struct advice_input *input, struct advice *out)
{
    static const struct knob window = { "bw",       "window", "window",
                                        MTL_window, "Keep",   "requests outstanding" };

    advise_level(input, &window, out);
}

const struct adviser window_adviser = {
    .name = "window",
    .question = "How many requests should be outstanding?",
    .advise = advise_window,
};

static void advise_signal(const struct advice_input *input, struct advice *out)
{
    static const struct knob interval = { "signal", "interval", "signal_interval",
                                          MTL_signal_interval, "Ask for one completion in", "sends" };

    advise_level(input, &interval, out);
}

const struct adviser signal_adviser = {
    .name = "signal-interval",
    .question = "How often should a send be signalled?",
    .advise = advise_signal,
};
