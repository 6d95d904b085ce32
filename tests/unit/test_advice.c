/* SPDX-License-Identifier: BSD-2-Clause */
/* Advice from curves without noise: every number in it is known in advance. */
#include "results/advice/advice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What the medians' confidence intervals admit. */
#define NOISE 0.001

static struct results *file;

static int begin(void **state)
{
    file = results_new("0", "2026-01-01T00:00:00Z", "planted");
    return 0;
}

static int finish(void **state)
{
    results_free(file);
    return 0;
}

static void begin_anew(void **state)
{
    finish(state);
    begin(state);
}

static struct experiment_result *experiment_named(const char *name)
{
    for (unsigned int i = 0; i < file->count; i++)
        if (!strcmp(file->experiments[i].name, name))
            return &file->experiments[i];
    return results_add(file, name, "planted", "", "");
}

/* Plants points at first, 2 first, 4 first, ... up to last. */
static void plant(const char *experiment, const char *name, const char *quantity, const char *axis,
                  double first, double last, double (*curve)(double x))
{
    bool is_rate = !strcmp(quantity, "bandwidth") || !strcmp(quantity, "rate");
    const char *unit = !strcmp(quantity, "bandwidth") ? "MB/s" : is_rate ? "M/s" : "us";
    struct series *series =
        result_series(experiment_named(experiment), name, quantity, unit, axis,
                      strcmp(axis, "size") ? "" : "B", is_rate ? BETTER_HIGHER : BETTER_LOWER);

    for (double x = first; x <= last; x *= 2) {
        double y = curve(x);
        struct summary summary = { .count = 9,
                                   .median = y,
                                   .low = y * (1 - 1.96 * NOISE),
                                   .high = y * (1 + 1.96 * NOISE) };

        results_series_add(series, x, &summary);
    }
}

#define CURVE(name, x, y)        \
    static double name(double x) \
    {                            \
        return y;                \
    }

/* Holds "NAME VALUE ..., from EXPERIMENT/SERIES X=VALUE ..., set PARAMETER=VALUE" against what an
 * adviser says of the file. */
static void advises(const char *adviser, const char *wanted)
{
    struct advice_input input = { 1, &file };
    struct advice *advices = advice_make(&input), *advice = advices;
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    while (strcmp(advice->adviser->name, adviser))
        advice++;
    for (unsigned int i = 0; i < advice->found_count; i++)
        fprintf(out, "%s %.4g %s, ", advice->found[i].name, advice->found[i].value,
                advice->found[i].unit);
    fputs("from", out);
    for (unsigned int i = 0; i < advice->evidence_count; i++)
        fprintf(out, " %s/%s %g=%.4g", advice->evidence[i].experiment->name,
                advice->evidence[i].series->name, advice->evidence[i].x, advice->evidence[i].value);
    for (unsigned int i = 0; i < advice->parameter_count; i++)
        fprintf(out, ", set %s=%llu%s", advice->parameters[i].name,
                (unsigned long long)advice->parameters[i].value,
                advice->parameters[i].is_default ? " (default)" : "");
    fclose(out);
    if (!wanted)
        assert_null(advice->text);
    else
        assert_string_equal(text, wanted);
    assert_true(!advice->text == !!advice->reason);
    free(text);
    advice_free(advices);
}

static void without_results_there_are_reasons(void **state)
{
    struct advice_input input = { 1, &file };
    struct advice *advices = advice_make(&input);

    for (const struct advice *advice = advices; advice->adviser; advice++) {
        assert_null(advice->text);
        assert_non_null(advice->reason);
        assert_int_not_equal(*advice->reason, 0);
    }
    advice_free(advices);
}

CURVE(polling, size, 5 + size / 1000)
CURVE(blocking, size, 17 + size / 1000)

