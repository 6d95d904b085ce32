/* SPDX-License-Identifier: BSD-2-Clause */
#include "calibrate/surrogate.h"

#include "calibrate/least_squares.h"
#include "results/allocate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SIGMA     0.02 /* of a paper's value: the last digit, and the reader of a figure */
#define LEAST     0.05 /* share of a time that is left when parts of it vanish */
#define CONVERGED 1e-8
#define FIRM      5.0 /* of steps that follow: 1 / FIRM of a spread away slopes hardly hold */

struct problem {
    const struct surrogate *surrogate;
    const bool *left_out; /* by row; NULL: none */
};

void surrogate_open(struct surrogate *surrogate, unsigned int rows, unsigned int parameters)
{
    *surrogate = (struct surrogate){ .row_count = rows, .parameter_count = parameters };
    surrogate->near = allocate_zeroed((rows * parameters + 1) * sizeof(double));
    surrogate->far = allocate_zeroed((rows * parameters + 1) * sizeof(double));
    surrogate->near_x = allocate_zeroed((parameters + 1) * sizeof(double));
    surrogate->far_x = allocate_zeroed((parameters + 1) * sizeof(double));
    surrogate->residual = allocate_zeroed((rows + 1) * sizeof(double));
    surrogate->is_bound = allocate_zeroed((rows + 1) * sizeof(bool));
    surrogate->prior = allocate_zeroed((parameters + 1) * sizeof(double));
    surrogate->spread = allocate_zeroed((parameters + 1) * sizeof(double));
}

void surrogate_close(struct surrogate *surrogate)
{
    free(surrogate->near);
    free(surrogate->far);
    free(surrogate->near_x);
    free(surrogate->far_x);
    free(surrogate->residual);
    free(surrogate->is_bound);
    free(surrogate->prior);
    free(surrogate->spread);
}

static void copy(double *to, const double *from, size_t count)
{
    memcpy(to, from, count * sizeof(*to));
}

void surrogate_copy(struct surrogate *to, const struct surrogate *from)
{
    size_t rows = from->row_count, parameters = from->parameter_count;

    surrogate_open(to, from->row_count, from->parameter_count);
    copy(to->near, from->near, rows * parameters);
    copy(to->far, from->far, rows * parameters);
    copy(to->near_x, from->near_x, parameters);
    copy(to->far_x, from->far_x, parameters);
    copy(to->residual, from->residual, rows);
    memcpy(to->is_bound, from->is_bound, rows * sizeof(*to->is_bound));
    copy(to->prior, from->prior, parameters);
    copy(to->spread, from->spread, parameters);
}

/* The change of a row's time, and its slope, by the factor u of a parameter's time. Behind the far
 * sample the last slope goes on. */
static double change_at(const struct surrogate *surrogate, unsigned int row, unsigned int i,
                        double u, double *slope)
{
    size_t at = (size_t)row * surrogate->parameter_count + i;
    double near = expm1(surrogate->near_x[i]), far = expm1(surrogate->far_x[i]), past = u - 1;

    if (past / near <= 1) {
        *slope = surrogate->near[at] / near;
        return past * *slope;
    }
    *slope = (surrogate->far[at] - surrogate->near[at]) / (far - near);
    return surrogate->near[at] + (past - near) * *slope;
}

static double time_of(const struct surrogate *surrogate, unsigned int row, const double *x)
{
    double time = 1, slope;

    for (unsigned int i = 0; i < surrogate->parameter_count; i++)
        time += change_at(surrogate, row, i, exp(x[i]), &slope);
    return time;
}

double surrogate_residual(const struct surrogate *surrogate, unsigned int row, const double *x)
{
    return surrogate->residual[row] + log(fmax(time_of(surrogate, row, x), LEAST));
}

/* In standard errors. A bound should be kept by one, since small changes of anything move a row. */
static double weigh(const struct surrogate *surrogate, unsigned int row, double residual)
{
    return surrogate->is_bound[row] ? fmax(residual / SIGMA + 1, 0) : residual / SIGMA;
}

/* Two for each parameter: by the prior, and by the damping. */
static unsigned int residual_count(const struct surrogate *surrogate)
{
    return surrogate->row_count + 2 * surrogate->parameter_count;
}

static bool is_left_out(const struct problem *problem, unsigned int row)
{
    return problem->left_out && problem->left_out[row];
}

static void put_residuals(const struct problem *problem, const double *x, double *out)
{
    const struct surrogate *surrogate = problem->surrogate;
    unsigned int rows = surrogate->row_count;

    for (unsigned int i = 0; i < rows; i++)
        out[i] =
            is_left_out(problem, i) ? 0 : weigh(surrogate, i, surrogate_residual(surrogate, i, x));
    out += rows;
    for (unsigned int k = 0; k < surrogate->parameter_count; k++) {
        *out++ = (x[k] - surrogate->prior[k]) / surrogate->spread[k];
        *out++ = surrogate->damping
                     ? surrogate->damping * (x[k] - surrogate->anchor[k]) / surrogate->spread[k]
                     : 0;
    }
}

