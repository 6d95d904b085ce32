/* SPDX-License-Identifier: BSD-2-Clause */
#include "calibrate/fit.h"

#include "results/allocate.h"
#include "util/sorted.h"

#include <cminpack.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEP        0.08 /* of a finite difference: 8% */
#define FURTHEST    6.0  /* the same, at most */
#define FAR         0.4  /* of a screening: a factor of 1.5 */
#define TOGETHER    5    /* keys that are screened in one run */
#define STILL       1e-4 /* a relative change that counts as none */
#define FAILED      3.0  /* residual, in logarithms, of a point that a trial does not have */
#define CONVERGED   1e-3
#define UPDATES_MAX 2    /* of a Jacobian before it is measured again */
#define OUTLIER     3.0  /* standard errors; farther away the distance counts, not its square */
#define BRIEF_ERROR 0.1  /* of the difference between whole and brief runs, elsewhere */
#define ROUNDS_MAX  8    /* of a fit that is still far away */
#define FAR_AWAY    3.0  /* rms of the residuals */
#define FALLING     0.98 /* a fall of their norm to less than this, since the last Jacobian */
#define USED_UP     5    /* lmder(): the number of trials is reached */

void fit_open(struct fit *fit, struct runs *runs, struct data *data, struct keys *keys)
{
    *fit = (struct fit){ .runs = runs, .data = data, .keys = keys, .misfit = 1 };
    fit->keys_of = allocate_zeroed(keys->count * sizeof(*fit->keys_of) + 1);
    for (unsigned int i = 0; i < keys->count; i++) {
        if (keys->list[i].variation == KEY_SMOOTH)
            fit->keys_of[fit->key_count++] = i;
    }
    fit->points_of = allocate_zeroed(data->point_count * sizeof(*fit->points_of) + 1);
    fit->offset = allocate_zeroed(data->point_count * sizeof(*fit->offset) + 1);
    fit->sensitive = allocate_zeroed((size_t)fit->key_count * data->experiment_count + 1);
    memset(fit->sensitive, true, (size_t)fit->key_count * data->experiment_count);
    fit->before_x = allocate_zeroed(fit->key_count * sizeof(double) + 1);
    fit->before_residuals =
        allocate_zeroed((data->point_count + fit->key_count) * sizeof(double) + 1);
}

void fit_close(struct fit *fit)
{
    free(fit->keys_of);
    free(fit->points_of);
    free(fit->offset);
    free(fit->sensitive);
    free(fit->jacobian);
    free(fit->before_x);
    free(fit->before_residuals);
}

void fit_forget(struct fit *fit, const bool *experiments)
{
    for (unsigned int i = 0; i < fit->key_count; i++) {
        for (unsigned int k = 0; k < fit->data->experiment_count; k++)
            fit->sensitive[(size_t)i * fit->data->experiment_count + k] |= experiments[k];
    }
    fit->steps = UPDATES_MAX;
}

void fit_restrict(struct fit *fit)
{
    unsigned int kept = 0;

    for (unsigned int i = 0; i < fit->key_count; i++) {
        if (fit->keys->list[fit->keys_of[i]].origin == KEY_UNDETERMINED)
            continue;
        fit->keys_of[kept] = fit->keys_of[i];
        memmove(fit->sensitive + (size_t)kept * fit->data->experiment_count,
                fit->sensitive + (size_t)i * fit->data->experiment_count,
                fit->data->experiment_count);
        memmove(fit->jacobian + (size_t)kept * fit->point_count,
                fit->jacobian + (size_t)i * fit->point_count,
                fit->point_count * sizeof(*fit->jacobian));
        kept++;
    }
    fit->key_count = kept;
    fit->comparable = false;
}

void fit_experiments(const struct fit *fit, bool *experiments)
{
    for (unsigned int i = 0; i < fit->data->experiment_count; i++)
        experiments[i] = fit->data->experiments[i].role == DATA_FITTED;
}

void fit_values(const struct fit *fit, double *values)
{
    for (unsigned int i = 0; i < fit->keys->count; i++)
        values[i] = fit->keys->list[i].value;
}

