/* SPDX-License-Identifier: BSD-2-Clause */
#include "calibrate/leave_out.h"

#include "calibrate/choices.h"
#include "calibrate/data.h"
#include "calibrate/descent.h"
#include "calibrate/paper_session.h"
#include "results/allocate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SWEEPS  4   /* of finite differences in a fit */
#define DAMPING 5.0 /* of the first step */
#define ROUNDS  8   /* in which other counts, sizes and switches may be taken */
#define NONE    "none"

bool leave_out_is_rate(const struct paper_row *row)
{
    return strstr(row->fields[FIELD_UNIT], "/s") != NULL;
}

/* ---- one fit ---- */

struct leave_out_fit {
    struct paper_session *session;
    struct surrogate *surrogate;
    const bool *left_out, *wanted; /* by row: each other's opposite; NULL: all are fitted */
    bool sampled_here;             /* the surrogate, where the fit begins */
};

static int run_one(void *context, const double *x, double *residuals)
{
    const struct leave_out_fit *fit = context;

    return paper_session_run(fit->session, x, 1, fit->wanted, residuals);
}

static struct descent descent_of(struct leave_out_fit *fit)
{
    return (struct descent){ .surrogate = fit->surrogate,
                             .left_out = fit->left_out,
                             .damping = DAMPING,
                             .run = run_one,
                             .context = fit };
}

/* Steps from 'best', which was run, until the cost is 'enough' or steps gain next to nothing.
 * Slopes that were sampled elsewhere often lead there, too, and cost no runs; where they do not,
 * all numbers are sampled again where the last steps have led. */
static int descend(struct leave_out_fit *fit, double enough, struct solution *best)
{
    const struct descent descent = descent_of(fit);
    int status = 0;

    for (int sweep = 0; sweep < SWEEPS && best->cost > enough; sweep++) {
        double before = best->cost;

        if (sweep) {
            paper_session_move(fit->session, best->x);
            status = paper_session_sample(fit->session, 1, fit->wanted, fit->surrogate);
            fit->sampled_here = true;
        }
        if (!status)
            status = descent_go(&descent, best);
        if (status || (fit->sampled_here && !descent_gains(before, best->cost)))
            break;
    }
    return status;
}

/* ---- to all rows ---- */

/* Judges the numbers that slopes tell nothing of. After another value was taken, the others follow.
 */
static int choose(struct leave_out_fit *fit, struct solution *best)
{
    bool taken = true;
    int status = 0;

    for (int round = 0; !status && taken && round < ROUNDS; round++) {
        status = choices_judge(fit->session, fit->surrogate, best, &taken);
        fit->sampled_here = !taken;
        if (!status && taken)
            status = descend(fit, 0, best);
    }
    return status;
}

/* Begins with the files as they are, where the surrogate was sampled. */
static int fit_to_all(struct paper_session *session, struct surrogate *surrogate)
{
    struct leave_out *out = session->out;
    struct leave_out_fit fit = { .session = session, .surrogate = surrogate, .sampled_here = true };
    double *errors = allocate_zeroed((out->parameter_count + 1) * sizeof(double));
    struct solution best;
    int status;

    descent_solution_open(&best, surrogate);
    memcpy(best.residuals, surrogate->residual, surrogate->row_count * sizeof(double));
    best.cost = surrogate_cost(surrogate, NULL, best.residuals, best.x);
    session->stage = "fit";
    status = descend(&fit, 0, &best);
    if (!status && out->choice_count)
        status = choose(&fit, &best);
    surrogate_errors(surrogate, best.x, errors);
    for (unsigned int i = 0; i < out->parameter_count; i++) {
        out->parameters[i].fitted = paper_session_value(&out->parameters[i], best.x[i]);
        out->parameters[i].error = errors[i];
    }
    for (unsigned int k = 0; k < out->row_count; k++) {
        out->rows[k].seen = out->rows[k].unseen = NAN;
        out->rows[k].again = best.residuals[k];
    }
    descent_solution_close(&best);
    free(errors);
    return status;
}

/* ---- without some ---- */

bool leave_out_same_curve(const struct leave_out_row *one, const struct leave_out_row *other)
{
    const char *figure = paper_db_text(one->row->spec, "figure");
    const char *others = paper_db_text(other->row->spec, "figure");

    return one == other ||
           (one->row->paper == other->row->paper && figure && others && !strcmp(figure, others));
}

