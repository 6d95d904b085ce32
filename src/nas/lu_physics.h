/* SPDX-License-Identifier: BSD-2-Clause */
/* The fluxes of the equations and their derivatives, at one point of every lane and in one
 * direction. Written to be inlined into loops along x, with the direction known. */
#ifndef NAS_LU_PHYSICS_H
#define NAS_LU_PHYSICS_H

#include "lu_lanes.h"

/* The constants of the NAS report. */
#define LU_C1  1.4
#define LU_C2  0.4
#define LU_C34 (0.1 * 1.0)
#define LU_C15 (1.4 * 1.4)

/* Artificial diffusion of second order, by direction, and of fourth order. */
lu_inline double lu_diffusion(int axis)
{
    return axis == LU_Z ? 1.0 : 0.75;
}

#define LU_DIFFUSION_SUM (0.75 + 0.75 + 1.0)
#define LU_DISSIPATION   (1.0 / 4)

/* Viscosity weighs more along the direction of the flux. */
lu_inline double lu_along(int axis, int component)
{
    return axis == component ? 4.0 / 3 : 1;
}

#define LU_ALONG_SUM (4.0 / 3 + 1 + 1)

struct lu_point {
    lu_lanes inverse; /* of the density */
    lu_lanes v[LU_AXES];
    lu_lanes energy, kinetic, internal; /* per mass, the first being the sum of the others */
};

lu_inline struct lu_point lu_point_of(const lu_lanes u[LU_COMPONENTS])
{
    struct lu_point point = { .inverse = 1 / u[0] };

    point.v[0] = u[1] * point.inverse;
    point.v[1] = u[2] * point.inverse;
    point.v[2] = u[3] * point.inverse;
    point.kinetic =
        0.5 * (point.v[0] * point.v[0] + point.v[1] * point.v[1] + point.v[2] * point.v[2]);
    point.energy = u[4] * point.inverse;
    point.internal = point.energy - point.kinetic;
    return point;
}

/* The quantity whose second differences give the viscous term of the energy, without the part that
 * depends on the direction. */
lu_inline lu_lanes lu_heat(const struct lu_point *point)
{
    return point->kinetic + LU_C15 * point->internal;
}

/* sum += (flux_scale * dF/du + diffusion_scale * (dT/du + d)) w, F being the flux, T the viscous
 * terms and d the diffusion. */
lu_inline void lu_add_jacobian(int axis, const struct lu_point *point, double flux_scale,
                               double diffusion_scale, const lu_lanes w[LU_COMPONENTS],
                               lu_lanes sum[LU_COMPONENTS])
{
    double d = diffusion_scale * lu_diffusion(axis);
    lu_lanes speed = flux_scale * point->v[axis], carried = speed + d;
    lu_lanes viscous = diffusion_scale * LU_C34 * point->inverse;
    lu_lanes changes[LU_AXES], slip, pressure, heat;

#pragma GCC unroll 3
    for (int m = 0; m < LU_AXES; m++)
        changes[m] = w[1 + m] - point->v[m] * w[0];
    slip = flux_scale * changes[axis];
    pressure = w[4] + point->kinetic * w[0]; /* without the factor LU_C2 */
#pragma GCC unroll 3
    for (int m = 0; m < LU_AXES; m++)
        pressure -= point->v[m] * w[1 + m];
    heat = w[4] - lu_heat(point) * w[0];
    heat += (LU_C15 - 1) * pressure;
    heat += (lu_along(axis, axis) - 1) * point->v[axis] * changes[axis];

    sum[0] += flux_scale * w[1 + axis];
    sum[0] += d * w[0];
#pragma GCC unroll 3
    for (int m = 0; m < LU_AXES; m++) {
        sum[1 + m] += carried * w[1 + m];
        sum[1 + m] += point->v[m] * slip;
        sum[1 + m] += lu_along(axis, m) * viscous * changes[m];
    }
    sum[1 + axis] += flux_scale * LU_C2 * pressure;
    sum[4] += carried * w[4];
    sum[4] += LU_C2 * speed * pressure;
    sum[4] += (point->energy + LU_C2 * point->internal) * slip;
    sum[4] += viscous * heat;
}

#endif