static double *new_vector(size_t count)
{
    return allocate_zeroed((count + 1) * sizeof(double));
}

/* The first comparison decides which points are fitted; later ones renew the differences. */
static void choose_points(struct fit *fit, const double *whole, const double *brief)
{
    struct data *data = fit->data;
    bool first = !fit->point_count;

    fit->comparable = false;
    for (unsigned int i = 0; i < data->point_count; i++) {
        struct data_point *point = &data->points[i];
        bool both = !isnan(whole[i]) && !isnan(brief[i]);

        if (first) {
            point->usable = !isnan(whole[i]);
            point->fitted = both && data->experiments[point->experiment].role == DATA_FITTED;
            if (point->fitted)
                fit->points_of[fit->point_count++] = i;
        }
        if (point->fitted && both)
            fit->offset[i] = whole[i] - brief[i];
    }
}

int fit_compare_runs(struct fit *fit)
{
    struct data *data = fit->data;
    bool *chosen = allocate_zeroed(data->experiment_count + 1);
    double *values = new_vector(fit->keys->count);
    double *whole = new_vector(data->point_count), *brief = new_vector(data->point_count);
    struct runs_trial trials[] = {
        { .values = values, .experiments = chosen, .whole = true, .out = whole },
        { .values = values, .experiments = chosen, .out = brief },
    };
    int status;

    fit_experiments(fit, chosen);
    fit_values(fit, values);
    status = runs_evaluate(fit->runs, trials, 2, "the experiments in full");
    if (!status)
        choose_points(fit, whole, brief);
    free(chosen);
    free(values);
    free(whole);
    free(brief);
    return status;
}

/* ---- residuals ---- */

/* The values of all keys for a point x of the search. */
static void values_at(const struct fit *fit, const double *x, double *values)
{
    fit_values(fit, values);
    for (unsigned int i = 0; i < fit->key_count; i++) {
        const struct key *key = &fit->keys->list[fit->keys_of[i]];
        double start = key->start > 0 ? key->start : key->value;

        values[fit->keys_of[i]] =
            keys_valid(key, start * exp(fmin(fmax(x[i], -FURTHEST), FURTHEST)));
    }
}

/* The standard error of the data and of the brief run. */
static double sigma_of(const struct fit *fit, unsigned int point)
{
    return hypot(fit->data->points[point].sigma, BRIEF_ERROR * fit->offset[point]);
}

double fit_distance(const struct fit *fit, unsigned int point, double out)
{
    double error =
        isnan(out) ? FAILED : out + fit->offset[point] - fit->data->points[point].measured;

    return error / sigma_of(fit, point);
}

double fit_tame(double distance)
{
    double far = fabs(distance);

    return far <= OUTLIER ? distance
                          : copysign(sqrt(2 * OUTLIER * far - OUTLIER * OUTLIER), distance);
}

double fit_tame_slope(double distance)
{
    return fabs(distance) <= OUTLIER ? 1 : OUTLIER / fabs(fit_tame(distance));
}

static double residual_of(const struct fit *fit, unsigned int point, double out)
{
    return fit_tame(fit_distance(fit, point, out));
}

static void residuals_of(const struct fit *fit, const double *x, const double *out,
                         double *residuals)
{
    for (unsigned int i = 0; i < fit->point_count; i++)
        residuals[i] = residual_of(fit, fit->points_of[i], out[fit->points_of[i]]);
    for (unsigned int i = 0; i < fit->key_count; i++)
        residuals[fit->point_count + i] = x[i] / FIT_PRIOR;
}

double fit_loss(const struct fit *fit, const double *out, const bool *experiments, bool shape)
{
    double *distances = new_vector(fit->point_count), total = 0;

    for (unsigned int i = 0, next; i < fit->point_count; i = next) {
        const struct data_point *first = &fit->data->points[fit->points_of[i]];
        double middle = 0;

        for (next = i; next < fit->point_count; next++) {
            unsigned int point = fit->points_of[next];

            if (fit->data->points[point].series != first->series)
                break;
            distances[next - i] = fit_distance(fit, point, out[point]);
        }
        if (!experiments[first->experiment])
            continue;
        if (shape) {
            sorted_make(distances, next - i);
            middle = sorted_median(distances, next - i);
        }
        for (unsigned int k = 0; k < next - i; k++)
            total += pow(fit_tame(distances[k] - middle), 2);
    }
    free(distances);
    return total;
}