static void blocking_costs_what_it_adds(void **state)
{
    plant("event", "poll", "latency", "size", 8, 65536, polling);
    plant("event", "block", "latency", "size", 8, 65536, blocking);
    advises("poll-or-block",
            "blocking_cost 12 us, affordable_wait 120 us, from event/poll 128=5.128 "
            "event/block 128=17.13");
}

CURVE(flat_five, x, 5)
CURVE(hardly_more, x, 5.2)

static void blocking_that_costs_nothing_is_no_advice(void **state)
{
    plant("event", "poll", "latency", "size", 8, 65536, flat_five);
    plant("event", "block", "latency", "size", 8, 65536, hardly_more);
    advises("poll-or-block", NULL);
}

CURVE(until_64, x, x <= 64 ? 5 : 7)

/* The miss ratio of a cache of 48 entries. */
CURVE(beyond_48, x, x <= 48 ? 5 : 5 + 4 * (1 - 48 / x))
CURVE(ever_more, x, 5 + x / 100)

static void a_step_is_where_a_cache_ends(void **state)
{
    plant("icm-qp", "first QP", "latency", "QPs", 1, 1024, until_64);
    plant("icm-mtt", "write", "latency", "regions", 1, 1024, beyond_48);
    advises("qps-before-spill",
            "fits 64 queue pairs, spills 128 queue pairs, rise 1.4 times, from "
            "icm-qp/first QP 64=5 icm-qp/first QP 128=7, set active_qps=64");
    advises("regions-before-spill",
            "fits 49 regions, spills 64 regions, rise 1.804 times, from icm-mtt/write "
            "32=5 icm-mtt/write 64=6");
}

static void a_slope_is_no_step(void **state)
{
    plant("icm-qp", "first QP", "latency", "QPs", 1, 1024, ever_more);
    plant("icm-mtt", "write", "latency", "regions", 1, 8, until_64);
    advises("qps-before-spill", NULL);
    advises("regions-before-spill", NULL);
}

CURVE(copying, size, 4 + size / 1000)

/* Saves 1.2 us, and costs as much between 100 and 101 bytes. */
CURVE(inlining, size, copying(size) - 1.2 + 1.2 * size / 100.5)

static void inline_pays_up_to_a_size(void **state)
{
    plant("inline", "inline", "latency", "size", 2, 1024, inlining);
    plant("inline", "copied", "latency", "size", 2, 1024, copying);
    advises("inline-limit",
            "inline_limit 100 B, from inline/inline 64=3.628 inline/copied 64=4.064 "
            "inline/inline 128=4.456 inline/copied 128=4.128, set inline_limit=100");
}

static void inline_that_always_pays_has_no_limit(void **state)
{
    plant("inline", "inline", "latency", "size", 2, 1024, flat_five);
    plant("inline", "copied", "latency", "size", 2, 1024, blocking);
    advises("inline-limit",
            "inline_limit 1024 B, from inline/inline 1024=5 inline/copied 1024=18.02, set "
            "inline_limit=1024");
}

static void inline_that_never_pays_is_off(void **state)
{
    plant("inline", "inline", "latency", "size", 2, 1024, blocking);
    plant("inline", "copied", "latency", "size", 2, 1024, flat_five);
    advises("inline-limit",
            "inline_limit 0 B, from inline/inline 2=17 inline/copied 2=5, set "
            "inline_limit=0");
}

CURVE(copy, size, size / 1500)
CURVE(registering, size, 20 + size / 40000)
CURVE(reusing, size, 1 + size / 40000)
CURVE(releasing, size, 10)
CURVE(local, stride, 1500 / stride)

static void registering_pays_from_a_size_on(void **state)
{
    plant("registration-cache", "copy", "time", "size", 256, 1 << 22, copy);
    plant("registration-cache", "register", "time", "size", 256, 1 << 22, registering);
    plant("registration-cache", "registered", "time", "size", 256, 1 << 22, reusing);
    advises("copy-or-register",
            "break_even 3.117e+04 B, break_even_cached 1558 B, from "
            "registration-cache/copy 16384=10.92 registration-cache/register 16384=20.41 "
            "registration-cache/copy 32768=21.85 registration-cache/register 32768=20.82 "
            "registration-cache/copy 1024=0.6827 registration-cache/registered 1024=1.026 "
            "registration-cache/copy 2048=1.365 registration-cache/registered 2048=1.051, "
            "set eager_limit=31232");
}

