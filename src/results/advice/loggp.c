/* The parameters of the LogGP model: latency, overheads, gap between messages, gap per byte. */
#include "advisers.h"

#include <math.h>
#include <string.h>

/* From here on the time of a message is mostly that of its bytes. */
#define LONG 8192

struct figure {
    struct source source;
    double x;
    double value; /* us, or a million per second */
};

static double in_microseconds(const struct series *series, double value)
{
    return strcmp(series->unit, "ns") ? value : value / 1000;
}

/* The figure at the least x of the series. */
static bool figure_of_first(const struct body *body, const char *experiment, const char *name,
                            const char *quantity, struct figure *out)
{
    struct curve curve;

    if (!advice_source_find(body, experiment, name, quantity, &out->source))
        return false;
    curve_of(out->source.series, &curve);
    if (curve.count) {
        out->x = curve.x[0];
        out->value = in_microseconds(out->source.series, curve.y[0]);
    }
    curve_free(&curve);
    return curve.count;
}

static bool find_latency(const struct body *body, struct figure *out)
{
    return figure_of_first(body, "latency", "send poll", "latency", out) ||
           figure_of_first(body, "latency", "send", "latency", out) ||
           figure_of_first(body, "latency", "write", "latency", out);
}

static bool gap_per_byte(const struct figure *latency, struct line *out)
{
    struct curve curve;
    bool fits;

    curve_of(latency->source.series, &curve);
    fits = curve_line(&curve, LONG, INFINITY, out) && out->slope > 0;
    curve_free(&curve);
    return fits;
}

static void advise_loggp(const struct body *body, struct advice *out)
{
    struct figure latency, send, receive, poll, rate;
    struct line line;
    double overhead, wire, gap;

    if (!find_latency(body, &latency) || !figure_of_first(body, "post-send", "", "time", &send) ||
        !figure_of_first(body, "post-recv", "", "time", &receive) ||
        !figure_of_first(body, "poll-hit", "", "time", &poll) ||
        !figure_of_first(body, "msg-rate", "", "rate", &rate)) {
        advice_silent(out, "it takes 'latency', 'post-send', 'post-recv', 'poll-hit', 'msg-rate'");
        return;
    }
    if (!gap_per_byte(&latency, &line)) {
        advice_silent(out, "'latency' has fewer than three sizes from %d bytes on", LONG);
        return;
    }
    overhead = receive.value + poll.value;
    wire = fmax(0, latency.value - send.value - overhead);
    gap = 1 / rate.value;
    advice_say(out,
               "LogGP: L %.3g us, o_s %.3g us, o_r %.3g us, g %.3g us, G %.3g ns/B (a line through "
               "the latencies from %s on, off by %.1f%%).",
               wire, send.value, overhead, gap, 1000 * line.slope, advice_size_text(LONG),
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
    .advice_make = advise_loggp,
};
