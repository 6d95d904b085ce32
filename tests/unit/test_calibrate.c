/* SPDX-License-Identifier: BSD-2-Clause */
/* Calibration without runs: costs of calls, what a Jacobian determines, lines of sweeps, values. */
#include "calibrate/choices.h"
#include "calibrate/control.h"
#include "calibrate/descent.h"
#include "calibrate/identify.h"
#include "calibrate/known.h"
#include "calibrate/surrogate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add_point(struct series *series, double x, double y)
{
    struct summary summary = { .count = 10, .minimum = y, .median = y, .mean = y, .p99 = y,
                               .p999 = y, .maximum = y, .low = y, .high = y };

    results_series_add(series, x, &summary);
}

static struct keys *new_keys(void)
{
    struct keys *keys = malloc(sizeof(*keys));
    char error[512];

    assert_non_null(keys);
    assert_int_equal(keys_read(SHIPPED "/hdr100.adapter", keys, error, sizeof(error)), 0);
    return keys;
}

/* A line is found again; a curve that falls has no cost per page; held-out curves do not count. What
 * only another control experiment tells is not fitted. */
static void test_control(void **state)
{
    struct results *results = results_new("1", "2000-01-01T00:00:00Z", "test");
    struct experiment_result *reg = results_add(results, "mr-reg", "control", "t", "s");
    struct experiment_result *dereg, *poll, *post;
    struct keys *keys = new_keys();
    struct series *series;
    struct data data;
    char error[512];

    series = result_series(reg, "register", "time", "us", "size", "B", BETTER_LOWER);
    add_point(series, 4096, 30 + 0.25);
    add_point(series, 1 << 20, 30 + 64);
    dereg = results_add(results, "mr-dereg", "control", "t", "s");
    series = result_series(dereg, "deregister", "time", "us", "size", "B", BETTER_LOWER);
    add_point(series, 4096, 10);
    add_point(series, 1 << 20, 8);
    poll = results_add(results, "poll-empty", "control", "t", "s");
    series = result_series(poll, "empty", "time", "ns", "batch", "", BETTER_LOWER);
    add_point(series, 1, 77);
    post = results_add(results, "post-send", "control", "t", "s");
    series = result_series(post, "send 8", "time", "ns", "batch", "", BETTER_LOWER);
    add_point(series, 1, 80);
    add_point(series, 16, 80 + 15 * 30);
    assert_int_equal(data_take(&results, 1, "poll-empty", &data, error, sizeof(error)), 0);
    assert_int_equal(keys_choose(keys, "host.create_srq,host.copy_rate", error, sizeof(error)), 0);
    assert_int_equal(control_apply(&data, keys), 6);
    assert_int_equal(keys_find(keys, "host.create_srq")->variation, KEY_FIXED);
    assert_int_equal(keys_find(keys, "host.create_srq")->origin, KEY_UNDETERMINED);
    assert_int_equal(keys_find(keys, "host.copy_rate")->variation, KEY_SMOOTH);
    assert_true(fabs(keys_find(keys, "host.post_send")->value - 80) < 0.1);
    assert_true(fabs(keys_find(keys, "host.post_next_send")->value - 30) < 0.1);
    assert_true(fabs(keys_find(keys, "host.reg_mr")->value - 30000) < 1);
    assert_true(fabs(keys_find(keys, "host.reg_mr_page")->value - 250) < 0.1);
    assert_true(keys_find(keys, "host.dereg_mr_page")->value == 0);
    assert_true(keys_find(keys, "host.dereg_mr")->value > 8000);
    assert_int_equal(keys_find(keys, "host.reg_mr")->origin, KEY_MEASURED);
    assert_int_equal(keys_find(keys, "host.poll_empty")->origin, KEY_KEPT);
    data_free(&data);
    results_free(results);
    free(keys);
}

/* Four keys: one alone, two that act alike, one without effect. */
static void test_identify(void **state)
{
    static const char *const names[] = { "link.rate", "bus.doorbell_latency", "bus.write_latency",
                                         "host.wake_recv" };
    double jacobian[4][6] = { { 50, 50, 50, 0, 0, 0 },
                              { 0, 0, 0, 20, 22, 20 },
                              { 0, 0, 0, 30, 33, 30 },
                              { 0, 0, 0, 0, 0, 0 } };
    struct keys *keys = new_keys();
    unsigned int keys_of[4];
    struct fit fit = { .keys = keys, .key_count = 4, .keys_of = keys_of, .point_count = 6,
                       .jacobian = jacobian[0], .misfit = 1 };
    static struct identify found;

    for (int i = 0; i < 4; i++)
        keys_of[i] = (unsigned int)(keys_find(keys, names[i]) - keys->list);
    identify_keys(&fit, &found);
    assert_int_equal(keys->list[keys_of[0]].origin, KEY_FITTED);
    assert_true(fabs(keys->list[keys_of[0]].error - 1 / sqrt(3 * 2500 + 1)) < 1e-6);
    assert_int_equal(keys->list[keys_of[1]].origin, KEY_SHARED);
    assert_int_equal(keys->list[keys_of[2]].origin, KEY_SHARED);
    assert_int_equal(keys->list[keys_of[3]].origin, KEY_UNDETERMINED);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.groups[0].count, 2);
    assert_true(found.groups[0].is_sum && fabs(found.groups[0].sum - 250) < 1e-9);
    assert_true(found.groups[0].error < 0.05);
    assert_true(found.groups[0].direction[0] * found.groups[0].direction[1] < 0);
    free(keys);
}

