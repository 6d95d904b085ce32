/* SPDX-License-Identifier: BSD-2-Clause */
#include "calibrate/adjust.h"

#include "calibrate/least_squares.h"
#include "results/allocate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CONVERGED 1e-4
#define REACH     0.2 /* spread of the steps: farther away the slopes hardly hold */

/* The distances of the points as linear functions of the steps of the keys. */
struct plane {
    const struct fit *fit;
    double *x;         /* where the keys are */
    double *distances; /* by point, there */
    double *slopes;    /* by key and point */
};

static void plane_open(const struct fit *fit, const double *still, const double *out,
                       struct plane *plane)
{
    size_t points = fit->point_count;

    plane->fit = fit;
    plane->x = allocate_zeroed((fit->key_count + 1) * sizeof(double));
    plane->distances = allocate_zeroed((points + 1) * sizeof(double));
    plane->slopes = allocate_zeroed((fit->key_count * points + 1) * sizeof(double));
    fit_position(fit, plane->x);
    for (size_t i = 0; i < points; i++) {
        unsigned int point = fit->points_of[i];
        double tamed = fit_tame_slope(fit_distance(fit, point, still[point]));

        plane->distances[i] = fit_distance(fit, point, out[point]);
        for (size_t k = 0; k < fit->key_count; k++)
            plane->slopes[k * points + i] = fit->jacobian[k * points + i] / tamed;
    }
}

static void plane_close(struct plane *plane)
{
    free(plane->x);
    free(plane->distances);
    free(plane->slopes);
}

static double distance_after(const struct plane *plane, const double *steps, size_t point)
{
    double distance = plane->distances[point];

    for (size_t k = 0; k < plane->fit->key_count; k++)
        distance += plane->slopes[k * plane->fit->point_count + point] * steps[k];
    return distance;
}

/* After the points, two residuals for each key: that of the fit, and one that keeps its step short. */
static void put_residuals(const struct plane *plane, const double *steps, double *residuals)
{
    for (unsigned int i = 0; i < plane->fit->point_count; i++)
        *residuals++ = fit_tame(distance_after(plane, steps, i));
    for (unsigned int k = 0; k < plane->fit->key_count; k++) {
        *residuals++ = (plane->x[k] + steps[k]) / FIT_PRIOR;
        *residuals++ = steps[k] / REACH;
    }
}

static void put_jacobian(const struct plane *plane, const double *steps, double *jacobian,
                         int stride)
{
    size_t points = plane->fit->point_count, keys = plane->fit->key_count;

    memset(jacobian, 0, keys * stride * sizeof(*jacobian));
    for (size_t i = 0; i < points; i++) {
        double tamed = fit_tame_slope(distance_after(plane, steps, i));

        for (size_t k = 0; k < keys; k++)
            jacobian[k * stride + i] = plane->slopes[k * points + i] * tamed;
    }
    for (size_t k = 0; k < keys; k++) {
        jacobian[k * stride + points + 2 * k] = 1 / FIT_PRIOR;
        jacobian[k * stride + points + 2 * k + 1] = 1 / REACH;
    }
}

static int serve_lmder(void *context, int rows, int columns, const double *steps,
                       double *residuals, double *jacobian, int stride, int what)
{
    if (what == 1)
        put_residuals(context, steps, residuals);
    else
        put_jacobian(context, steps, jacobian, stride);
    return 0;
}

double adjust_loss(const struct fit *fit, const double *still, const double *out)
{
    int keys = (int)fit->key_count, rows = (int)fit->point_count + 2 * keys;
    double *steps = allocate_zeroed((keys + 1) * sizeof(double)), loss = 0;
    double *residuals = allocate_zeroed((rows + 1) * sizeof(double));
    struct plane plane;

    plane_open(fit, still, out, &plane);
    least_squares(serve_lmder, &plane, rows, keys, steps, CONVERGED);
    put_residuals(&plane, steps, residuals);
    for (int i = 0; i < rows; i++)
        loss += residuals[i] * residuals[i];
    plane_close(&plane);
    free(steps);
    free(residuals);
    return loss;
}
