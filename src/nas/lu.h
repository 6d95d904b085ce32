/* SPDX-License-Identifier: BSD-2-Clause */
/* LU: the compressible Navier-Stokes equations in a cube, discretised by NAS for a symmetric
 * successive over-relaxation. Ranks divide x and y; a rank has whole columns in z. */
#ifndef NAS_LU_H
#define NAS_LU_H

#include "run.h"

#define LU_EDGE_MAX        192
#define LU_GHOSTS          2 /* layers of the neighbours' points: the reach of the dissipation */
#define LU_OVER_RELAXATION 1.2
#define LU_COMPONENTS      5 /* density, three momenta, energy */

#define LU_LANES           8 /* rows that are computed at once */

enum { LU_X, LU_Y, LU_Z, LU_AXES };

typedef double lu_lanes __attribute__((vector_size(LU_LANES * sizeof(double))));

/* Rows along x are stored in blocks, one row in each lane, each shifted by one slot against the row
 * before: in slot p, lane l has the point x = p - l. A point's neighbours at lower x and y are
 * then in the slot before, so that a sweep computes all points of a slot at once. */
struct lu_slot {
    lu_lanes component[LU_COMPONENTS];
};

struct lu {
    struct nas_run *run;
    int edge;   /* points of the cube in each direction, boundaries included */
    int nx, ny; /* points of this rank */
    int first_x, first_y;
    /* of this rank's points, those that are not on the boundary of the cube: begin to end - 1 */
    int begin_x, end_x, begin_y, end_y, begin_z, end_z;
    int west, east, south, north; /* neighbours towards lower and higher x, y; MPI_PROC_NULL */
    int below;                    /* rows that are kept below begin_y */
    int blocks;                   /* of a plane of constant z */
    int first_block, last_block;  /* that have points between the boundaries */
    int slots;                    /* of a block */
    /* Masks of the points that are not on the boundary: all bits set, or none. By row as stored,
     * and along x backwards, in the order of the lanes of a slot. */
    int64_t inner_y[LU_EDGE_MAX + 2 * LU_LANES];
    int64_t inner_x[LU_EDGE_MAX + 2 * LU_LANES];
    double dt;
    double t1, t2;         /* 1 / h^2 and 1 / 2h */
    struct lu_slot *u;     /* the state */
    struct lu_slot *r;     /* the residual, then the correction; zero on the boundary of the cube */
    struct lu_slot *force; /* makes the exact solution a steady one */
    double *faces[4];      /* out and in, lower and higher */
};

/* A block of rows, from the slot of x = 0 in its first lane. Values beyond the first and the last
 * block have no effect: any block may stand in. */
static inline struct lu_slot *lu_block(const struct lu *lu, const struct lu_slot *cells, int block,
                                       int z)
{
    int within = block < 0 ? 0 : block < lu->blocks ? block : lu->blocks - 1;

    return (struct lu_slot *)cells + ((size_t)z * lu->blocks + within) * lu->slots + LU_GHOSTS;
}

/* Where a row is, counted from the first lane of the first block. */
static inline int lu_row(const struct lu *lu, int y)
{
    return y - lu->begin_y + lu->below;
}

/* A point: component m is at [m * LU_LANES]. Layers of ghosts count from -LU_GHOSTS. */
static inline double *lu_at(const struct lu *lu, const struct lu_slot *cells, int x, int y, int z)
{
    int row = lu_row(lu, y), lane = row % LU_LANES;

    return (double *)&lu_block(lu, cells, row / LU_LANES, z)[x + lane] + lane;
}

/* The index of a slot's first lane in an array that is stored backwards along x. */
static inline int lu_backwards(const struct lu *lu, int slot)
{
    return lu->end_x + LU_LANES - slot;
}

static inline size_t lu_size(const struct lu *lu)
{
    return (size_t)lu->edge * lu->blocks * lu->slots;
}

struct lu_box {
    int x, y, z, width, height, depth;
};

/* All components of the points of a box, one point after the other. */
void lu_pack(const struct lu *lu, const struct lu_slot *cells, struct lu_box box, double *buffer);
void lu_unpack(const struct lu *lu, struct lu_slot *cells, struct lu_box box, const double *buffer);

/* The exact solution at a point of the cube. */
void lu_exact(const struct lu *lu, int x, int y, int z, double value[LU_COMPONENTS]);

/* Boundary values, and a guess between them. */
void lu_set_state(struct lu *lu);

/* Uses u and r on the way. */
void lu_set_force(struct lu *lu);

/* Exchanges ghost layers, then computes r = L(u) - force between the boundaries. */
void lu_residual(struct lu *lu);

/* One relaxation, lower triangle and upper: r becomes the correction, and u is corrected. */
void lu_sweep(struct lu *lu);

/* Root mean squares over the points that are not on the boundary, on all ranks. */
void lu_norm(const struct lu *lu, const struct lu_slot *cells, double norm[LU_COMPONENTS]);
void lu_error(const struct lu *lu, double norm[LU_COMPONENTS]);

/* The integral of the pressure over a surface within the cube, on all ranks. */
double lu_surface_integral(const struct lu *lu);

#endif
