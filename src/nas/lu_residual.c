#include "lu_physics.h"

enum { OUT_LOW, OUT_HIGH, IN_LOW, IN_HIGH };
enum { TAG_TO_LOW, TAG_TO_HIGH };

/* A box of points of this rank, packed or unpacked: x from 'x', y from 'y', all z. */
struct box {
    int x, y, width, height;
};

static void pack(const struct lu *lu, struct box box, double *buffer)
{
    for (int z = 0; z < lu->edge; z++) {
        for (int y = box.y; y < box.y + box.height; y++) {
            const double *row = lu_row(lu, lu->u, y, z) + box.x;

            for (int m = 0; m < LU_COMPONENTS; m++) {
                for (int x = 0; x < box.width; x++)
                    *buffer++ = row[m * lu->pitch + x];
            }
        }
    }
}

static void unpack(const struct lu *lu, struct box box, const double *buffer)
{
    for (int z = 0; z < lu->edge; z++) {
        for (int y = box.y; y < box.y + box.height; y++) {
            double *row = lu_row(lu, lu->u, y, z) + box.x;

            for (int m = 0; m < LU_COMPONENTS; m++) {
                for (int x = 0; x < box.width; x++)
                    row[m * lu->pitch + x] = *buffer++;
            }
        }
    }
}

/* Sends the outermost layers of this rank's points both ways and gets those of the neighbours. */
static void exchange_layers(const struct lu *lu, int low, int high, struct box inner_low,
                            struct box inner_high, struct box outer_low, struct box outer_high)
{
    int count = inner_low.width * inner_low.height * lu->edge * LU_COMPONENTS;
    MPI_Request requests[2];
    int waiting = 0;

    if (low != MPI_PROC_NULL)
        comm_receive_begin(lu->faces[IN_LOW], count, MPI_DOUBLE, low, TAG_TO_HIGH, MPI_COMM_WORLD,
                           &requests[waiting++]);
    if (high != MPI_PROC_NULL)
        comm_receive_begin(lu->faces[IN_HIGH], count, MPI_DOUBLE, high, TAG_TO_LOW, MPI_COMM_WORLD,
                           &requests[waiting++]);
    if (low != MPI_PROC_NULL) {
        pack(lu, inner_low, lu->faces[OUT_LOW]);
        comm_send(lu->faces[OUT_LOW], count, MPI_DOUBLE, low, TAG_TO_LOW, MPI_COMM_WORLD);
    }
    if (high != MPI_PROC_NULL) {
        pack(lu, inner_high, lu->faces[OUT_HIGH]);
        comm_send(lu->faces[OUT_HIGH], count, MPI_DOUBLE, high, TAG_TO_HIGH, MPI_COMM_WORLD);
    }
    comm_wait(requests, waiting);
    if (low != MPI_PROC_NULL)
        unpack(lu, outer_low, lu->faces[IN_LOW]);
    if (high != MPI_PROC_NULL)
        unpack(lu, outer_high, lu->faces[IN_HIGH]);
}

static void exchange(const struct lu *lu)
{
    int nx = lu->nx, ny = lu->ny, g = LU_GHOSTS;

    exchange_layers(lu, lu->west, lu->east, (struct box){ 0, 0, g, ny },
                    (struct box){ nx - g, 0, g, ny }, (struct box){ -g, 0, g, ny },
                    (struct box){ nx, 0, g, ny });
    exchange_layers(lu, lu->south, lu->north, (struct box){ 0, 0, nx, g },
                    (struct box){ 0, ny - g, nx, g }, (struct box){ 0, -g, nx, g },
                    (struct box){ 0, ny, nx, g });
}

/* A row and the five rows that differences across 'axis' need; along x they are the same row. */
struct stencil {
    const double *at[5];
};

/* Adds to a point of the residual the terms that difference across 'axis'. */
lu_inline void add_point(const struct lu *lu, int axis, const double *low, const double *middle,
                         const double *high, int x, double *restrict to)
{
    size_t pitch = lu->pitch;
    double t1 = lu->t1, t2 = lu->t2, d = lu_diffusion(axis);
    struct lu_point a = lu_point_at(low, pitch, x), b = lu_point_at(middle, pitch, x);
    struct lu_point c = lu_point_at(high, pitch, x);
    double flux_a[LU_COMPONENTS], flux_c[LU_COMPONENTS];
    double viscous_a[LU_COMPONENTS], viscous_b[LU_COMPONENTS], viscous_c[LU_COMPONENTS];

    lu_flux(axis, low, pitch, x, &a, flux_a);
    lu_flux(axis, high, pitch, x, &c, flux_c);
    lu_viscous(axis, &a, viscous_a);
    lu_viscous(axis, &b, viscous_b);
    lu_viscous(axis, &c, viscous_c);
#pragma GCC unroll 5
    for (int m = 0; m < LU_COMPONENTS; m++) {
        size_t i = m * pitch + x;

        to[i] += t1 * (viscous_a[m] - 2 * viscous_b[m] + viscous_c[m] +
                       d * (low[i] - 2 * middle[i] + high[i])) -
                 t2 * (flux_c[m] - flux_a[m]);
    }
}