static double norm_of(const struct fit *fit, const double *residuals)
{
    double sum = 0;

    for (unsigned int i = 0; i < fit->point_count; i++)
        sum += residuals[i] * residuals[i];
    return sqrt(sum);
}

static int evaluate(struct fit *fit, const double *x, double *residuals)
{
    bool *chosen = allocate_zeroed(fit->data->experiment_count + 1);
    double *values = new_vector(fit->keys->count), *out = new_vector(fit->data->point_count);
    struct runs_trial trial = { .values = values, .experiments = chosen, .out = out };

    fit_experiments(fit, chosen);
    values_at(fit, x, values);
    fit->stopped = runs_evaluate(fit->runs, &trial, 1, "trial");
    if (!fit->stopped)
        residuals_of(fit, x, out, residuals);
    free(chosen);
    free(values);
    free(out);
    return fit->stopped ? -1 : 0;
}

/* ---- the Jacobian ---- */

/* Which experiments a key moves, seen at its column. */
static void note_sensitivity(struct fit *fit, unsigned int key, const double *column)
{
    bool *sensitive = fit->sensitive + (size_t)key * fit->data->experiment_count;

    memset(sensitive, 0, fit->data->experiment_count);
    for (unsigned int i = 0; i < fit->point_count; i++) {
        const struct data_point *point = &fit->data->points[fit->points_of[i]];

        if (fabs(column[i]) * sigma_of(fit, fit->points_of[i]) > STILL)
            sensitive[point->experiment] = true;
    }
}

static void take_column(const struct fit *fit, const double *residuals, const double *out,
                        double step, double *column)
{
    for (unsigned int i = 0; i < fit->point_count; i++) {
        unsigned int point = fit->points_of[i];

        /* What was not run, or failed, counts as unchanged. */
        column[i] =
            isnan(out[point]) ? 0 : (residual_of(fit, point, out[point]) - residuals[i]) / step;
    }
}

/* One run for each key, with the experiments that it moved the last time. */
static int measure_columns(struct fit *fit, const double *x, const double *residuals, double step,
                           double *jacobian)
{
    unsigned int count = fit->key_count;
    struct runs_trial *trials = allocate_zeroed(count * sizeof(*trials) + 1);
    double *values = new_vector((size_t)count * fit->keys->count);
    double *outs = new_vector((size_t)count * fit->data->point_count);
    double *moved = new_vector(count);

    for (unsigned int i = 0; i < count; i++) {
        memcpy(moved, x, count * sizeof(*x));
        moved[i] += step;
        trials[i] = (struct runs_trial){
            .values = values + (size_t)i * fit->keys->count,
            .experiments = fit->sensitive + (size_t)i * fit->data->experiment_count,
            .out = outs + (size_t)i * fit->data->point_count,
        };
        values_at(fit, moved, values + (size_t)i * fit->keys->count);
    }
    fit->stopped = runs_evaluate(fit->runs, trials, count, "least squares");
    for (unsigned int i = 0; !fit->stopped && i < count; i++)
        take_column(fit, residuals, trials[i].out, step, jacobian + (size_t)i * fit->point_count);
    free(trials);
    free(values);
    free(outs);
    free(moved);
    return fit->stopped ? -1 : 0;
}

static int measure_jacobian(struct fit *fit, const double *x, const double *residuals)
{
    fit->measured_norm = norm_of(fit, residuals);
    if (measure_columns(fit, x, residuals, STEP, fit->jacobian))
        return -1;
    for (unsigned int i = 0; i < fit->key_count; i++)
        note_sensitivity(fit, i, fit->jacobian + (size_t)i * fit->point_count);
    return 0;
}

