/* SPDX-License-Identifier: BSD-2-Clause */
/* The relaxation. A point needs the corrections of the three points before it, so a sweep runs as a
 * wave through the ranks, plane by plane, and in a plane through the slots of a block: the points
 * of a slot do not need each other. */
#include "lu_physics.h"

/* The share of a correction that is added to the state. */
#define ADVANCE (1 / (LU_OVER_RELAXATION * (2 - LU_OVER_RELAXATION)))

enum sweep { SWEEP_LOWER, SWEEP_UPPER };
enum { TAG_LOWER, TAG_UPPER };

/* The diagonal block: 'base' for every component, plus what the viscous terms add for momenta and
 * energy, times the inverse of the density. */
struct diagonal {
    double base, base_inverse, momentum, energy;
};

static struct diagonal diagonal_of(const struct lu *lu)
{
    double scale = 2 * lu->dt * lu->t1;

    return (struct diagonal){
        .base = 1 + scale * LU_DIFFUSION_SUM,
        .base_inverse = 1 / (1 + scale * LU_DIFFUSION_SUM),
        .momentum = scale * LU_C34 * LU_ALONG_SUM,
        .energy = scale * LU_C34 * LU_C15 * LU_AXES,
    };
}

/* Solves the diagonal block, which is lower triangular, for the sum in w. */
lu_inline void solve_block(const struct diagonal *diagonal, const struct lu_point *point,
                           lu_lanes w[LU_COMPONENTS])
{
    lu_lanes g = diagonal->momentum * point->inverse, h = diagonal->energy * point->inverse;
    lu_lanes momentum = diagonal->base + g, energy = diagonal->base + h;
    lu_lanes inverse = 1 / (momentum * energy); /* one division for both */
    lu_lanes momentum_inverse = inverse * energy, energy_inverse = inverse * momentum;
    lu_lanes spread = { 0 };

    w[0] *= diagonal->base_inverse;
#pragma GCC unroll 3
    for (int m = 0; m < LU_AXES; m++) {
        w[1 + m] = (w[1 + m] + g * w[0] * point->v[m]) * momentum_inverse;
        spread += point->v[m] * (w[1 + m] - point->v[m] * w[0]);
    }
    w[4] += h * w[0] * point->energy;
    w[4] -= (g - h) * spread;
    w[4] *= energy_inverse;
}

lu_inline void sweep_block(const struct lu *lu, enum sweep sweep, int block, int z)
{
    bool lower = sweep == SWEEP_LOWER;
    int step = lower ? 1 : -1, slot = lower ? lu->begin_x : lu->end_x + LU_LANES - 2;
    double scale = LU_OVER_RELAXATION * lu->dt;
    double flux_scale = step * scale * lu->t2, diffusion_scale = scale * lu->t1;
    struct diagonal diagonal = diagonal_of(lu);
    const struct lu_slot *u = lu_block(lu, lu->u, block, z);
    const struct lu_slot *u_y = lu_block(lu, lu->u, block - step, z) + step * (LU_LANES - 1);
    const struct lu_slot *r_y = lu_block(lu, lu->r, block - step, z) + step * (LU_LANES - 1);
    const struct lu_slot *r_z = lu_block(lu, lu->r, block, z - step);
    struct lu_slot *u_z = lu_block(lu, lu->u, block, z - step);
    struct lu_slot *r = lu_block(lu, lu->r, block, z), before = r[slot - step];
    struct lu_point point = lu_point_of(u[slot - step].component);

    for (int left = lu->end_x - lu->begin_x + LU_LANES - 1; left > 0; left--, slot += step) {
        lu_choice inner = lu_inner(lu, block, slot);
        struct lu_slot u_before, r_before, sum;
        struct lu_point at_y, at_z = lu_point_of(u_z[slot].component);

        lu_prefetch(&u[slot + step * LU_AHEAD]);
        lu_prefetch(&r[slot + step * LU_AHEAD]);
#pragma GCC unroll 5
        for (int m = 0; m < LU_COMPONENTS; m++) {
            u_before.component[m] =
                lu_rows_beside(-step, u[slot - step].component[m], u_y[slot].component[m]);
            r_before.component[m] =
                lu_rows_beside(-step, before.component[m], r_y[slot].component[m]);
            sum.component[m] = lower ? lu->dt * r[slot].component[m] : (lu_lanes){ 0 };
        }
        at_y = lu_point_of(u_before.component);
        lu_add_jacobian(LU_Z, &at_z, flux_scale, diffusion_scale, r_z[slot].component,
                        sum.component);
        lu_add_jacobian(LU_Y, &at_y, flux_scale, diffusion_scale, r_before.component,
                        sum.component);
        lu_add_jacobian(LU_X, &point, flux_scale, diffusion_scale, before.component, sum.component);
        point = lu_point_of(u[slot].component);
        solve_block(&diagonal, &point, sum.component);
#pragma GCC unroll 5
        for (int m = 0; m < LU_COMPONENTS; m++) {
            lu_lanes old = r[slot].component[m], found = sum.component[m];

            before.component[m] = lu_choose(inner, lower ? found : old + found, old);
            r[slot].component[m] = before.component[m];
            /* The rest of this sweep does not need the old state there. */
            if (!lower)
                u_z[slot].component[m] += ADVANCE * r_z[slot].component[m];
        }
    }
}

