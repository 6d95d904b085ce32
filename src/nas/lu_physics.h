/* The fluxes of the equations and their derivatives, at one point and in one direction. Written to
 * be inlined into loops along x, with the direction known. */
#ifndef NAS_LU_PHYSICS_H
#define NAS_LU_PHYSICS_H

#include "lu.h"

/* The constants of the NAS report. */
#define LU_C1     1.4
#define LU_C2     0.4
#define LU_C34    (0.1 * 1.0)
#define LU_C15    (1.4 * 1.4)

#define lu_inline static inline __attribute__((always_inline))

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
    double inverse; /* of the density */
    double v[LU_AXES];
    double kinetic;  /* energy per mass */
    double energy;   /* per mass */
    double enthalpy; /* per mass */
    double pressure;
};

lu_inline struct lu_point lu_point_at(const double *row, size_t pitch, long x)
{
    struct lu_point point;
    double total = row[4 * pitch + x];

    point.inverse = 1 / row[x];
    point.v[0] = row[pitch + x] * point.inverse;
    point.v[1] = row[2 * pitch + x] * point.inverse;
    point.v[2] = row[3 * pitch + x] * point.inverse;
    point.kinetic =
        0.5 * (point.v[0] * point.v[0] + point.v[1] * point.v[1] + point.v[2] * point.v[2]);
    point.energy = total * point.inverse;
    point.pressure = LU_C2 * (total - row[x] * point.kinetic);
    point.enthalpy = point.energy + point.pressure * point.inverse;
    return point;
}

/* What flows through a face across 'axis'. */
lu_inline void lu_flux(int axis, const double *row, size_t pitch, long x,
                       const struct lu_point *point, double flux[LU_COMPONENTS])
{
    double speed = point->v[axis];

    flux[0] = row[(1 + axis) * pitch + x];
    flux[1] = row[pitch + x] * speed;
    flux[2] = row[2 * pitch + x] * speed;
    flux[3] = row[3 * pitch + x] * speed;
    flux[1 + axis] += point->pressure;
    flux[4] = (row[4 * pitch + x] + point->pressure) * speed;
}

/* What the viscous terms take second differences of. */
lu_inline void lu_viscous(int axis, const struct lu_point *point, double out[LU_COMPONENTS])
{
    out[0] = 0;
    out[4] = LU_C15 * point->energy;
#pragma GCC unroll 3
    for (int m = 0; m < LU_AXES; m++) {
        out[1 + m] = LU_C34 * lu_along(axis, m) * point->v[m];
        out[4] += 0.5 * (lu_along(axis, m) - LU_C15) * point->v[m] * point->v[m];
    }
    out[4] *= LU_C34;
}

/* sum += (flux_scale * dF/du + diffusion_scale * (dT/du + d)) w, F being the flux, T the viscous
 * terms and d the diffusion. */
lu_inline void lu_add_jacobian(int axis, const struct lu_point *point, double flux_scale,
                               double diffusion_scale, const double w[LU_COMPONENTS],
                               double sum[LU_COMPONENTS])
{
    double speed = point->v[axis];
    double slip = w[1 + axis] - speed * w[0];
    double pressure = LU_C2 * (w[4] - point->v[0] * w[1] - point->v[1] * w[2] - point->v[2] * w[3] +
                               point->kinetic * w[0]);
    double heat = LU_C15 * (w[4] - point->energy * w[0]);
    double d = lu_diffusion(axis);

    sum[0] += flux_scale * w[1 + axis] + diffusion_scale * d * w[0];
#pragma GCC unroll 3
    for (int m = 0; m < LU_AXES; m++) {
        double change = w[1 + m] - point->v[m] * w[0];
        double flux = speed * w[1 + m] + point->v[m] * slip + (m == axis ? pressure : 0);

        heat += (lu_along(axis, m) - LU_C15) * point->v[m] * change;
        sum[1 + m] +=
            flux_scale * flux +
            diffusion_scale * (LU_C34 * lu_along(axis, m) * point->inverse * change + d * w[1 + m]);
    }
    sum[4] += flux_scale * ((w[4] + pressure) * speed + point->enthalpy * slip) +
              diffusion_scale * (LU_C34 * point->inverse * heat + d * w[4]);
}

#endif
