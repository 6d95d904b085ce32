/* LU: the compressible Navier-Stokes equations in a cube, discretised by NAS for a symmetric
 * successive over-relaxation. Ranks divide x and y; a rank has whole columns in z. */
#ifndef NAS_LU_H
#define NAS_LU_H

#include "run.h"

#define LU_EDGE_MAX        192
#define LU_GHOSTS          2 /* layers of the neighbours' points, as many as the dissipation reaches */
#define LU_OVER_RELAXATION 1.2
#define LU_COMPONENTS      5 /* density, three momenta, energy */

enum { LU_X, LU_Y, LU_Z, LU_AXES };

struct lu {
    struct nas_run *run;
    int edge;   /* points of the cube in each direction, boundaries included */
    int nx, ny; /* points of this rank */
    int first_x, first_y;
    /* of this rank's points, those that are not on the boundary of the cube: begin to end - 1 */
    int begin_x, end_x, begin_y, end_y, begin_z, end_z;
    int west, east, south, north; /* neighbours towards lower and higher x, y; MPI_PROC_NULL */
    size_t pitch;                 /* of the values of one component in a row along x */
    double dt;
    double t1, t2;    /* 1 / h^2 and 1 / 2h */
    double *u;        /* the state */
    double *r;        /* the residual, then the correction; zero on the boundary of the cube */
    double *force;    /* what makes the exact solution a steady one */
    double *faces[4]; /* out and in, lower and higher */
};

/* The row at y (from -LU_GHOSTS) and z. Component m at x is at [m * pitch + x]. */
static inline double *lu_row(const struct lu *lu, const double *cells, int y, int z)
{
    size_t row = (size_t)z * (lu->ny + 2 * LU_GHOSTS) + y + LU_GHOSTS;

    return (double *)cells + row * LU_COMPONENTS * lu->pitch + LU_GHOSTS;
}

static inline size_t lu_cells(const struct lu *lu)
{
    return (size_t)lu->edge * (lu->ny + 2 * LU_GHOSTS) * LU_COMPONENTS * lu->pitch;
}

/* The exact solution at a point of the cube. */
void lu_exact(const struct lu *lu, int x, int y, int z, double value[LU_COMPONENTS]);

/* Boundary values, and a guess between them. */
void lu_set_state(struct lu *lu);

/* Uses u and r on the way. */
void lu_set_force(struct lu *lu);

/* r = L(u) - force between the boundaries, having exchanged what the ranks need of each other. */
void lu_residual(struct lu *lu);

/* One relaxation, lower triangle and upper: r becomes the correction. */
void lu_sweep(struct lu *lu);

/* Root mean squares over the points that are not on the boundary, on all ranks. */
void lu_norm(const struct lu *lu, const double *cells, double norm[LU_COMPONENTS]);
void lu_error(const struct lu *lu, double norm[LU_COMPONENTS]);

/* The integral of the pressure over a surface within the cube, on all ranks. */
double lu_surface_integral(const struct lu *lu);

#endif
