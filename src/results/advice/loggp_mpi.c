/* SPDX-License-Identifier: BSD-2-Clause */
/* LogGP parameters of MPI messages. A library sends short, middle and long messages in different
 * ways: inline, through copies, after asking the receiver. Each has a line of its own. */
#include "advisers.h"

#include <math.h>
#include <string.h>

#define REGIMES_MAX 4
/* No point is further from its line, unless that takes too many lines. */
#define TOLERANCE  0.035
#define TEXT_BYTES 512

struct regime {
    unsigned int first, count; /* points of the curve */
    double base, slope;
    double off; /* of the point that fits worst, relative */
};

/* A line by least relative squares. */
static void fit(const struct curve *curve, struct regime *regime)
{
    double w = 0, wx = 0, wxx = 0, wy = 0, wxy = 0, d;

    for (unsigned int i = regime->first; i < regime->first + regime->count; i++) {
        double x = curve->x[i], y = curve->y[i], weight = 1 / (y * y);

        w += weight;
        wx += weight * x;
        wxx += weight * x * x;
        wy += weight * y;
        wxy += weight * x * y;
    }
    d = w * wxx - wx * wx;
    regime->slope = regime->count > 1 ? fmax(0, (w * wxy - wx * wy) / d) : 0;
    regime->base = (wy - regime->slope * wx) / w;
    regime->off = 0;
    for (unsigned int i = regime->first; i < regime->first + regime->count; i++)
        regime->off =
            fmax(regime->off,
                 fabs(regime->base + regime->slope * curve->x[i] - curve->y[i]) / curve->y[i]);
}

/* The longest regime that begins with this point. */
static struct regime longest(const struct curve *curve, unsigned int first, double tolerance)
{
    struct regime found = { .first = first, .count = 1 }, more = found;

    fit(curve, &found);
    while (first + more.count < curve->count) {
        more.count++;
        fit(curve, &more);
        if (more.off > tolerance || more.base < 0)
            break;
        found = more;
    }
    return found;
}

static unsigned int divide(const struct curve *curve, struct regime regimes[REGIMES_MAX])
{
    for (double tolerance = TOLERANCE;; tolerance *= 2) {
        unsigned int count = 0, next = 0;

        while (next < curve->count && count < REGIMES_MAX) {
            regimes[count] = longest(curve, next, tolerance);
            next += regimes[count++].count;
        }
        if (next == curve->count)
            return count;
    }
}

static void tell(const struct curve *curve, const struct regime *regimes, unsigned int count,
                 struct advice *out)
{
    static const char *const names[REGIMES_MAX][3] = { { "to_1", "step_1", "G_1" },
                                                       { "to_2", "step_2", "G_2" },
                                                       { "to_3", "step_3", "G_3" },
                                                       { "to_4", "step_4", "G_4" } };
    char text[TEXT_BYTES] = "";
    double off = 0;

    for (unsigned int i = 0; i < count; i++) {
        const struct regime *regime = &regimes[i];
        double last = curve->x[regime->first + regime->count - 1];
        size_t used = strlen(text);

        snprintf(text + used, sizeof(text) - used, "%sup to %s: %s, G %.3g ns/B", i ? "; " : "",
                 advice_size_text(last), advice_time_text(regime->base), 1000 * regime->slope);
        advice_found(out, names[i][0], last, "B");
        advice_found(out, names[i][1], regime->base, "us");
        advice_found(out, names[i][2], 1000 * regime->slope, "ns/B");
        off = fmax(off, regime->off);
    }
    advice_found(out, "deviation", off, "");
    advice_say(
        out,
        "LogGP of MPI messages, o_s + L + o_r and G: %s (no latency is off by more than %.1f%%).",
        text, 100 * off);
}

static void advise_loggp_mpi(const struct advice_input *input, struct advice *out)
{
    struct regime regimes[REGIMES_MAX];
    struct source source;
    struct curve curve;

    if (!advice_source_find(input, "mpi-latency", "", "latency", &source)) {
        advice_none(out, "needs 'mpi-latency'");
        return;
    }
    curve_of(source.series, &curve);
    if (curve.count < 3) {
        advice_none(out, "'mpi-latency' has fewer than three sizes");
    } else {
        unsigned int count = divide(&curve, regimes);

        tell(&curve, regimes, count, out);
        for (unsigned int i = 0; i < count; i++)
            advice_evidence(out, &source, curve.x[regimes[i].first + regimes[i].count - 1]);
    }
    curve_free(&curve);
}

const struct adviser loggp_mpi_adviser = {
    .name = "loggp-mpi",
    .question = "What are the LogGP parameters of MPI messages?",
    .advise = advise_loggp_mpi,
};