NAS_HOT static void sweep_plane_up(const struct lu *lu, int z)
{
    for (int block = lu->first_block; block <= lu->last_block; block++)
        sweep_block(lu, SWEEP_LOWER, block, z);
}

/* Corrects the state of the plane above. */
NAS_HOT static void sweep_plane_down(const struct lu *lu, int z)
{
    for (int block = lu->last_block; block >= lu->first_block; block--)
        sweep_block(lu, SWEEP_UPPER, block, z);
}

NAS_HOT static void correct_plane(const struct lu *lu, int z)
{
    struct lu_slot *u = lu_block(lu, lu->u, 0, z);
    const struct lu_slot *r = lu_block(lu, lu->r, 0, z);

    for (int slot = 0; slot < lu->blocks * lu->slots - LU_GHOSTS; slot++) {
        for (int m = 0; m < LU_COMPONENTS; m++)
            u[slot].component[m] += ADVANCE * r[slot].component[m];
    }
}

/* A line of this rank's points along y, or along x. */
static struct lu_box column_at(const struct lu *lu, int x, int z)
{
    return (struct lu_box){ x, 0, z, 1, lu->ny, 1 };
}

static struct lu_box row_at(const struct lu *lu, int y, int z)
{
    return (struct lu_box){ 0, y, z, lu->nx, 1, 1 };
}

/* The corrections of the ranks before, beside this rank's points. */
static void receive_edges(const struct lu *lu, enum sweep sweep, int z)
{
    bool lower = sweep == SWEEP_LOWER;
    int from_x = lower ? lu->west : lu->east, from_y = lower ? lu->south : lu->north;
    int tag = lower ? TAG_LOWER : TAG_UPPER;
    double *buffer = lu->faces[0];

    if (from_x != MPI_PROC_NULL) {
        comm_recv(buffer, LU_COMPONENTS * lu->ny, MPI_DOUBLE, from_x, tag, MPI_COMM_WORLD);
        lu_unpack(lu, lu->r, column_at(lu, lower ? -1 : lu->nx, z), buffer);
    }
    if (from_y != MPI_PROC_NULL) {
        comm_recv(buffer, LU_COMPONENTS * lu->nx, MPI_DOUBLE, from_y, tag, MPI_COMM_WORLD);
        lu_unpack(lu, lu->r, row_at(lu, lower ? -1 : lu->ny, z), buffer);
    }
}

static void send_edges(const struct lu *lu, enum sweep sweep, int z)
{
    bool lower = sweep == SWEEP_LOWER;
    int to_x = lower ? lu->east : lu->west, to_y = lower ? lu->north : lu->south;
    int tag = lower ? TAG_LOWER : TAG_UPPER;
    double *buffer = lu->faces[0];

    if (to_x != MPI_PROC_NULL) {
        lu_pack(lu, lu->r, column_at(lu, lower ? lu->nx - 1 : 0, z), buffer);
        comm_send(buffer, LU_COMPONENTS * lu->ny, MPI_DOUBLE, to_x, tag, MPI_COMM_WORLD);
    }
    if (to_y != MPI_PROC_NULL) {
        lu_pack(lu, lu->r, row_at(lu, lower ? lu->ny - 1 : 0, z), buffer);
        comm_send(buffer, LU_COMPONENTS * lu->nx, MPI_DOUBLE, to_y, tag, MPI_COMM_WORLD);
    }
}

void lu_sweep(struct lu *lu)
{
    for (int z = lu->begin_z; z < lu->end_z; z++) {
        receive_edges(lu, SWEEP_LOWER, z);
        sweep_plane_up(lu, z);
        send_edges(lu, SWEEP_LOWER, z);
    }
    for (int z = lu->end_z - 1; z >= lu->begin_z; z--) {
        receive_edges(lu, SWEEP_UPPER, z);
        sweep_plane_down(lu, z);
        send_edges(lu, SWEEP_UPPER, z);
    }
    correct_plane(lu, lu->begin_z);
    nas_work(WORK_POINTS_SWEPT, 2ull * (lu->end_x - lu->begin_x) * (lu->end_y - lu->begin_y) *
                                    (lu->end_z - lu->begin_z));
}
