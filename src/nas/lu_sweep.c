/* The relaxation. A point needs the corrections of the three points before it, so a sweep runs as a
 * wave through the ranks, plane by plane. Within a row, what comes from the rows before is worked
 * out for all points at once; only the chain along the row is left for one point after the other.
 */
#include "lu_physics.h"

#include <string.h>

#define ROW_MAX (LU_EDGE_MAX + 2 * LU_GHOSTS)

enum sweep { SWEEP_LOWER, SWEEP_UPPER };
enum { TAG_LOWER, TAG_UPPER };

/* Of every point of a row: the sum that its block is to be solved for, and the inverses of the
 * block's diagonal for momenta and energy. */
struct terms {
    double sum[LU_COMPONENTS][ROW_MAX];
    double momentum[ROW_MAX];
    double energy[ROW_MAX];
};

/* Of the block on the diagonal: 'base' on every diagonal, and what the viscous terms add for
 * momenta and energy, times the inverse of the density. */
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

/* The rows that a sweep has done before this one, and the row itself: state and corrections. */
struct rows {
    const double *u, *r, *u_y, *r_y, *u_z, *r_z;
};

lu_inline void gather_point(const struct lu *lu, enum sweep sweep, const struct rows *rows, int x,
                            const struct diagonal *diagonal, struct terms *restrict terms)
{
    size_t pitch = lu->pitch;
    double scale = LU_OVER_RELAXATION * lu->dt, diffusion_scale = scale * lu->t1;
    double flux_scale = (sweep == SWEEP_LOWER ? scale : -scale) * lu->t2;
    struct lu_point at_y = lu_point_at(rows->u_y, pitch, x);
    struct lu_point at_z = lu_point_at(rows->u_z, pitch, x);
    double inverse = 1 / rows->u[x];
    double w_y[LU_COMPONENTS], w_z[LU_COMPONENTS], sum[LU_COMPONENTS];

#pragma GCC unroll 5
    for (int m = 0; m < LU_COMPONENTS; m++) {
        w_y[m] = rows->r_y[m * pitch + x];
        w_z[m] = rows->r_z[m * pitch + x];
        sum[m] = sweep == SWEEP_LOWER ? rows->r[m * pitch + x] : 0;
    }
    lu_add_jacobian(LU_Y, &at_y, flux_scale, diffusion_scale, w_y, sum);
    lu_add_jacobian(LU_Z, &at_z, flux_scale, diffusion_scale, w_z, sum);
#pragma GCC unroll 5
    for (int m = 0; m < LU_COMPONENTS; m++)
        terms->sum[m][x + LU_GHOSTS] = sum[m];
    terms->momentum[x + LU_GHOSTS] = 1 / (diagonal->base + diagonal->momentum * inverse);
    terms->energy[x + LU_GHOSTS] = 1 / (diagonal->base + diagonal->energy * inverse);
}

lu_inline void gather_terms(const struct lu *lu, enum sweep sweep, int y, int z,
                            const struct diagonal *diagonal, struct terms *terms)
{
    int step = sweep == SWEEP_LOWER ? -1 : 1;
    struct rows rows = {
        .u = lu_row(lu, lu->u, y, z),
        .r = lu_row(lu, lu->r, y, z),
        .u_y = lu_row(lu, lu->u, y + step, z),
        .r_y = lu_row(lu, lu->r, y + step, z),
        .u_z = lu_row(lu, lu->u, y, z + step),
        .r_z = lu_row(lu, lu->r, y, z + step),
    };

#pragma omp simd
    for (int x = lu->begin_x; x < lu->end_x; x++)
        gather_point(lu, sweep, &rows, x, diagonal, terms);
}

/* Solves the diagonal block, which is lower triangular, for the sum in w. */
lu_inline void solve_block(const struct diagonal *diagonal, const struct lu_point *point,
                           double momentum_inverse, double energy_inverse, double w[LU_COMPONENTS])
{
    double g = diagonal->momentum * point->inverse, h = diagonal->energy * point->inverse;
    double heat = h * point->energy;

    w[0] *= diagonal->base_inverse;
    heat *= w[0];
    for (int m = 0; m < LU_AXES; m++) {
        w[1 + m] = (w[1 + m] + g * point->v[m] * w[0]) * momentum_inverse;
        heat -= (g - h) * point->v[m] * (w[1 + m] - point->v[m] * w[0]);
    }
    w[4] = (w[4] + heat) * energy_inverse;
}

