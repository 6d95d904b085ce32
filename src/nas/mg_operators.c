/* SPDX-License-Identifier: BSD-2-Clause */
#include "mg_operators.h"

/* Rows around the one at (y, z), and for every x the sums of its four neighbours across and of its
 * four diagonal ones. */
struct cross {
    double sides[MG_EDGE_MAX + 2];
    double diagonals[MG_EDGE_MAX + 2];
};

static inline __attribute__((always_inline)) void cross_sums(const struct mg_grid *grid,
                                                             const double *cells, unsigned int y,
                                                             unsigned int z, struct cross *cross)
{
    const double *n = mg_row(grid, cells, y + 1, z), *s = mg_row(grid, cells, y - 1, z);
    const double *u = mg_row(grid, cells, y, z + 1), *d = mg_row(grid, cells, y, z - 1);
    const double *nu = mg_row(grid, cells, y + 1, z + 1), *su = mg_row(grid, cells, y - 1, z + 1);
    const double *nd = mg_row(grid, cells, y + 1, z - 1), *sd = mg_row(grid, cells, y - 1, z - 1);

    for (unsigned int x = 0; x < grid->n[AXIS_X] + 2; x++) {
        cross->sides[x] = n[x] + s[x] + u[x] + d[x];
        cross->diagonals[x] = nu[x] + su[x] + nd[x] + sd[x];
    }
}

NAS_HOT void mg_residual(const struct mg_grid *grid, const struct mg_weights *a, const double *u,
                         const double *v, double *r)
{
    double centre = a->centre, edge = a->edge, corner = a->corner;
    struct cross cross;

    for (unsigned int z = 1; z <= grid->n[AXIS_Z]; z++) {
        for (unsigned int y = 1; y <= grid->n[AXIS_Y]; y++) {
            const double *middle = mg_row(grid, u, y, z), *right = mg_row(grid, v, y, z);
            double *to = mg_row(grid, r, y, z);

            cross_sums(grid, u, y, z, &cross);
#pragma omp simd
            for (unsigned int x = 1; x <= grid->n[AXIS_X]; x++)
                to[x] = right[x] - centre * middle[x] -
                        edge * (cross.diagonals[x] + cross.sides[x - 1] + cross.sides[x + 1]) -
                        corner * (cross.diagonals[x - 1] + cross.diagonals[x + 1]);
        }
    }
    nas_work(WORK_POINTS_STENCILLED, mg_points(grid));
}

NAS_HOT void mg_smooth(const struct mg_grid *grid, const struct mg_weights *s, const double *r,
                       double *u)
{
    double centre = s->centre, face = s->face, edge = s->edge;
    struct cross cross;

    for (unsigned int z = 1; z <= grid->n[AXIS_Z]; z++) {
        for (unsigned int y = 1; y <= grid->n[AXIS_Y]; y++) {
            const double *middle = mg_row(grid, r, y, z);
            double *to = mg_row(grid, u, y, z);

            cross_sums(grid, r, y, z, &cross);
#pragma omp simd
            for (unsigned int x = 1; x <= grid->n[AXIS_X]; x++)
                to[x] += centre * middle[x] +
                         face * (middle[x - 1] + middle[x + 1] + cross.sides[x]) +
                         edge * (cross.diagonals[x] + cross.sides[x - 1] + cross.sides[x + 1]);
        }
    }
    nas_work(WORK_POINTS_STENCILLED, mg_points(grid));
}

NAS_HOT void mg_restrict(const struct mg_grid *fine, const double *from,
                         const struct mg_grid *coarse, double *to)
{
    struct cross cross;

    for (unsigned int z = 1; z <= coarse->n[AXIS_Z]; z++) {
        for (unsigned int y = 1; y <= coarse->n[AXIS_Y]; y++) {
            const double *middle = mg_row(fine, from, 2 * y, 2 * z);
            const double *sides = cross.sides, *diagonals = cross.diagonals;
            double *row = mg_row(coarse, to, y, z);

            cross_sums(fine, from, 2 * y, 2 * z, &cross);
            for (unsigned int x = 1; x <= coarse->n[AXIS_X]; x++) {
                unsigned int f = 2 * x;

                row[x] = 0.5 * middle[f] + 0.25 * (middle[f - 1] + middle[f + 1] + sides[f]) +
                         0.125 * (sides[f - 1] + sides[f + 1] + diagonals[f]) +
                         0.0625 * (diagonals[f - 1] + diagonals[f + 1]);
            }
        }
    }
    nas_work(WORK_POINTS_RESTRICTED, mg_points(fine));
}

/* A row of the finer grid lies on a row of the coarser, or between two or four. */
static inline __attribute__((always_inline)) void mean_row(const struct mg_grid *coarse,
                                                           const double *from, unsigned int y,
                                                           unsigned int z, double *mean)
{
    const double *near_row = mg_row(coarse, from, y / 2, z / 2);
    const double *next_y = mg_row(coarse, from, (y + 1) / 2, z / 2);
    const double *next_z = mg_row(coarse, from, y / 2, (z + 1) / 2);
    const double *next_both = mg_row(coarse, from, (y + 1) / 2, (z + 1) / 2);

    for (unsigned int x = 0; x < coarse->n[AXIS_X] + 2; x++)
        mean[x] = 0.25 * (near_row[x] + next_y[x] + next_z[x] + next_both[x]);
}

NAS_HOT void mg_prolong(const struct mg_grid *coarse, const double *from,
                        const struct mg_grid *fine, double *to, bool add)
{
    double mean[MG_EDGE_MAX + 2], keep = add ? 1 : 0;

    for (unsigned int z = 0; z < fine->n[AXIS_Z] + 2; z++) {
        for (unsigned int y = 0; y < fine->n[AXIS_Y] + 2; y++) {
            double *row = mg_row(fine, to, y, z);

            mean_row(coarse, from, y, z, mean);
            for (unsigned int x = 0; x <= coarse->n[AXIS_X]; x++) {
                row[2 * x] = keep * row[2 * x] + mean[x];
                row[2 * x + 1] = keep * row[2 * x + 1] + 0.5 * (mean[x] + mean[x + 1]);
            }
        }
    }
    nas_work(WORK_POINTS_PROLONGED, mg_points(fine));
}