/* The experiment's own defaults must not replace general ones that were in force. */
static void test_lines(void **state)
{
    struct results *results = results_new("1", "2000-01-01T00:00:00Z", "test");
    struct experiment_result *icm = results_add(results, "icm-qp", "scaling", "t", "s");
    struct series *series;
    struct data data;
    char error[512];

    results_metadata_set(&icm->settings, "refine", "4");
    results_metadata_set(&icm->settings, "adapter", "x");
    results_metadata_set(&icm->settings, "iterations", "500");
    series = result_series(icm, "first QP", "latency", "us", "QPs", "", BETTER_LOWER);
    add_point(series, 16, 1);
    add_point(series, 1, 1);
    add_point(series, 13, 1);
    assert_int_equal(data_take(&results, 1, NULL, &data, error, sizeof(error)), 0);
    assert_int_equal(data.point_count, 3);
    assert_non_null(strstr(data.experiments[0].whole, " --qps=1,13,16"));
    assert_non_null(strstr(data.experiments[0].whole, " --refine=0"));
    assert_non_null(strstr(data.experiments[0].whole, " --iterations=500"));
    assert_non_null(strstr(data.experiments[0].brief, " --iterations=8"));
    assert_non_null(strstr(data.experiments[0].whole, " --depth=512"));
    assert_null(strstr(data.experiments[0].whole, "adapter"));
    data_free(&data);
    results_free(results);
}

static void test_values(void **state)
{
    struct keys *keys = new_keys();
    char text[64], error[512];

    assert_string_equal(keys_text(parameter_find("link.rate"), 12.5, text, sizeof(text)),
                        "12.5 GB/s");
    assert_string_equal(keys_text(parameter_find("link.rate"), 0.5, text, sizeof(text)), "500 MB/s");
    assert_string_equal(keys_text(parameter_find("host.reg_mr"), 25e3, text, sizeof(text)), "25 us");
    assert_string_equal(keys_text(parameter_find("icm.qpc_entries"), 13, text, sizeof(text)), "13");
    assert_true(keys_valid(keys_find(keys, "link.mtu"), 1400) == 1024);
    assert_true(keys_valid(keys_find(keys, "hca.engines"), 99) == ENGINES_MAX);
    assert_int_equal(keys_choose(keys, "bus,hca.packet_time", error, sizeof(error)), 0);
    assert_int_equal(keys_find(keys, "bus.rate")->variation, KEY_SMOOTH);
    assert_int_equal(keys_find(keys, "bus.read_burst")->variation, KEY_DISCRETE);
    assert_int_equal(keys_find(keys, "link.rate")->variation, KEY_FIXED);
    assert_true(keys_find(keys, "hca.packet_time")->value > 0);
    assert_int_equal(keys_choose(keys, "bu", error, sizeof(error)), -1);
    free(keys);
}

/* Row 0 is the time a, row 1 is a + b with equal parts, row 2 is b and stops at a fifth of it. */
static void make_surrogate(struct surrogate *surrogate)
{
    static const double near[] = { -0.1, 0, -0.05, -0.05, 0, -0.1 };
    static const double far[] = { -0.9, 0, -0.45, -0.45, 0, -0.8 };

    surrogate_open(surrogate, 3, 2);
    memcpy(surrogate->near, near, sizeof(near));
    memcpy(surrogate->far, far, sizeof(far));
    for (unsigned int i = 0; i < 2; i++) {
        surrogate->near_x[i] = log(0.9);
        surrogate->far_x[i] = log(0.1);
        surrogate->prior[i] = log(0.1);
        surrogate->spread[i] = 10;
    }
}