static void registering_is_the_sum_of_its_parts(void **state)
{
    plant("mr-reg", "register", "time", "size", 256, 1 << 20, registering);
    plant("mr-dereg", "deregister", "time", "size", 256, 1 << 20, releasing);
    plant("strided", "local", "bandwidth", "stride", 1, 1024, local);
    advises("copy-or-register",
            "break_even 4.675e+04 B, from mr-reg/register 32768=20.82 mr-dereg/deregister "
            "32768=10 strided/local 1=1500, set eager_limit=46592");
    advises("registration-cost",
            "register_call 20 us, register_page 0.1024 us, deregister_call 10 us, "
            "deregister_page 0 us, from mr-reg/register 256=20.01 mr-dereg/deregister "
            "256=10");
}

CURVE(one_port, size, size / (3 + size / 900))
CURVE(two_ports, size, size / (7 + size / 1500))

/* Better by 1% at one size below the crossing. */
CURVE(two_ports_bent, size, two_ports(size) * (size == 4096 ? 1.01 : 1))

static void plant_ports(double first, double last, double (*binding)(double),
                        double (*striping)(double))
{
    plant("two-port", "one process binding", "bandwidth", "size", first, last, binding);
    plant("two-port", "one process striping", "bandwidth", "size", first, last, striping);
}

/* Binding and striping beside the point where they are equally fast. */
#define PORTS_CROSS                                                                    \
    ", from two-port/one process binding 8192=676.9 two-port/one process striping "    \
    "8192=657.4 two-port/one process binding 16384=772.7 two-port/one process "        \
    "striping 16384=914.1, set stripe_threshold=8960"

static void striping_pays_from_a_size_on(void **state)
{
    plant_ports(64, 1 << 22, one_port, two_ports);
    advises("striping-threshold", "threshold 9000 B" PORTS_CROSS);
}

/* Where there is noise, all points count; in virtual time, the two beside the crossing. */
static void virtual_time_needs_two_points(void **state)
{
    plant_ports(64, 1 << 22, one_port, two_ports_bent);
    advises("striping-threshold", "threshold 8980 B" PORTS_CROSS);
    results_metadata_set(&file->machine, "clock", "virtual time");
    advises("striping-threshold", "threshold 9000 B" PORTS_CROSS);
}

CURVE(shared_queue, connections, 2048 / (10 + 1.4375))
CURVE(round_robin, connections, 2048 / (10 + 0.25 * connections / 2))

static void one_queue_pays_from_a_count_on(void **state)
{
    plant("multi-vi", "completion queue", "bandwidth", "connections", 1, 1024, shared_queue);
    plant("multi-vi", "round robin", "bandwidth", "connections", 1, 1024, round_robin);
    advises("cq-or-round-robin",
            "shared_from 12 connections, from multi-vi/round robin 8=186.2 "
            "multi-vi/completion queue 8=179.1 multi-vi/round robin 16=170.7 "
            "multi-vi/completion queue 16=179.1");
}

CURVE(windowed, requests, fmin(900, 60 * requests))
CURVE(signalled, interval, fmin(3, 0.5 * interval))

static void enough_is_where_a_curve_levels_off(void **state)
{
    plant("bw", "write by window", "bandwidth", "window", 1, 256, windowed);
    plant("signal", "write", "rate", "interval", 1, 256, signalled);
    advises("window",
            "window 16 requests, from bw/write by window 1=60 bw/write by window 16=900 "
            "bw/write by window 256=900, set window=16");
    advises("signal-interval",
            "signal_interval 8 requests, from signal/write 1=0.5 signal/write 8=3 "
            "signal/write 256=3, set signal_interval=8");
}

