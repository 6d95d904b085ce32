/* SPDX-License-Identifier: BSD-2-Clause */
/* The exact solution, what follows from it, and how far the computed one is from it. */
#include "lu_physics.h"

#include <math.h>
#include <string.h>

enum { POWERS = 4 };

/* Of each component: a constant, then for x, y and z the factors of the first to fourth power. */
static const struct {
    double constant;
    double factors[LU_AXES][POWERS];
} polynomials[LU_COMPONENTS] = {
    { 2, { { 0, 5, 0.02, 0.5 }, { 0, 3, 0.01, 0.4 }, { 4, 0.5, 0.03, 0.3 } } },
    { 1, { { 0, 1, 0.01, 0.4 }, { 0, 2, 0.03, 0.3 }, { 0, 3, 0.02, 0.5 } } },
    { 2, { { 2, 0, 0.04, 0.3 }, { 0, 2, 0.03, 0.5 }, { 0, 3, 0.05, 0.4 } } },
    { 2, { { 2, 0, 0.03, 0.2 }, { 0, 2, 0.05, 0.1 }, { 0, 3, 0.04, 0.3 } } },
    { 5, { { 4, 0.1, 0.05, 0.1 }, { 3, 0.4, 0.04, 0.3 }, { 2, 0.3, 0.03, 0.2 } } },
};

void lu_exact(const struct lu *lu, int x, int y, int z, double value[LU_COMPONENTS])
{
    double at[LU_AXES] = { x, y, z };

    for (int m = 0; m < LU_COMPONENTS; m++) {
        value[m] = polynomials[m].constant;
        for (int axis = 0; axis < LU_AXES; axis++) {
            double position = at[axis] / (lu->edge - 1), sum = 0;

            for (int power = POWERS - 1; power >= 0; power--)
                sum = (sum + polynomials[m].factors[axis][power]) * position;
            value[m] += sum;
        }
    }
}

static bool on_boundary(const struct lu *lu, int x, int y, int z)
{
    return !x || !y || !z || x == lu->edge - 1 || y == lu->edge - 1 || z == lu->edge - 1;
}

/* Between the boundary values of the three lines through the point. */
static void guess(const struct lu *lu, int x, int y, int z, double value[LU_COMPONENTS])
{
    int last = lu->edge - 1;
    double a = (double)x / last, b = (double)y / last, c = (double)z / last;
    double ends[LU_AXES][2][LU_COMPONENTS];

    for (int end = 0; end < 2; end++) {
        lu_exact(lu, end * last, y, z, ends[LU_X][end]);
        lu_exact(lu, x, end * last, z, ends[LU_Y][end]);
        lu_exact(lu, x, y, end * last, ends[LU_Z][end]);
    }
    for (int m = 0; m < LU_COMPONENTS; m++) {
        double p = (1 - a) * ends[LU_X][0][m] + a * ends[LU_X][1][m];
        double q = (1 - b) * ends[LU_Y][0][m] + b * ends[LU_Y][1][m];
        double r = (1 - c) * ends[LU_Z][0][m] + c * ends[LU_Z][1][m];

        value[m] = p + q + r - p * q - q * r - r * p + p * q * r;
    }
}

/* Sets u everywhere to the exact solution, or to that on the boundary and the guess elsewhere. */
static void set_state(struct lu *lu, bool exact)
{
    double value[LU_COMPONENTS];

    for (int z = 0; z < lu->edge; z++) {
        for (int y = 0; y < lu->ny; y++) {
            for (int x = 0; x < lu->nx; x++) {
                double *point = lu_at(lu, lu->u, x, y, z);
                int at_x = lu->first_x + x, at_y = lu->first_y + y;

                if (exact || on_boundary(lu, at_x, at_y, z))
                    lu_exact(lu, at_x, at_y, z, value);
                else
                    guess(lu, at_x, at_y, z, value);
                for (int m = 0; m < LU_COMPONENTS; m++)
                    point[m * LU_LANES] = value[m];
            }
        }
    }
}

void lu_set_state(struct lu *lu)
{
    set_state(lu, false);
    memset(lu->r, 0, lu_size(lu) * sizeof(struct lu_slot));
}

