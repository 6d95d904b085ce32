/* SPDX-License-Identifier: BSD-2-Clause */
#include "calibrate/choices.h"

#include "calibrate/adjust.h"
#include "calibrate/keys.h"
#include "results/allocate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STILL   1e-4 /* rows that move by less do not */
#define DAMPING 5.0  /* of the first step from a value that is better */
/* What 0 is compared with: little, but so much that it matters. */
#define ZERO_NS    100.0
#define ZERO_GB_S  1.0
#define ZERO_COUNT 1.0
#define ZERO_BYTES 4096.0

static void add_try(struct leave_out_choice *choice, double value)
{
    const struct key key = { .row = choice->number.row };

    if (key.row->unit != UNIT_YES_NO)
        value = keys_valid(&key, value);
    if (value != choice->number.value)
        choice->tries[choice->try_count++] = (struct leave_out_try){ .value = value };
}

void choices_find_tries(struct leave_out_choice *choice)
{
    static const double beside_zero[] = { [UNIT_TIME] = ZERO_NS,
                                          [UNIT_RATE] = ZERO_GB_S,
                                          [UNIT_COUNT] = ZERO_COUNT,
                                          [UNIT_BYTES] = ZERO_BYTES,
                                          [UNIT_REAL] = 1 };
    double value = choice->number.value;

    choice->try_count = 0;
    if (choice->number.row->unit == UNIT_YES_NO) {
        add_try(choice, !value);
    } else if (!value) {
        add_try(choice, beside_zero[choice->number.row->unit]);
    } else {
        /* 0 is another thing: all, or none. */
        if (value > 1)
            add_try(choice, floor(value / 2));
        add_try(choice, value * 2);
    }
}

/* ---- judging ---- */

struct judging {
    struct paper_session *session;
    struct surrogate *surrogate;
    struct solution *best;
    unsigned int count;
    struct paper_trial *trials;
    double *residuals; /* by trial and row */
    double cost;       /* of the solution, with the same steps allowed */
};

static void judging_open(struct judging *judging)
{
    struct leave_out *out = judging->session->out;
    size_t most = (size_t)out->choice_count * TRIES_MAX + 1;

    judging->trials = allocate_zeroed(most * sizeof(*judging->trials));
    judging->residuals = allocate_zeroed(most * out->row_count * sizeof(double));
    for (unsigned int i = 0; i < out->choice_count; i++) {
        choices_find_tries(&out->choices[i]);
        for (unsigned int k = 0; k < out->choices[i].try_count; k++)
            judging->trials[judging->count++] =
                (struct paper_trial){ .x = judging->best->x,
                                      .number = &out->choices[i].number,
                                      .value = out->choices[i].tries[k].value };
    }
}

static void judging_close(struct judging *judging)
{
    free(judging->trials);
    free(judging->residuals);
}

static double follow(const struct judging *judging, const double *residuals)
{
    unsigned int n = judging->surrogate->parameter_count;
    double *x = allocate_zeroed((n + 1) * sizeof(*x)), cost;

    memcpy(x, judging->best->x, n * sizeof(*x));
    cost = surrogate_follow(judging->surrogate, residuals, x);
    free(x);
    return cost;
}

static void take_result(const struct judging *judging, const double *residuals,
                        struct leave_out_try *try)
{
    try->worse = follow(judging, residuals) - judging->cost;
    for (unsigned int k = 0; k < judging->surrogate->row_count; k++)
        try->moves |= !(fabs(residuals[k] - judging->best->residuals[k]) < STILL);
}

static int run_one(void *context, const double *x, double *residuals)
{
    return paper_session_run(context, x, 1, NULL, residuals);
}

/* Steps from the value of a trial. Takes it if real runs confirm that it is clearly better. */
static int confirm(const struct judging *judging, unsigned int trial, bool *taken)
{
    struct leave_out_parameter *number = judging->trials[trial].number;
    unsigned int rows = judging->surrogate->row_count;
    const double *residuals = judging->residuals + (size_t)trial * rows;
    struct surrogate surrogate;
    struct descent descent = {
        .surrogate = &surrogate, .damping = DAMPING, .run = run_one, .context = judging->session
    };
    struct solution there;
    double before = number->value;
    int status;

    surrogate_copy(&surrogate, judging->surrogate);
    descent_solution_open(&there, &surrogate);
    memcpy(there.x, judging->best->x, surrogate.parameter_count * sizeof(double));
    memcpy(there.residuals, residuals, rows * sizeof(double));
    there.cost = surrogate_cost(&surrogate, NULL, there.residuals, there.x);
    number->value = judging->trials[trial].value;
    status = descent_go(&descent, &there);
    *taken = !status && there.cost <= judging->best->cost - ADJUST_BETTER;
    if (*taken) {
        memcpy(judging->best->x, there.x, surrogate.parameter_count * sizeof(double));
        memcpy(judging->best->residuals, there.residuals, rows * sizeof(double));
        memcpy(judging->surrogate->residual, surrogate.residual, rows * sizeof(double));
        judging->best->cost = there.cost;
    } else {
        number->value = before;
    }
    surrogate_close(&surrogate);
    descent_solution_close(&there);
    return status;
}