CURVE(mtu_256, size, size / (3 + size / 700))
CURVE(mtu_1024, size, size / (3 + size / 900))
CURVE(mtu_2048, size, size / (3 + size / 800))

static void the_best_mtu_is_the_fastest(void **state)
{
    plant("mtu", "mtu 256", "bandwidth", "size", 64, 1 << 20, mtu_256);
    plant("mtu", "mtu 1024", "bandwidth", "size", 64, 1 << 20, mtu_1024);
    plant("mtu", "mtu 2048", "bandwidth", "size", 64, 1 << 20, mtu_2048);
    plant("mtu", "mtu 256", "latency", "size", 64, 1 << 20, polling);
    plant("mtu", "mtu 1024", "latency", "size", 64, 1 << 20, blocking);
    advises("mtu",
            "mtu_for_bandwidth 1024 B, mtu_for_latency 256 B, from mtu/mtu 256 "
            "1.04858e+06=698.6 mtu/mtu 1024 1.04858e+06=897.7 mtu/mtu 1024 "
            "1.04858e+06=1066 mtu/mtu 256 1.04858e+06=1054, set mtu=1024");
}

/* A line but for 2% at one size in the middle. */
CURVE(nearly_straight, size, polling(size) * (size == 131072 ? 1.02 : 1))
CURVE(posting, size, 0.9)
CURVE(receiving, size, 0.6)
CURVE(poll_hit, size, 1)
CURVE(messages, size, 1 / 1.4)

static void loggp_is_read_off(void **state)
{
    plant("latency", "send poll", "latency", "size", 8, 1 << 20, nearly_straight);
    plant("post-send", "send", "time", "size", 8, 64, posting);
    plant("post-recv", "recv", "time", "size", 8, 64, receiving);
    plant("poll-hit", "hit", "time", "size", 8, 64, poll_hit);
    plant("msg-rate", "send", "rate", "size", 8, 64, messages);
    advises("loggp",
            "L 2.508 us, o_s 0.9 us, o_r 1.6 us, g 1.4 us, G 1.004 ns/B, residual "
            "0.006341 , from latency/send poll 8=5.008 post-send/send 8=0.9 "
            "post-recv/recv 8=0.6 poll-hit/hit 8=1 msg-rate/send 8=0.7143");
}

/* Inline, copied, after asking the receiver: lines but for 2% at one size. */
CURVE(library, size,
      size <= 64     ? 1 + size * 0.0002
      : size <= 8192 ? 2 + size * 0.0003
                     : (3 + size * 0.0001) * (size == 131072 ? 1.02 : 1))

static void loggp_of_a_library_has_regimes(void **state)
{
    plant("mpi-latency", "verbena", "latency", "size", 8, 1 << 20, library);
    advises("loggp-mpi",
            "to_1 64 B, step_1 1 us, G_1 0.2 ns/B, to_2 8192 B, step_2 2 us, G_2 0.3 ns/B, to_3 "
            "1.049e+06 B, step_3 2.999 us, G_3 0.1004 ns/B, deviation 0.0166 , from "
            "mpi-latency/verbena 64=1.013 mpi-latency/verbena 8192=4.458 mpi-latency/verbena "
            "1.04858e+06=107.9");
}

CURVE(adapter_scatter, block, 65536 / (65536 / 900. + 65536 / block * 0.1))
CURVE(processor_copy, block, 65536 / (65536 / 900. + 65536 / 1500.))

static void scattering_pays_from_a_block_on(void **state)
{
    plant("scatter", "adapter", "bandwidth", "block", 8, 16384, adapter_scatter);
    plant("scatter", "copy", "bandwidth", "block", 8, 16384, processor_copy);
    advises("scatter-or-copy",
            "scatter_from 150 , from scatter/copy 128=562.5 scatter/adapter 128=528.4 "
            "scatter/copy 256=562.5 scatter/adapter 256=665.9");
}