static void test_surrogate(void **state)
{
    struct surrogate surrogate;
    static const bool first[3] = { true };
    double x[2] = { 0 }, errors[2];

    make_surrogate(&surrogate);
    surrogate.residual[0] = log(2); /* twice the paper's: a must be halved, and with it row 1 */
    surrogate.residual[1] = log(4.0 / 3);
    surrogate_fit(&surrogate, NULL, x);
    assert_true(fabs(exp(x[0]) - 0.5) < 0.01 && fabs(exp(x[1]) - 1) < 0.01);
    surrogate_errors(&surrogate, x, errors);
    assert_true(errors[0] > 0.01 && errors[0] < 0.03 && errors[1] > 0.01 && errors[1] < 0.03);

    memset(surrogate.residual, 0, 3 * sizeof(double)); /* a value that is met determines its time, */
    x[0] = x[1] = 0;
    surrogate_errors(&surrogate, x, errors);
    assert_true(errors[0] > 0.01 && errors[0] < 0.03 && errors[1] > 0.01 && errors[1] < 0.03);
    surrogate.is_bound[0] = surrogate.is_bound[1] = true; /* a bound that is kept does not */
    surrogate.residual[0] = surrogate.residual[1] = -1;
    surrogate_errors(&surrogate, x, errors);
    assert_true(errors[0] > 9 && errors[1] > 0.01 && errors[1] < 0.03);
    surrogate.is_bound[0] = surrogate.is_bound[1] = false;

    surrogate.residual[0] = log(2);
    surrogate.residual[1] = log(4.0 / 3);
    x[0] = x[1] = 0;
    surrogate_fit(&surrogate, first, x); /* rows 1 and 2 determine a as well */
    assert_true(fabs(surrogate_residual(&surrogate, 0, x)) < 0.02);

    memset(surrogate.near + 2, 0, 4 * sizeof(double)); /* nothing but row 0 knows a */
    memset(surrogate.far + 2, 0, 4 * sizeof(double));
    x[0] = x[1] = 0;
    surrogate_fit(&surrogate, first, x);
    assert_true(fabs(exp(x[0]) - 0.1) < 0.01);
    surrogate_close(&surrogate);
}

/* A step that is held back goes the same share of the way to the prior, however wide the prior is. */
static void test_damping(void **state)
{
    struct surrogate surrogate;
    static const bool all[3] = { true, true, true };
    const double anchor[2] = { 0, 0 };
    double x[2] = { 0 };

    make_surrogate(&surrogate);
    surrogate.spread[0] = 1;
    surrogate.anchor = anchor;
    surrogate.damping = 1;
    surrogate_fit(&surrogate, all, x);
    for (unsigned int i = 0; i < 2; i++)
        assert_true(fabs(x[i] - log(0.1) / 2) < 0.01);
    surrogate_close(&surrogate);
}

/* What a neighbour costs is what is left once the parameters have followed: a, which row 0 alone knows, makes up for
 * what moves row 0, and rows 1 and 2 together leave nothing to follow. A row that cannot be run is worse than any. */
static void test_follow(void **state)
{
    struct surrogate surrogate;
    const double met[3] = { 0 }, one[3] = { 0.1 }, two[3] = { 0, 0.1, 0 }, none[3] = { 0, NAN, 0 };
    double x[2] = { 0 };

    make_surrogate(&surrogate);
    surrogate.spread[0] = surrogate.spread[1] = 1;
    surrogate.prior[0] = surrogate.prior[1] = 0;
    memset(surrogate.near + 2, 0, sizeof(double)); /* a does not move row 1 */
    memset(surrogate.far + 2, 0, sizeof(double));
    assert_true(surrogate_follow(&surrogate, met, x) < 0.01 && fabs(x[0]) < 0.001);
    assert_true(surrogate_follow(&surrogate, one, x) < 1 && fabs(x[0] + 0.1) < 0.02);
    x[0] = 0;
    assert_true(surrogate_follow(&surrogate, two, x) > 6 && fabs(x[0]) < 0.001);
    assert_true(isinf(surrogate_follow(&surrogate, none, x)));
    assert_null(surrogate.anchor);
    surrogate_close(&surrogate);
}

static void check_tries(const char *key, double value, double first, double second)
{
    struct leave_out_choice choice = { .number = { .row = parameter_find(key), .value = value } };

    choices_find_tries(&choice);
    assert_int_equal(choice.try_count, first < 0 ? 0 : second < 0 ? 1 : 2);
    for (unsigned int i = 0; i < choice.try_count; i++)
        assert_true(choice.tries[i].value == (i ? second : first) && !choice.tries[i].moves);
}

static void check_words(const char *key, double value, struct leave_out_try first,
                        struct leave_out_try second, const char *expected)
{
    struct leave_out_choice choice = { .number = { .row = parameter_find(key), .value = value },
                                       .try_count = second.value < 0 ? 1 : 2,
                                       .tries = { first, second } };
    char text[256];

    choices_describe(&choice, text, sizeof(text));
    assert_string_equal(text, expected);
}