/* Broyden: the smallest change of the Jacobian that explains the last step. */
static void update_jacobian(struct fit *fit, const double *x, const double *residuals)
{
    double squares = 0;

    for (unsigned int k = 0; k < fit->key_count; k++)
        squares += pow(x[k] - fit->before_x[k], 2);
    for (unsigned int i = 0; squares > 0 && i < fit->point_count; i++) {
        double missing = residuals[i] - fit->before_residuals[i];

        for (unsigned int k = 0; k < fit->key_count; k++)
            missing -= fit->jacobian[(size_t)k * fit->point_count + i] * (x[k] - fit->before_x[k]);
        for (unsigned int k = 0; k < fit->key_count; k++)
            fit->jacobian[(size_t)k * fit->point_count + i] +=
                missing * (x[k] - fit->before_x[k]) / squares;
    }
}

static int renew_jacobian(struct fit *fit, const double *x, const double *residuals)
{
    if (!fit->jacobian) {
        fit->jacobian = new_vector((size_t)fit->key_count * fit->point_count);
        fit->steps = UPDATES_MAX;
    }
    if (fit->steps++ < UPDATES_MAX) {
        if (fit->comparable)
            update_jacobian(fit, x, residuals);
    } else {
        fit->steps = 0;
        if (measure_jacobian(fit, x, residuals))
            return -1;
    }
    fit->comparable = true;
    memcpy(fit->before_x, x, fit->key_count * sizeof(*x));
    memcpy(fit->before_residuals, residuals, fit->point_count * sizeof(*residuals));
    return 0;
}

void fit_position(const struct fit *fit, double *x)
{
    for (unsigned int i = 0; i < fit->key_count; i++) {
        const struct key *key = &fit->keys->list[fit->keys_of[i]];

        x[i] = key->start > 0 ? log(key->value / key->start) : 0;
    }
}

/* A step that takes a point over a cliff gives a slope that is much too steep. */
static double gentler(double up, double down)
{
    if (up * down <= 0)
        return 0;
    return fabs(up) < fabs(down) ? up : down;
}

int fit_measure_slopes(struct fit *fit)
{
    size_t count = (size_t)fit->key_count * fit->point_count;
    double *x = new_vector(fit->key_count), *down = new_vector(count);
    double *residuals = new_vector(fit->point_count + fit->key_count);

    fit_position(fit, x);
    if (fit->jacobian && !evaluate(fit, x, residuals) && !measure_jacobian(fit, x, residuals) &&
        !measure_columns(fit, x, residuals, -STEP, down)) {
        for (size_t i = 0; i < count; i++)
            fit->jacobian[i] = gentler(fit->jacobian[i], down[i]);
    }
    fit->comparable = false;
    free(x);
    free(down);
    free(residuals);
    return fit->stopped;
}

/* Moves the keys from 'first' on, as many as are screened together. */
static void move_some(const struct fit *fit, unsigned int first, double *values)
{
    fit_values(fit, values);
    for (unsigned int i = first; i < first + TOGETHER && i < fit->key_count; i++) {
        unsigned int key = fit->keys_of[i];

        values[key] = keys_valid(&fit->keys->list[key], values[key] * exp(FAR));
    }
}

static void take_screened(struct fit *fit, unsigned int first, const double *still,
                          const double *moved)
{
    size_t all = fit->data->experiment_count;

    for (unsigned int i = first; i < first + TOGETHER && i < fit->key_count; i++) {
        memset(fit->sensitive + i * all, 0, all);
        for (unsigned int k = 0; k < fit->point_count; k++) {
            unsigned int point = fit->points_of[k];

            if (!(fabs(moved[point] - still[point]) < STILL))
                fit->sensitive[i * all + fit->data->points[point].experiment] = true;
        }
    }
}