/* Of all that seem clearly better, the best one that real runs confirm. */
static int take_best(struct judging *judging, bool *taken)
{
    struct leave_out *out = judging->session->out;
    double before = judging->best->cost;
    int status = 0;

    while (!status && !*taken) {
        struct leave_out_choice *best_choice = NULL;
        struct leave_out_try *best = NULL;
        unsigned int trial = 0, best_trial = 0;

        for (unsigned int i = 0; i < out->choice_count; i++) {
            for (unsigned int k = 0; k < out->choices[i].try_count; k++, trial++) {
                struct leave_out_try *try = &out->choices[i].tries[k];

                if (try->worse > -ADJUST_BETTER || (best && try->worse >= best->worse))
                    continue;
                best_choice = &out->choices[i];
                best = try;
                best_trial = trial;
            }
        }
        if (!best)
            break;
        status = confirm(judging, best_trial, taken);
        best->worse = 0; /* is not looked at again, and real runs do not say that it is better */
        if (*taken)
            best_choice->gain += before - judging->best->cost;
    }
    return status;
}

int choices_judge(struct paper_session *session, struct surrogate *surrogate, struct solution *best,
                  bool *taken)
{
    struct judging judging = { .session = session, .surrogate = surrogate, .best = best };
    struct leave_out *out = session->out;
    int status = 0;

    *taken = false;
    judging_open(&judging);
    session->stage = "counts, sizes and switches";
    if (judging.count)
        status = paper_session_try(session, judging.trials, judging.count, judging.residuals);
    judging.cost = follow(&judging, best->residuals);
    for (unsigned int i = 0, trial = 0; !status && i < out->choice_count; i++) {
        for (unsigned int k = 0; k < out->choices[i].try_count; k++, trial++)
            take_result(&judging, judging.residuals + (size_t)trial * out->row_count,
                        &out->choices[i].tries[k]);
    }
    if (!status)
        status = take_best(&judging, taken);
    judging_close(&judging);
    return status;
}

/* ---- words ---- */

static bool is_worse(const struct leave_out_try *try)
{
    return try->worse >= ADJUST_BETTER;
}

/* The sums of those that can be run, or that one cannot. */
static void put_worse(const struct leave_out_choice *choice, FILE *out)
{
    const char *between = "";
    unsigned int count = 0;
    char text[64];

    for (unsigned int i = 0; i < choice->try_count; i++) {
        if (is_worse(&choice->tries[i]))
            fprintf(out, "%s%s", count++ ? " and " : "",
                    keys_text(choice->number.row, choice->tries[i].value, text, sizeof(text)));
    }
    fprintf(out, " fit%s clearly worse (", count > 1 ? "" : "s");
    for (unsigned int i = 0; i < choice->try_count; i++) {
        if (!is_worse(&choice->tries[i]))
            continue;
        if (isinf(choice->tries[i].worse))
            fprintf(out, "%scannot be run", between);
        else
            fprintf(out, "%s%.0f", *between ? ", " : "by ", choice->tries[i].worse);
        between = ", ";
    }
    fputc(')', out);
}

static void put_equal(const struct leave_out_choice *choice, FILE *out)
{
    double low = choice->number.value, high = low;
    char first[64], last[64];

    for (unsigned int i = 0; i < choice->try_count; i++) {
        if (is_worse(&choice->tries[i]))
            continue;
        low = fmin(low, choice->tries[i].value);
        high = fmax(high, choice->tries[i].value);
    }
    keys_text(choice->number.row, low, first, sizeof(first));
    keys_text(choice->number.row, high, last, sizeof(last));
    fprintf(out, "%s %s %s fit equally well", first,
            choice->number.row->unit == UNIT_YES_NO ? "and" : "to", last);
}

void choices_describe(const struct leave_out_choice *choice, char *text, size_t size)
{
    FILE *out = fmemopen(text, size, "w");
    unsigned int worse = 0;
    bool moves = false;

    if (!out)
        abort();
    for (unsigned int i = 0; i < choice->try_count; i++) {
        worse += is_worse(&choice->tries[i]);
        moves |= choice->tries[i].moves;
    }
    if (!moves) {
        fputs("no value tells", out);
    } else {
        if (worse < choice->try_count)
            put_equal(choice, out);
        if (worse && worse < choice->try_count)
            fputs(", ", out);
        if (worse)
            put_worse(choice, out);
    }
    fclose(out);
}
