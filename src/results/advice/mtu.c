/* SPDX-License-Identifier: BSD-2-Clause */
/* The smallest MTU that is not clearly slower than the best. */
#include "advisers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MTUS 8

/* Shorter messages, in packets, are ignored. */
#define PACKETS 4

struct candidates {
    unsigned int count;
    double mtu[MTUS];
    struct source source[MTUS];
    struct curve curve[MTUS];
};

static void collect_from(const struct results *file, const char *quantity, struct candidates *out)
{
    const struct experiment_result *result = results_find(file, "mtu");

    for (unsigned int i = 0; result && i < result->count && out->count < MTUS; i++) {
        const struct series *series = &result->series[i];
        double mtu;

        if (strcmp(series->quantity, quantity) || sscanf(series->name, "mtu %lf", &mtu) != 1)
            continue;
        out->mtu[out->count] = mtu;
        out->source[out->count] = (struct source){ file, result, series };
        curve_of(series, &out->curve[out->count++]);
    }
}

static void collect(const struct advice_input *input, const char *quantity, struct candidates *out)
{
    out->count = 0;
    for (unsigned int i = 0; i < input->count && !out->count; i++)
        collect_from(input->files[i], quantity, out);
    for (unsigned int i = 0; i < out->count; i++) {
        for (unsigned int j = 0; j < out->count; j++)
            curves_match(&out->curve[i], &out->curve[j]);
    }
}

static void candidates_free(struct candidates *candidates)
{
    for (unsigned int i = 0; i < candidates->count; i++)
        curve_free(&candidates->curve[i]);
}

static double largest_mtu(const struct candidates *candidates)
{
    double largest = 0;

    for (unsigned int i = 0; i < candidates->count; i++)
        largest = fmax(largest, candidates->mtu[i]);
    return largest;
}

/* Returns false if the smallest MTU is as good as any other. */
static bool choose(const struct candidates *candidates, enum better better, unsigned int *chosen,
                   unsigned int *worst, double *gain)
{
    double from = PACKETS * largest_mtu(candidates), g;
    unsigned int best = 0;
    bool clear = false;

    for (unsigned int i = 1; i < candidates->count; i++) {
        crossing_gain(&candidates->curve[best], &candidates->curve[i], better, from, &g);
        best = g > 0 ? i : best;
    }
    *chosen = best;
    *gain = 0;
    *worst = best;
    for (unsigned int i = 0; i < candidates->count; i++) {
        bool worse =
            crossing_gain(&candidates->curve[i], &candidates->curve[best], better, from, &g);

        if (!worse && candidates->mtu[i] < candidates->mtu[*chosen])
            *chosen = i;
        if (worse && g > *gain) {
            *gain = g;
            *worst = i;
        }
        clear |= worse;
    }
    return clear && candidates->count > 1;
}

static void evidence(struct advice *out, const struct candidates *candidates, unsigned int i)
{
    const struct curve *curve = &candidates->curve[i];

    advice_evidence(out, &candidates->source[i], curve->x[curve->count - 1]);
}

/* The component uses the port's MTU unless it is told to use a smaller one. */
static double parameter_of(const struct results *file, double mtu)
{
    const char *active = results_metadata_get(&file->device, "active MTU");

    return active && mtu >= strtod(active, NULL) ? 0 : mtu;
}

static void advise_mtu(const struct advice_input *input, struct advice *out)
{
    struct candidates rates, times;
    unsigned int rate, slow_rate, time, slow_time;
    double rate_gain, time_gain;
    bool by_rate, by_time;

    collect(input, "bandwidth", &rates);
    collect(input, "latency", &times);
    by_rate = choose(&rates, BETTER_HIGHER, &rate, &slow_rate, &rate_gain);
    by_time = choose(&times, BETTER_LOWER, &time, &slow_time, &time_gain);
    if (by_rate) {
        evidence(out, &rates, slow_rate);
        evidence(out, &rates, rate);
        advice_found(out, "mtu_for_bandwidth", rates.mtu[rate], "B");
    }
    if (by_time) {
        evidence(out, &times, slow_time);
        evidence(out, &times, time);
        advice_found(out, "mtu_for_latency", times.mtu[time], "B");
    }
    if (by_rate && by_time)
        advice_say(out,
                   "Use an MTU of %.0f for bandwidth (%.0f%% more than with %.0f) and of %.0f for "
                   "latency (%.0f%% less than with %.0f).",
                   rates.mtu[rate], 100 * expm1(rate_gain), rates.mtu[slow_rate], times.mtu[time],
                   -100 * expm1(-time_gain), times.mtu[slow_time]);
    else if (by_rate)
        advice_say(out, "Use an MTU of %.0f: %.0f%% more bandwidth than with %.0f.",
                   rates.mtu[rate], 100 * expm1(rate_gain), rates.mtu[slow_rate]);
    else if (by_time)
        advice_say(out, "Use an MTU of %.0f: %.0f%% less latency than with %.0f.", times.mtu[time],
                   -100 * expm1(-time_gain), times.mtu[slow_time]);
    else
        advice_none(out, "no 'mtu' experiment, or the MTU makes no clear difference");
    if (by_rate)
        advice_parameter(out, MTL_mtu, parameter_of(rates.source[rate].file, rates.mtu[rate]));
    else if (by_time)
        advice_parameter(out, MTL_mtu, parameter_of(times.source[time].file, times.mtu[time]));
    candidates_free(&rates);
    candidates_free(&times);
}

const struct adviser mtu_adviser = {
    .name = "mtu",
    .question = "Which MTU?",
    .advise = advise_mtu,
};