int fit_screen(struct fit *fit)
{
    unsigned int count = 1 + (fit->key_count + TOGETHER - 1) / TOGETHER;
    size_t points = fit->data->point_count, keys = fit->keys->count;
    struct runs_trial *trials = allocate_zeroed(count * sizeof(*trials));
    bool *chosen = allocate_zeroed(fit->data->experiment_count + 1);
    double *values = new_vector(count * keys), *outs = new_vector(count * points);
    int status;

    fit_experiments(fit, chosen);
    for (unsigned int i = 0; i < count; i++) {
        trials[i] = (struct runs_trial){ .values = values + i * keys,
                                         .experiments = chosen,
                                         .out = outs + i * points };
        if (i)
            move_some(fit, (i - 1) * TOGETHER, values + i * keys);
        else
            fit_values(fit, values);
    }
    status = runs_evaluate(fit->runs, trials, count, "what depends on what");
    for (unsigned int i = 1; !status && i < count; i++)
        take_screened(fit, (i - 1) * TOGETHER, outs, outs + i * points);
    free(trials);
    free(chosen);
    free(values);
    free(outs);
    return status;
}

/* ---- solving ---- */

static int serve_lmder(void *context, int rows, int columns, const double *x, double *residuals,
                       double *jacobian, int stride, int what)
{
    struct fit *fit = context;

    if (what == 1)
        return evaluate(fit, x, residuals);
    if (renew_jacobian(fit, x, residuals))
        return -1;
    for (int k = 0; k < columns; k++) {
        for (int i = 0; i < rows; i++) {
            unsigned int point = (unsigned int)i;

            jacobian[k * stride + i] = point < fit->point_count
                                           ? fit->jacobian[(size_t)k * fit->point_count + point]
                                       : point - fit->point_count == (unsigned int)k ? 1 / FIT_PRIOR
                                                                                     : 0;
        }
    }
    return 0;
}

/* If the model cannot follow the data within their errors, standard errors grow by as much. */
static void note_misfit(struct fit *fit, const double *residuals)
{
    fit->misfit = fmax(1, norm_of(fit, residuals) / sqrt(fmax(1, fit->point_count)));
}

/* Buffers of lmder(). */
struct solver {
    int n, m;
    double *x, *residuals, *jacobian, *scale, *work;
    int *pivots;
};

static void solver_open(const struct fit *fit, struct solver *solver)
{
    int n = (int)fit->key_count, m = (int)(fit->point_count + fit->key_count);

    *solver = (struct solver){ .n = n,
                               .m = m,
                               .x = new_vector(n),
                               .residuals = new_vector(m),
                               .jacobian = new_vector((size_t)m * n),
                               .scale = new_vector(n),
                               .work = new_vector(4 * (size_t)n + m),
                               .pivots = allocate_zeroed((n + 1) * sizeof(int)) };
    fit_position(fit, solver->x);
    for (int i = 0; i < n; i++)
        solver->scale[i] = 1;
}

static void solver_close(struct solver *solver)
{
    free(solver->x);
    free(solver->residuals);
    free(solver->jacobian);
    free(solver->scale);
    free(solver->work);
    free(solver->pivots);
}

/* Returns whether it is worth while to go on. */
static bool solve_once(struct fit *fit, struct solver *s, int trials)
{
    int evaluations, jacobians;
    int info = lmder(serve_lmder, fit, s->m, s->n, s->x, s->residuals, s->jacobian, s->m, CONVERGED,
                     CONVERGED, 0, trials, s->scale, 2, 1, 0, &evaluations, &jacobians, s->pivots,
                     s->work, s->work + s->n, s->work + 2 * s->n, s->work + 3 * s->n,
                     s->work + 4 * s->n);
    double norm = norm_of(fit, s->residuals);

    return !fit->stopped && info == USED_UP && norm > FAR_AWAY * sqrt(fit->point_count) &&
           norm < FALLING * fit->measured_norm;
}

int fit_solve(struct fit *fit, int trials)
{
    double *values = new_vector(fit->keys->count);
    struct solver solver;

    solver_open(fit, &solver);
    for (int round = 0; solver.n && fit->point_count && round < ROUNDS_MAX; round++) {
        if (!solve_once(fit, &solver, trials))
            break;
    }
    if (!fit->stopped) {
        values_at(fit, solver.x, values);
        for (int i = 0; i < solver.n; i++)
            fit->keys->list[fit->keys_of[i]].value = values[fit->keys_of[i]];
        note_misfit(fit, solver.residuals);
    }
    solver_close(&solver);
    free(values);
    return fit->stopped;
}