lu_inline void add_axis(const struct lu *lu, int axis, const struct stencil *stencil,
                        double *restrict to)
{
    const double *low = stencil->at[1], *middle = stencil->at[2], *high = stencil->at[3];

#pragma omp simd
    for (int x = lu->begin_x; x < lu->end_x; x++)
        add_point(lu, axis, low, middle, high, x, to);
}

/* Fourth differences, with fewer terms beside the boundaries. Weights are those of the points at -2
 * to 2. */
static const double weights_inside[5] = { 1, -4, 6, -4, 1 };
static const double weights_first[5] = { 0, 0, 5, -4, 1 };
static const double weights_second[5] = { 0, -4, 6, -4, 1 };
static const double weights_last_but_one[5] = { 1, -4, 6, -4, 0 };
static const double weights_last[5] = { 1, -4, 5, 0, 0 };

/* 'at' counts from the boundary, which is 0, to edge - 1. */
static const double *weights_at(int at, int edge)
{
    if (at == 1)
        return weights_first;
    if (at == 2)
        return weights_second;
    if (at == edge - 3)
        return weights_last_but_one;
    return at == edge - 2 ? weights_last : weights_inside;
}

lu_inline void dissipate(const struct lu *lu, const struct stencil *stencil, const double *weights,
                         int begin, int end, double *restrict to)
{
    const double *a = stencil->at[0], *b = stencil->at[1], *c = stencil->at[2];
    const double *d = stencil->at[3], *e = stencil->at[4];

    for (int m = 0; m < LU_COMPONENTS; m++) {
        size_t first = m * lu->pitch;

#pragma omp simd
        for (size_t i = first + begin; i < first + end; i++)
            to[i] -= LU_DISSIPATION * (weights[0] * a[i] + weights[1] * b[i] + weights[2] * c[i] +
                                       weights[3] * d[i] + weights[4] * e[i]);
    }
}

/* The weights change along the row. */
lu_inline void dissipate_along_x(const struct lu *lu, const struct stencil *stencil,
                                 double *restrict to)
{
    int begin = lu->begin_x, end = lu->end_x;

    for (; begin < end && lu->first_x + begin < 3; begin++)
        dissipate(lu, stencil, weights_at(lu->first_x + begin, lu->edge), begin, begin + 1, to);
    for (; begin < end && lu->first_x + end - 1 > lu->edge - 4; end--)
        dissipate(lu, stencil, weights_at(lu->first_x + end - 1, lu->edge), end - 1, end, to);
    dissipate(lu, stencil, weights_inside, begin, end, to);
}

static struct stencil stencil_of(const struct lu *lu, int axis, int y, int z)
{
    struct stencil stencil;

    for (int i = 0; i < 5; i++) {
        int step = i - 2, at_z = z + (axis == LU_Z ? step : 0);

        /* Beyond the boundary there is nothing, and the weight is zero: any row will do. */
        at_z = at_z < 0 ? 0 : at_z >= lu->edge ? lu->edge - 1 : at_z;
        stencil.at[i] =
            lu_row(lu, lu->u, y + (axis == LU_Y ? step : 0), at_z) + (axis == LU_X ? step : 0);
    }
    return stencil;
}

NAS_HOT static void residual_row(const struct lu *lu, int y, int z)
{
    struct stencil across_x = stencil_of(lu, LU_X, y, z), across_y = stencil_of(lu, LU_Y, y, z);
    struct stencil across_z = stencil_of(lu, LU_Z, y, z);
    const double *force = lu_row(lu, lu->force, y, z);
    double *to = lu_row(lu, lu->r, y, z);

    for (int m = 0; m < LU_COMPONENTS; m++) {
        for (int x = lu->begin_x; x < lu->end_x; x++)
            to[m * lu->pitch + x] = -force[m * lu->pitch + x];
    }
    add_axis(lu, LU_X, &across_x, to);
    add_axis(lu, LU_Y, &across_y, to);
    add_axis(lu, LU_Z, &across_z, to);
    dissipate_along_x(lu, &across_x, to);
    dissipate(lu, &across_y, weights_at(lu->first_y + y, lu->edge), lu->begin_x, lu->end_x, to);
    dissipate(lu, &across_z, weights_at(z, lu->edge), lu->begin_x, lu->end_x, to);
}

void lu_residual(struct lu *lu)
{
    exchange(lu);
    for (int z = lu->begin_z; z < lu->end_z; z++) {
        for (int y = lu->begin_y; y < lu->end_y; y++)
            residual_row(lu, y, z);
    }
    nas_work(WORK_POINTS_BALANCED, (uint64_t)(lu->end_x - lu->begin_x) * (lu->end_y - lu->begin_y) *
                                       (lu->end_z - lu->begin_z));
}
