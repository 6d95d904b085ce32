/* SPDX-License-Identifier: BSD-2-Clause */
/* The cost of registering memory: per call and per page. */
#include "advisers.h"

#include <math.h>

#define PAGE 4096.0

/* Messages are smaller; for larger regions drivers may use another method with another cost. */
#define LARGEST (1 << 20)

/* A line with a larger residual does not fit. */
#define FITS 0.1

static bool cost_of(const struct advice_input *input, const char *experiment, const char *series,
                    struct source *source, struct line *out)
{
    struct curve curve;
    bool fits;

    if (!advice_source_find(input, experiment, series, "time", source))
        return false;
    curve_of(source->series, &curve);
    fits = curve_line(&curve, 0, LARGEST, out) && out->residual < FITS;
    curve_free(&curve);
    out->slope = fmax(0, out->slope) * PAGE;
    return fits;
}

static void advise_registration(const struct advice_input *input, struct advice *out)
{
    struct source on, off;
    struct line make, drop;

    if (!cost_of(input, "mr-reg", "register", &on, &make) ||
        !cost_of(input, "mr-dereg", "deregister", &off, &drop)) {
        advice_none(out, "'mr-reg' and 'mr-dereg' do not follow a line below %s",
                    advice_size_text(LARGEST));
        return;
    }
    advice_say(
        out,
        "Registering takes %s and %s for each 4 KB, deregistering %s and %s: keep buffers registered "
        "that are used again.",
        advice_time_text(make.base), advice_time_text(make.slope), advice_time_text(drop.base),
        advice_time_text(drop.slope));
    advice_found(out, "register_call", make.base, "us");
    advice_found(out, "register_page", make.slope, "us");
    advice_found(out, "deregister_call", drop.base, "us");
    advice_found(out, "deregister_page", drop.slope, "us");
    advice_evidence(out, &on, on.series->points[0].x);
    advice_evidence(out, &off, off.series->points[0].x);
}

const struct adviser registration_adviser = {
    .name = "registration-cost",
    .question = "What does it cost to register memory?",
    .advise = advise_registration,
};