/* What is left out with row k: it alone, or its curve. */
static void choose_left_out(const struct paper_session *session, unsigned int k, bool *left_out)
{
    const struct leave_out *out = session->out;

    for (unsigned int i = 0; i < out->row_count; i++)
        left_out[i] =
            i == k || (session->spec->curves && leave_out_same_curve(&out->rows[k], &out->rows[i]));
}

/* Fits the surrogate to all rows but those, from the fit to all of them. Real runs of a curve tell
 * how far it is then. */
static int estimate_without(struct paper_session *session, const struct surrogate *surrogate,
                            const bool *left_out, const double *all)
{
    struct leave_out *out = session->out;
    struct solution solution;
    int status = 0;

    descent_solution_open(&solution, surrogate);
    memcpy(solution.x, all, out->parameter_count * sizeof(*all));
    surrogate_fit(surrogate, left_out, solution.x);
    if (session->spec->curves)
        status = paper_session_run(session, solution.x, 1, left_out, solution.residuals);
    for (unsigned int i = 0; i < out->row_count; i++) {
        if (!left_out[i])
            continue;
        out->rows[i].seen = surrogate_residual(surrogate, i, all);
        out->rows[i].unseen = surrogate_residual(surrogate, i, solution.x);
        out->rows[i].again = session->spec->curves ? solution.residuals[i] : NAN;
    }
    descent_solution_close(&solution);
    return status;
}

static int estimate_each(struct paper_session *session, const struct surrogate *surrogate)
{
    struct leave_out *out = session->out;
    double *all = allocate_zeroed((out->parameter_count + 1) * sizeof(double));
    bool *left_out = allocate_zeroed(out->row_count * sizeof(*left_out));
    int status = 0;

    surrogate_fit(surrogate, NULL, all);
    for (unsigned int k = 0; k < out->row_count; k++)
        out->rows[k].unseen = out->rows[k].again = NAN;
    for (unsigned int k = 0; !status && k < out->row_count; k++) {
        if (out->rows[k].stays || !isnan(out->rows[k].unseen))
            continue;
        choose_left_out(session, k, left_out);
        session->stage = out->rows[k].row->fields[FIELD_ID];
        status = estimate_without(session, surrogate, left_out, all);
    }
    free(left_out);
    free(all);
    return status;
}

static double *present_values(const struct leave_out *out)
{
    double *values = allocate_zeroed((out->parameter_count + 1) * sizeof(double));

    for (unsigned int i = 0; i < out->parameter_count; i++)
        values[i] = out->parameters[i].value;
    return values;
}

/* Fits to all rows that are not left out, by real runs. Begins where the surrogate that was sampled
 * around the files leads, not with the files, which have seen all rows. What is left out runs at
 * the end. 'residuals' gets those of all rows, and '*cost', which says what is enough, what it came
 * to. */
static int refit(struct paper_session *session, const struct surrogate *sampled,
                 const bool *left_out, double *residuals, double *cost)
{
    struct leave_out *out = session->out;
    bool *wanted = allocate_zeroed(out->row_count * sizeof(*wanted));
    double *values = present_values(out);
    struct surrogate surrogate;
    struct leave_out_fit fit = {
        .session = session, .surrogate = &surrogate, .left_out = left_out, .wanted = wanted
    };
    const struct descent begin = descent_of(&fit);
    struct solution best;
    int status;

    for (unsigned int i = 0; i < out->row_count; i++)
        wanted[i] = !left_out[i];
    surrogate_copy(&surrogate, sampled);
    descent_solution_open(&best, sampled);
    surrogate_fit(&surrogate, left_out, best.x);
    status = descent_judge(&begin, &best);
    if (!status)
        status = descend(&fit, *cost, &best);
    if (!status)
        status = paper_session_run(session, best.x, 1, left_out, best.residuals);
    memcpy(residuals, best.residuals, out->row_count * sizeof(*residuals));
    *cost = best.cost;
    for (unsigned int i = 0; i < out->parameter_count; i++)
        out->parameters[i].value = values[i];
    surrogate_close(&surrogate);
    descent_solution_close(&best);
    free(wanted);
    free(values);
    return status;
}

/* A fit without a row has less to agree with. So it must come at least as near to the others as the
 * fit to all of them, and that one at least as near as the files. */