lu_inline void solve_row(const struct lu *lu, enum sweep sweep, int y, int z,
                         const struct diagonal *diagonal, const struct terms *terms)
{
    bool lower = sweep == SWEEP_LOWER;
    int step = lower ? 1 : -1, x = lower ? lu->begin_x : lu->end_x - 1;
    double scale = LU_OVER_RELAXATION * lu->dt;
    double flux_scale = step * scale * lu->t2, diffusion_scale = scale * lu->t1;
    const double *u = lu_row(lu, lu->u, y, z);
    double *r = lu_row(lu, lu->r, y, z), before[LU_COMPONENTS];
    struct lu_point point = lu_point_at(u, lu->pitch, x - step);

    for (int m = 0; m < LU_COMPONENTS; m++)
        before[m] = r[m * lu->pitch + x - step];
    for (int left = lu->end_x - lu->begin_x; left > 0; left--, x += step) {
        double w[LU_COMPONENTS];

        for (int m = 0; m < LU_COMPONENTS; m++)
            w[m] = terms->sum[m][x + LU_GHOSTS];
        lu_add_jacobian(LU_X, &point, flux_scale, diffusion_scale, before, w);
        point = lu_point_at(u, lu->pitch, x);
        solve_block(diagonal, &point, terms->momentum[x + LU_GHOSTS], terms->energy[x + LU_GHOSTS],
                    w);
        for (int m = 0; m < LU_COMPONENTS; m++) {
            before[m] = lower ? w[m] : r[m * lu->pitch + x] + w[m];
            r[m * lu->pitch + x] = before[m];
        }
    }
}

NAS_HOT static void sweep_plane_up(const struct lu *lu, int z)
{
    struct diagonal diagonal = diagonal_of(lu);
    struct terms terms;

    for (int y = lu->begin_y; y < lu->end_y; y++) {
        gather_terms(lu, SWEEP_LOWER, y, z, &diagonal, &terms);
        solve_row(lu, SWEEP_LOWER, y, z, &diagonal, &terms);
    }
}

NAS_HOT static void sweep_plane_down(const struct lu *lu, int z)
{
    struct diagonal diagonal = diagonal_of(lu);
    struct terms terms;

    for (int y = lu->end_y - 1; y >= lu->begin_y; y--) {
        gather_terms(lu, SWEEP_UPPER, y, z, &diagonal, &terms);
        solve_row(lu, SWEEP_UPPER, y, z, &diagonal, &terms);
    }
}

/* A line of corrections across x: one value of each component and row. */
static void take_column(const struct lu *lu, int x, int z, double *buffer)
{
    for (int y = 0; y < lu->ny; y++) {
        for (int m = 0; m < LU_COMPONENTS; m++)
            *buffer++ = lu_row(lu, lu->r, y, z)[m * lu->pitch + x];
    }
}

static void put_column(const struct lu *lu, int x, int z, const double *buffer)
{
    for (int y = 0; y < lu->ny; y++) {
        for (int m = 0; m < LU_COMPONENTS; m++)
            lu_row(lu, lu->r, y, z)[m * lu->pitch + x] = *buffer++;
    }
}

static void take_row(const struct lu *lu, int y, int z, double *buffer)
{
    for (int m = 0; m < LU_COMPONENTS; m++)
        memcpy(buffer + m * lu->nx, lu_row(lu, lu->r, y, z) + m * lu->pitch,
               lu->nx * sizeof(*buffer));
}

static void put_row(const struct lu *lu, int y, int z, const double *buffer)
{
    for (int m = 0; m < LU_COMPONENTS; m++)
        memcpy(lu_row(lu, lu->r, y, z) + m * lu->pitch, buffer + m * lu->nx,
               lu->nx * sizeof(*buffer));
}

/* The corrections of the ranks before, beside this rank's points. */
static void receive_edges(const struct lu *lu, enum sweep sweep, int z)
{
    bool lower = sweep == SWEEP_LOWER;
    int from_x = lower ? lu->west : lu->east, from_y = lower ? lu->south : lu->north;
    int tag = lower ? TAG_LOWER : TAG_UPPER;
    double *buffer = lu->faces[0];

    if (from_x != MPI_PROC_NULL) {
        comm_receive(buffer, LU_COMPONENTS * lu->ny, MPI_DOUBLE, from_x, tag, MPI_COMM_WORLD);
        put_column(lu, lower ? -1 : lu->nx, z, buffer);
    }
    if (from_y != MPI_PROC_NULL) {
        comm_receive(buffer, LU_COMPONENTS * lu->nx, MPI_DOUBLE, from_y, tag, MPI_COMM_WORLD);
        put_row(lu, lower ? -1 : lu->ny, z, buffer);
    }
}

static void send_edges(const struct lu *lu, enum sweep sweep, int z)
{
    bool lower = sweep == SWEEP_LOWER;
    int to_x = lower ? lu->east : lu->west, to_y = lower ? lu->north : lu->south;
    int tag = lower ? TAG_LOWER : TAG_UPPER;
    double *buffer = lu->faces[0];

    if (to_x != MPI_PROC_NULL) {
        take_column(lu, lower ? lu->nx - 1 : 0, z, buffer);
        comm_send(buffer, LU_COMPONENTS * lu->ny, MPI_DOUBLE, to_x, tag, MPI_COMM_WORLD);
    }
    if (to_y != MPI_PROC_NULL) {
        take_row(lu, lower ? lu->ny - 1 : 0, z, buffer);
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
    nas_work(WORK_POINTS_SWEPT, 2ull * (lu->end_x - lu->begin_x) * (lu->end_y - lu->begin_y) *
                                    (lu->end_z - lu->begin_z));
}