void lu_set_force(struct lu *lu)
{
    memset(lu->force, 0, lu_size(lu) * sizeof(struct lu_slot));
    memset(lu->r, 0, lu_size(lu) * sizeof(struct lu_slot));
    set_state(lu, true);
    lu_residual(lu);
    memcpy(lu->force, lu->r, lu_size(lu) * sizeof(struct lu_slot));
}

static void root_mean(const struct lu *lu, double sums[LU_COMPONENTS])
{
    double inner = lu->edge - 2;

    comm_allreduce(sums, LU_COMPONENTS, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int m = 0; m < LU_COMPONENTS; m++)
        sums[m] = sqrt(sums[m] / (inner * inner * inner));
}

void lu_norm(const struct lu *lu, const struct lu_slot *cells, double norm[LU_COMPONENTS])
{
    memset(norm, 0, LU_COMPONENTS * sizeof(*norm));
    for (int z = lu->begin_z; z < lu->end_z; z++) {
        for (int y = lu->begin_y; y < lu->end_y; y++) {
            for (int x = lu->begin_x; x < lu->end_x; x++) {
                const double *point = lu_at(lu, cells, x, y, z);

                for (int m = 0; m < LU_COMPONENTS; m++)
                    norm[m] += point[m * LU_LANES] * point[m * LU_LANES];
            }
        }
    }
    root_mean(lu, norm);
}

void lu_error(const struct lu *lu, double norm[LU_COMPONENTS])
{
    double value[LU_COMPONENTS];

    memset(norm, 0, LU_COMPONENTS * sizeof(*norm));
    for (int z = lu->begin_z; z < lu->end_z; z++) {
        for (int y = lu->begin_y; y < lu->end_y; y++) {
            for (int x = lu->begin_x; x < lu->end_x; x++) {
                const double *point = lu_at(lu, lu->u, x, y, z);

                lu_exact(lu, lu->first_x + x, lu->first_y + y, z, value);
                for (int m = 0; m < LU_COMPONENTS; m++)
                    norm[m] += (value[m] - point[m * LU_LANES]) * (value[m] - point[m * LU_LANES]);
            }
        }
    }
    root_mean(lu, norm);
}

/* The box whose surface is integrated over; its ends in x, y and z. */
struct surface {
    int low[LU_AXES], high[LU_AXES];
};

/* The weight of a point in the trapezoidal rule along one direction: 0 outside. */
static double weight_in(const struct surface *surface, int axis, int at)
{
    if (at < surface->low[axis] || at > surface->high[axis])
        return 0;
    return at == surface->low[axis] || at == surface->high[axis] ? 0.5 : 1;
}

static bool on_end(const struct surface *surface, int axis, int at)
{
    return at == surface->low[axis] || at == surface->high[axis];
}

/* The sum of a point's weights over the faces that it belongs to. */
static double weight_of(const struct surface *surface, const int at[LU_AXES])
{
    double weight = 0;

    for (int axis = 0; axis < LU_AXES; axis++) {
        int second = (axis + 1) % LU_AXES, third = (axis + 2) % LU_AXES;

        if (on_end(surface, axis, at[axis]))
            weight += weight_in(surface, second, at[second]) * weight_in(surface, third, at[third]);
    }
    return weight;
}

static double pressure_at(const double *point)
{
    double x = point[LU_LANES], y = point[2 * LU_LANES], z = point[3 * LU_LANES];

    return LU_C2 * (point[4 * LU_LANES] - (x * x + y * y + z * z) / (2 * point[0]));
}

double lu_surface_integral(const struct lu *lu)
{
    int last = lu->edge - 1;
    struct surface surface = { { 1, 1, 2 }, { last - 1, last - 2, last - 1 } };
    double sum = 0;

    for (int z = 0; z < lu->edge; z++) {
        for (int y = 0; y < lu->ny; y++) {
            for (int x = 0; x < lu->nx; x++) {
                int at[LU_AXES] = { lu->first_x + x, lu->first_y + y, z };
                double weight = weight_of(&surface, at);

                if (weight)
                    sum += weight * pressure_at(lu_at(lu, lu->u, x, y, z));
            }
        }
    }
    comm_allreduce(&sum, 1, MPI_DOUBLE, MPI_COMM_WORLD);
    return sum / ((double)last * last);
}