static int refit_each(struct paper_session *session, const struct surrogate *sampled)
{
    struct leave_out *out = session->out;
    const char *list = session->spec->refit;
    bool *left_out = allocate_zeroed(out->row_count * sizeof(*left_out));
    struct solution all, one;
    int status;

    descent_solution_open(&all, sampled);
    descent_solution_open(&one, sampled);
    all.cost = surrogate_cost(sampled, NULL, sampled->residual, all.x);
    session->stage = "fit to all";
    status = refit(session, sampled, left_out, all.residuals, &all.cost);
    for (unsigned int k = 0; !status && k < out->row_count; k++) {
        const char *id = out->rows[k].row->fields[FIELD_ID];

        if (out->rows[k].stays || (list && !data_is_listed(list, id)))
            continue;
        session->stage = id;
        choose_left_out(session, k, left_out);
        one.cost = all.cost - surrogate_row_cost(sampled, k, all.residuals[k]);
        status = refit(session, sampled, left_out, one.residuals, &one.cost);
        out->rows[k].again = one.residuals[k];
    }
    descent_solution_close(&all);
    descent_solution_close(&one);
    free(left_out);
    return status;
}

static int fit_without_each(struct paper_session *session, const struct surrogate *surrogate)
{
    const char *list = session->spec->refit;
    int status = estimate_each(session, surrogate);

    if (!status && !session->spec->curves && !(list && !strcmp(list, NONE)))
        status = refit_each(session, surrogate);
    return status;
}

/* Values that count; shapes hold a fit to all of them, and are not left out. */
static bool is_taken(const struct leave_out *out, const struct paper_row *row)
{
    enum role role = role_of(row);

    return row->selected && !paper_db_text(row->spec, "not_run") &&
           (role == ROLE_PREDICTED || role == ROLE_FITTED || (out->all && role == ROLE_SHAPE));
}

static bool stays(const struct leave_out_spec *spec, const struct paper_row *row)
{
    return spec->paper && strcmp(spec->paper, row->paper->name);
}

static void take_rows(const struct paper_db *db, const struct leave_out_spec *spec,
                      struct leave_out *out)
{
    for (unsigned int i = 0; i < db->row_count; i++) {
        if (!is_taken(out, &db->rows[i]))
            continue;
        out->rows = allocate_one_more(out->rows, out->row_count, sizeof(*out->rows));
        out->rows[out->row_count++] =
            (struct leave_out_row){ .row = &db->rows[i],
                                    .is_shape = role_of(&db->rows[i]) == ROLE_SHAPE,
                                    .stays = stays(spec, &db->rows[i]) };
    }
}

static int check_refit(const struct leave_out *out, const char *list, char *error, size_t size)
{
    if (list && !strcmp(list, NONE))
        return 0;
    for (const char *word = list; word && *word; word += strspn(word, ",")) {
        size_t length = strcspn(word, ",");
        bool found = false;

        for (unsigned int i = 0; i < out->row_count; i++) {
            const char *id = out->rows[i].row->fields[FIELD_ID];

            found |= !out->rows[i].stays && strlen(id) == length && !strncmp(id, word, length);
        }
        if (!found) {
            snprintf(error, size, "--refit: '%.*s' is none of the values that are left out",
                     (int)length, word);
            return -1;
        }
        word += length;
    }
    return 0;
}

int leave_out_run(const struct paper_db *db, const struct leave_out_spec *spec,
                  struct leave_out *out, char *error, size_t size)
{
    struct paper_session session = { 0 };
    struct surrogate surrogate;
    int status = 0;

    *out = (struct leave_out){ .all = spec->all, .curves = spec->curves };
    take_rows(db, spec, out);
    if (out->row_count < 2) {
        snprintf(error, size, "a fit needs at least two values that count");
        status = -1;
    }
    if (!status)
        status = check_refit(out, spec->refit, error, size);
    if (!status)
        status = paper_session_open(&session, out, spec, error, size);
    surrogate_open(&surrogate, out->row_count, out->parameter_count);
    for (unsigned int k = 0; k < out->row_count; k++)
        surrogate.is_bound[k] = out->rows[k].is_shape;
    /* A fit to all rows takes small steps. A fit without a curve stays where the other curves hold
     * it. */
    if (!status)
        status =
            paper_session_sample(&session, spec->all || spec->curves ? 1 : 2, NULL, &surrogate);
    for (unsigned int k = 0; !status && k < out->row_count; k++)
        out->rows[k].now = surrogate.residual[k];
    if (!status)
        status =
            spec->all ? fit_to_all(&session, &surrogate) : fit_without_each(&session, &surrogate);
    surrogate_close(&surrogate);
    paper_session_close(&session);
    if (status)
        leave_out_free(out);
    return status;
}

void leave_out_free(struct leave_out *result)
{
    free(result->rows);
    free(result->parameters);
    free(result->choices);
    *result = (struct leave_out){ 0 };
}