CURVE(hundred, x, 100)
CURVE(two_hundred, x, 200)

/* Two series of bandwidths, of which the second is always better, never, or the same. */
static const struct {
    const char *adviser, *experiment, *axis, *first, *second;
    const char *always, *never;
} pairs[] = {
    { "cq-or-round-robin", "multi-vi", "connections", "round robin", "completion queue",
      "shared_from 8 connections, from multi-vi/round robin 8=100 multi-vi/completion queue 8=200",
      "from multi-vi/round robin 1024=200 multi-vi/completion queue 1024=100" },
    { "scatter-or-copy", "scatter", "block", "copy", "adapter",
      "scatter_from 8 , from scatter/copy 8=100 scatter/adapter 8=200",
      "from scatter/copy 1024=200 scatter/adapter 1024=100" },
    { "striping-threshold", "two-port", "size", "one process binding", "one process striping",
      "threshold 8 B, from two-port/one process binding 8=100 two-port/one process striping 8=200, "
      "set stripe_threshold=8",
      NULL },
};

static void one_may_always_be_better(void **state)
{
    for (unsigned int i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
        double (*const curves[][2])(double) = {
            { hundred, two_hundred }, { two_hundred, hundred }, { hundred, hundred }
        };
        const char *const wanted[] = { pairs[i].always, pairs[i].never, NULL };

        for (unsigned int k = 0; k < 3; k++) {
            begin_anew(state);
            plant(pairs[i].experiment, pairs[i].first, "bandwidth", pairs[i].axis, 8, 1024,
                  curves[k][0]);
            plant(pairs[i].experiment, pairs[i].second, "bandwidth", pairs[i].axis, 8, 1024,
                  curves[k][1]);
            advises(pairs[i].adviser, wanted[k]);
        }
    }
}

static double outlier;

/* Ten percent more than a hundred, but for one point before the last. */
CURVE(more_with_outlier, size, 100 * exp(0.1 + (size == 128 ? outlier : 0)))

/* Six points: the noise is the median of three third differences, of which the outlier makes two.
 * Virtual time has no noise. */
static void a_gain_must_exceed_the_noise(void **state)
{
    static const char gain[] = "threshold 8 B, from two-port/one process binding 8=100 "
                               "two-port/one process striping 8=110.5, set stripe_threshold=8";

    outlier = 0.3;
    plant_ports(8, 256, hundred, more_with_outlier);
    advises("striping-threshold", NULL);
    results_metadata_set(&file->machine, "clock", "virtual time");
    advises("striping-threshold", gain);
    begin_anew(state);
    outlier = 0.05;
    plant_ports(8, 256, hundred, more_with_outlier);
    advises("striping-threshold", gain);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(without_results_there_are_reasons),
        CASE(blocking_costs_what_it_adds),
        CASE(blocking_that_costs_nothing_is_no_advice),
        CASE(a_step_is_where_a_cache_ends),
        CASE(a_slope_is_no_step),
        CASE(inline_pays_up_to_a_size),
        CASE(inline_that_always_pays_has_no_limit),
        CASE(inline_that_never_pays_is_off),
        CASE(registering_pays_from_a_size_on),
        CASE(registering_is_the_sum_of_its_parts),
        CASE(striping_pays_from_a_size_on),
        CASE(virtual_time_needs_two_points),
        CASE(one_queue_pays_from_a_count_on),
        CASE(enough_is_where_a_curve_levels_off),
        CASE(the_best_mtu_is_the_fastest),
        CASE(loggp_is_read_off),
        CASE(loggp_of_a_library_has_regimes),
        CASE(scattering_pays_from_a_block_on),
        CASE(one_may_always_be_better),
        CASE(a_gain_must_exceed_the_noise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