/* Counts are compared with half and double of them within the limits of the row, switches with the other state. */
static void test_choices(void **state)
{
    const struct leave_out_try none = { .value = -1 };

    check_tries("hca.engine_depth", 16, 8, 32);
    check_tries("hca.engine_depth", 1, 2, -1);
    check_tries("hca.engines", ENGINES_MAX, ENGINES_MAX / 2, -1);
    check_tries("icm.qpc_entries", 7, 3, 14);
    check_tries("link.mtu", 256, 512, -1);
    check_tries("hca.drain", 1, 0, -1);
    check_tries("hca.drain", 0, 1, -1);
    check_tries("hca.packet_time", 0, 100, -1);

    check_words("hca.engine_depth", 4, (struct leave_out_try){ 2, 12.2, true },
                (struct leave_out_try){ 8, 7.9, true }, "2 and 8 fit clearly worse (by 12, 8)");
    check_words("hca.engine_depth", 16, (struct leave_out_try){ 8, 1, true },
                (struct leave_out_try){ 32, 0, false }, "8 to 32 fit equally well");
    check_words("bus.read_burst", 64, (struct leave_out_try){ 32, INFINITY, true },
                (struct leave_out_try){ 128, 3, true },
                "64 B to 128 B fit equally well, 32 B fits clearly worse (cannot be run)");
    check_words("hca.drain", 1, (struct leave_out_try){ 0, 72, true }, none,
                "no fits clearly worse (by 72)");
    check_words("hca.drain", 1, (struct leave_out_try){ 0, 2, true }, none,
                "no and yes fit equally well");
    check_words("hca.drain", 1, (struct leave_out_try){ 0, 0, false }, none, "no value tells");
}

#define CLIFF -0.4 /* of the time a, as a logarithm: below it everything is slow */

struct model {
    unsigned int runs;
    bool without_b; /* row 2 is left out, so nobody may ask for it */
};

/* What the surrogate of make_surrogate() stands for, with row 0 at twice the paper's time. */
static int run_model(void *context, const double *x, double *residuals)
{
    struct model *model = context;
    double fall = x[0] < CLIFF ? 2 : 0;

    model->runs++;
    residuals[0] = log(2) + x[0] + fall;
    residuals[1] = log((exp(x[0]) + exp(x[1])) / 2) + fall;
    if (!model->without_b)
        residuals[2] = x[1];
    return 0;
}

/* The surrogate does not know of the cliff, and leads beyond it. */
static void test_descent(void **state)
{
    struct surrogate surrogate;
    static const bool none[3] = { false }, last[3] = { false, false, true };

    for (int without = 0; without < 2; without++) {
        struct model model = { .without_b = without };
        struct descent descent = { .left_out = without ? last : none,
                                   .damping = 1,
                                   .run = run_model,
                                   .context = &model };
        struct solution best;
        double before;

        make_surrogate(&surrogate);
        surrogate.residual[0] = log(2);
        surrogate.spread[0] = surrogate.spread[1] = 1;
        descent.surrogate = &surrogate;
        descent_solution_open(&best, &surrogate);
        best.residuals[2] = NAN; /* must not count if it is left out */
        assert_int_equal(descent_judge(&descent, &best), 0);
        before = best.cost;
        assert_int_equal(descent_go(&descent, &best), 0);
        assert_true(best.cost < before / 2 && best.x[0] < CLIFF / 2 && best.x[0] >= CLIFF);
        assert_true(model.runs > 2 && model.runs < 10);
        assert_true(isnan(best.residuals[2]) == model.without_b);
        descent_solution_close(&best);
        surrogate_close(&surrogate);
    }
}

/* What was run is found again for the same experiment, length and values only. */
static void test_known(void **state)
{
    struct data_experiment experiments[] = { { .first_point = 0, .count = 1 },
                                             { .first_point = 1, .count = 2 } };
    struct data data = { .experiment_count = 2, .experiments = experiments, .point_count = 3 };
    struct known known = { .data = &data, .key_count = 2 };
    const double values[] = { 1, 2 }, other[] = { 1, 3 }, run[] = { 7, 8, 9 };
    double out[] = { 0, 0, 0 };

    known_keep(&known, 1, false, values, run);
    assert_false(known_find(&known, 0, false, values, out));
    assert_false(known_find(&known, 1, true, values, out));
    assert_false(known_find(&known, 1, false, other, out));
    assert_true(known_find(&known, 1, false, values, out));
    assert_true(out[0] == 0 && out[1] == 8 && out[2] == 9);
    known_free(&known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_control),
        cmocka_unit_test(test_identify),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_surrogate),
        cmocka_unit_test(test_damping),
        cmocka_unit_test(test_follow),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_descent),
        cmocka_unit_test(test_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
