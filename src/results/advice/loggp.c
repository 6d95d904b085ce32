/* SPDX-License-Identifier: BSD-2-Clause */
/* The parameters of the LogGP model: latency, overheads, gap between messages, gap per byte. */
#include "advisers.h"

#include <math.h>
#include <string.h>

/* From this size on, the time of a message is dominated by its bytes. */
#define LONG 8192

struct measured {
    struct source source;
    double x;
    double value; /* us, or a million per second */
};

static double in_microseconds(const struct series *series, double value)
{
    return strcmp(series->unit, "ns") ? value : value / 1000;
}

/* Finds the point of the series with the smallest x. */
static bool first_point(const struct advice_input *input, const char *experiment, const char *name,
                        const char *quantity, struct measured *out)
{
    struct curve curve;

    if (!advice_source_find(input, experiment, name, quantity, &out->source))
        return false;
    curve_of(out->source.series, &curve);
    if (curve.count) {
        out->x = curve.x[0];
        out->value = in_microseconds(out->source.series, curve.y[0]);
    }
    curve_free(&curve);
    return curve.count;
}

static bool find_latency(const struct advice_input *input, struct measured *out)
{
    return first_point(input, "latency", "send poll", "latency", out) ||
           first_point(input, "latency", "send", "latency", out) ||
           first_point(input, "latency", "write", "latency", out);
}

static bool gap_per_byte(const struct measured *latency, struct line *out)
{
    struct curve curve;
    bool fits;

    curve_of(latency->source.series, &curve);
    fits = curve_line(&curve, LONG, INFINITY, out) && out->slope > 0;
    curve_free(&curve);
    return fits;
}

static void advise_loggp(const struct advice_input *input, struct advice *out)
{
    struct measured latency, send, receive, poll, rate;
    struct line line;
    double overhead, wire, gap;

    if (!find_latency(input, &latency) || !first_point(input, "post-send", "", "time", &send) ||
        !first_point(input, "post-recv", "", "time", &receive) ||
        !first_point(input, "poll-hit", "", "time", &poll) ||
        !first_point(input, "msg-rate", "", "rate", &rate)) {
        advice_none(out, "needs 'latency', 'post-send', 'post-recv', 'poll-hit' and 'msg-rate'");
        return;
    }
    if (!gap_per_byte(&latency, &line)) {
        advice_none(out, "'latency' has fewer than three sizes from %d bytes on", LONG);
        return;
    }
    overhead = receive.value + poll.value;
    wire = fmax(0, latency.value - send.value - overhead);
    gap = 1 / rate.value;
    advice_say(out,
               "LogGP: L %s, o_s %s, o_r %s, g %s, G %.3g ns/B (a line through the latencies from %s "
               "on, off by %.1f%%).",
               advice_time_text(wire), advice_time_text(send.value), advice_time_text(overhead),
               advice_time_text(gap), 1000 * line.slope, advice_size_text(LONG),
               100 * line.residual);
    advice_found(out, "L", wire, "us");
    advice_found(out, "o_s", send.value, "us");
    advice_found(out, "o_r", overhead, "us");
    advice_found(out, "g", gap, "us");
    advice_found(out, "G", 1000 * line.slope, "ns/B");
    advice_found(out, "residual", line.residual, "");
    advice_evidence(out, &latency.source, latency.x);
    advice_evidence(out, &send.source, send.x);
    advice_evidence(out, &receive.source, receive.x);
    advice_evidence(out, &poll.source, poll.x);
    advice_evidence(out, &rate.source, rate.x);
}

const struct adviser loggp_adviser = {
    .name = "loggp",
    .question = "What are the LogGP parameters?",
    .advise = advise_loggp,
};