static void put_jacobian(const struct problem *problem, const double *x, double *out, int stride)
{
    const struct surrogate *surrogate = problem->surrogate;
    unsigned int rows = surrogate->row_count, columns = surrogate->parameter_count;

    for (unsigned int i = 0; i < rows; i++) {
        double time = time_of(surrogate, i, x);
        double residual = surrogate_residual(surrogate, i, x);
        bool kept = surrogate->is_bound[i] && !weigh(surrogate, i, residual);
        bool counts = !is_left_out(problem, i) && time >= LEAST && !kept;

        for (unsigned int k = 0; k < columns; k++) {
            double slope;

            change_at(surrogate, i, k, exp(x[k]), &slope);
            out[k * stride + i] = counts ? slope * exp(x[k]) / time / SIGMA : 0;
        }
    }
    for (unsigned int k = 0; k < columns; k++) {
        for (unsigned int i = 0; i < columns; i++) {
            out[k * stride + rows + 2 * i] = i == k ? 1 / surrogate->spread[k] : 0;
            out[k * stride + rows + 2 * i + 1] =
                i == k ? surrogate->damping / surrogate->spread[k] : 0;
        }
    }
}

static int serve_lmder(void *context, int rows, int columns, const double *x, double *residuals,
                       double *jacobian, int stride, int what)
{
    if (what == 1)
        put_residuals(context, x, residuals);
    else
        put_jacobian(context, x, jacobian, stride);
    return 0;
}

void surrogate_fit(const struct surrogate *surrogate, const bool *left_out, double *x)
{
    struct problem problem = { surrogate, left_out };

    least_squares(serve_lmder, &problem, (int)residual_count(surrogate),
                  (int)surrogate->parameter_count, x, CONVERGED);
}

double surrogate_row_cost(const struct surrogate *surrogate, unsigned int row, double residual)
{
    return pow(weigh(surrogate, row, residual), 2);
}

double surrogate_cost(const struct surrogate *surrogate, const bool *left_out,
                      const double *residuals, const double *x)
{
    double cost = 0;

    for (unsigned int i = 0; i < surrogate->row_count; i++)
        cost += left_out && left_out[i] ? 0 : surrogate_row_cost(surrogate, i, residuals[i]);
    for (unsigned int k = 0; k < surrogate->parameter_count; k++)
        cost += pow((x[k] - surrogate->prior[k]) / surrogate->spread[k], 2);
    return cost;
}

double surrogate_follow(const struct surrogate *surrogate, const double *residuals, double *x)
{
    size_t rows = surrogate->row_count, parameters = surrogate->parameter_count;
    double *after = allocate_zeroed((rows + 1) * sizeof(double)), cost = 0;
    double *anchor = allocate_zeroed((parameters + 1) * sizeof(double));
    struct surrogate there;

    surrogate_copy(&there, surrogate);
    copy(anchor, x, parameters);
    there.anchor = anchor;
    there.damping = FIRM;
    for (unsigned int i = 0; i < rows; i++) {
        there.residual[i] += residuals[i] - surrogate_residual(surrogate, i, x);
        cost += isnan(residuals[i]) ? INFINITY : 0;
    }
    if (!cost) {
        surrogate_fit(&there, NULL, x);
        for (unsigned int i = 0; i < rows; i++)
            after[i] = surrogate_residual(&there, i, x);
        cost = surrogate_cost(&there, NULL, after, x);
    }
    surrogate_close(&there);
    free(anchor);
    free(after);
    return cost;
}

/* The lower triangle of A = L * L', in place. */
static void factorise(double *a, unsigned int n)
{
    for (unsigned int j = 0; j < n; j++) {
        for (unsigned int i = j; i < n; i++) {
            for (unsigned int k = 0; k < j; k++)
                a[i * n + j] -= a[i * n + k] * a[j * n + k];
        }
        a[j * n + j] = sqrt(a[j * n + j]);
        for (unsigned int i = j + 1; i < n; i++)
            a[i * n + j] /= a[j * n + j];
    }
}

void surrogate_errors(const struct surrogate *surrogate, const double *x, double *errors)
{
    struct problem problem = { surrogate, NULL };
    unsigned int n = surrogate->parameter_count, m = residual_count(surrogate);
    double *jacobian = allocate_zeroed(((size_t)m * n + 1) * sizeof(double));
    double *information = allocate_zeroed(((size_t)n * n + 1) * sizeof(double));
    double *column = allocate_zeroed((n + 1) * sizeof(double));

    put_jacobian(&problem, x, jacobian, (int)m);
    for (unsigned int i = 0; i < n; i++) {
        for (unsigned int k = 0; k <= i; k++) {
            for (unsigned int row = 0; row < m; row++)
                information[i * n + k] += jacobian[i * m + row] * jacobian[k * m + row];
        }
    }
    factorise(information, n);
    /* The i-th diagonal element of the inverse is |y|^2 with L * y = e_i. */
    for (unsigned int i = 0; i < n; i++) {
        double sum = 0;

        for (unsigned int k = 0; k < n; k++) {
            column[k] = k == i;
            for (unsigned int j = i; j < k; j++)
                column[k] -= information[k * n + j] * column[j];
            column[k] = k < i ? 0 : column[k] / information[k * n + k];
            sum += column[k] * column[k];
        }
        errors[i] = sqrt(sum);
    }
    free(jacobian);
    free(information);
    free(column);
}
