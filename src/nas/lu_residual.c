/* SPDX-License-Identifier: BSD-2-Clause */
#include "lu_physics.h"

enum { OUT_LOW, OUT_HIGH, IN_LOW, IN_HIGH };
enum { TAG_TO_LOW, TAG_TO_HIGH };

/* Sends the outermost layers of this rank's points both ways and gets those of the neighbours. */
static void exchange_layers(const struct lu *lu, int low, int high, struct lu_box inner_low,
                            struct lu_box inner_high, struct lu_box outer_low,
                            struct lu_box outer_high)
{
    int count = inner_low.width * inner_low.height * inner_low.depth * LU_COMPONENTS;
    MPI_Request requests[2];
    int waiting = 0;

    if (low != MPI_PROC_NULL)
        comm_irecv(lu->faces[IN_LOW], count, MPI_DOUBLE, low, TAG_TO_HIGH, MPI_COMM_WORLD,
                   &requests[waiting++]);
    if (high != MPI_PROC_NULL)
        comm_irecv(lu->faces[IN_HIGH], count, MPI_DOUBLE, high, TAG_TO_LOW, MPI_COMM_WORLD,
                   &requests[waiting++]);
    if (low != MPI_PROC_NULL) {
        lu_pack(lu, lu->u, inner_low, lu->faces[OUT_LOW]);
        comm_send(lu->faces[OUT_LOW], count, MPI_DOUBLE, low, TAG_TO_LOW, MPI_COMM_WORLD);
    }
    if (high != MPI_PROC_NULL) {
        lu_pack(lu, lu->u, inner_high, lu->faces[OUT_HIGH]);
        comm_send(lu->faces[OUT_HIGH], count, MPI_DOUBLE, high, TAG_TO_HIGH, MPI_COMM_WORLD);
    }
    comm_waitall(requests, waiting);
    if (low != MPI_PROC_NULL)
        lu_unpack(lu, lu->u, outer_low, lu->faces[IN_LOW]);
    if (high != MPI_PROC_NULL)
        lu_unpack(lu, lu->u, outer_high, lu->faces[IN_HIGH]);
}

static void exchange(const struct lu *lu)
{
    int nx = lu->nx, ny = lu->ny, nz = lu->edge, g = LU_GHOSTS;

    exchange_layers(lu, lu->west, lu->east, (struct lu_box){ 0, 0, 0, g, ny, nz },
                    (struct lu_box){ nx - g, 0, 0, g, ny, nz },
                    (struct lu_box){ -g, 0, 0, g, ny, nz }, (struct lu_box){ nx, 0, 0, g, ny, nz });
    exchange_layers(lu, lu->south, lu->north, (struct lu_box){ 0, 0, 0, nx, g, nz },
                    (struct lu_box){ 0, ny - g, 0, nx, g, nz },
                    (struct lu_box){ 0, -g, 0, nx, g, nz }, (struct lu_box){ 0, ny, 0, nx, g, nz });
}

/* Second differences for the diffusion and fourth ones for the dissipation, combined: the weights
 * of the points at -2 to 2 in the residual. Next to the boundaries the fourth differences have
 * fewer terms. 'at' counts from the boundary, which is 0, to edge - 1. */
#define REACH  2
#define POINTS (2 * REACH + 1)

static void weights_at(const struct lu *lu, int axis, int at, double weights[POINTS])
{
    static const double second[POINTS] = { 0, 1, -2, 1, 0 };
    static const double fourth[POINTS] = { 1, -4, 6, -4, 1 };
    int last = lu->edge - 1;

    for (int i = 0; i < POINTS; i++)
        weights[i] = lu->t1 * lu_diffusion(axis) * second[i] - LU_DISSIPATION * fourth[i];
    if (at <= REACH)
        weights[0] = 0;
    if (at >= last - REACH)
        weights[4] = 0;
    if (at == 1 || at == last - 1) {
        weights[at == 1 ? 1 : 3] += LU_DISSIPATION * fourth[1];
        weights[REACH] += LU_DISSIPATION;
    }
}

#define BLOCKS_MAX ((LU_EDGE_MAX + LU_LANES - 1) / LU_LANES)

/* Along x backwards, as the lanes of a slot have descending x; along y by block. */
struct weights {
    double along_x[POINTS][LU_EDGE_MAX + 2 * LU_LANES];
    lu_lanes along_y[1 + BLOCKS_MAX][POINTS];
};

static void set_weights(const struct lu *lu, struct weights *weights)
{
    double one[POINTS];

    memset(weights, 0, sizeof(*weights));
    for (int x = lu->begin_x; x < lu->end_x; x++) {
        weights_at(lu, LU_X, lu->first_x + x, one);
        for (int i = 0; i < POINTS; i++)
            weights->along_x[i][lu_backwards(lu, x)] = one[i];
    }
    for (int y = lu->begin_y; y < lu->end_y; y++) {
        int row = lu_row(lu, y);

        weights_at(lu, LU_Y, lu->first_y + y, one);
        for (int i = 0; i < POINTS; i++)
            weights->along_y[row / LU_LANES][i][row % LU_LANES] = one[i];
    }
}

/* Adds the contribution of a neighbouring point along 'axis': 'side' is 1 for the higher, -1 for
 * the lower one. */
lu_inline void add_neighbour(const struct lu *lu, int axis, int side, lu_lanes weight,
                             const lu_lanes u[LU_COMPONENTS], lu_lanes sum[LU_COMPONENTS])
{
    struct lu_point point = lu_point_of(u);
    double flux_scale = -side * lu->t2, viscous = lu->t1 * LU_C34;
    lu_lanes speed = flux_scale * point.v[axis], carried = weight + speed;
    lu_lanes pressure = LU_C2 * u[0] * point.internal;

    sum[0] += weight * u[0];
    sum[0] += flux_scale * u[1 + axis];
#pragma GCC unroll 3
    for (int m = 0; m < LU_AXES; m++) {
        sum[1 + m] += carried * u[1 + m];
        sum[1 + m] += viscous * lu_along(axis, m) * point.v[m];
    }
    sum[1 + axis] += flux_scale * pressure;
    sum[4] += carried * u[4];
    sum[4] += speed * pressure;
    sum[4] += viscous *
              (lu_heat(&point) + (lu_along(axis, axis) - 1) / 2 * point.v[axis] * point.v[axis]);
}

/* The contribution of the point itself to the differences along all axes. */
lu_inline void add_middle(const struct lu *lu, lu_lanes weight, const lu_lanes u[LU_COMPONENTS],
                          lu_lanes sum[LU_COMPONENTS])
{
    struct lu_point point = lu_point_of(u);
    double viscous = -2 * lu->t1 * LU_C34;

#pragma GCC unroll 5
    for (int m = 0; m < LU_COMPONENTS; m++)
        sum[m] += weight * u[m];
#pragma GCC unroll 3
    for (int m = 0; m < LU_AXES; m++)
        sum[1 + m] += viscous * LU_ALONG_SUM * point.v[m];
    sum[4] += viscous * (LU_AXES * lu_heat(&point) + (LU_ALONG_SUM - LU_AXES) * point.kinetic);
}

lu_inline void add_axis(const struct lu *lu, int axis, const struct lu_slot *const at[POINTS],
                        const lu_lanes weights[POINTS], lu_lanes sum[LU_COMPONENTS])
{
    add_neighbour(lu, axis, -1, weights[1], at[1]->component, sum);
    add_neighbour(lu, axis, 1, weights[3], at[3]->component, sum);
#pragma GCC unroll 5
    for (int m = 0; m < LU_COMPONENTS; m++) {
        sum[m] += weights[0] * at[0]->component[m];
        sum[m] += weights[4] * at[4]->component[m];
    }
}

/* The inputs of the residual of a block. */
struct sources {
    const struct lu_slot *u[POINTS];  /* by plane */
    const struct lu_slot *low, *high; /* the blocks beside it, in the same plane */
    const struct lu_slot *force;
    const struct weights *weights;
    const lu_lanes *along_y;
    lu_lanes along_z[POINTS];
};

lu_inline void rows_of(const struct sources *sources, int distance, int slot, struct lu_slot *to)
{
    const struct lu_slot *same = &sources->u[REACH][slot + distance];
    const struct lu_slot *next = distance < 0 ? &sources->low[slot + distance + LU_LANES]
                                              : &sources->high[slot + distance - LU_LANES];

#pragma GCC unroll 5
    for (int m = 0; m < LU_COMPONENTS; m++)
        to->component[m] = lu_rows_beside(distance, same->component[m], next->component[m]);
}

lu_inline void residual_slot(const struct lu *lu, const struct sources *sources, int slot,
                             lu_lanes sum[LU_COMPONENTS])
{
    const struct lu_slot *u = &sources->u[REACH][slot];
    const struct lu_slot *along_x[POINTS], *along_y[POINTS], *along_z[POINTS];
    struct lu_slot rows[POINTS];
    lu_lanes weights[POINTS];

#pragma GCC unroll 5
    for (int i = 0; i < POINTS; i++) {
        memcpy(&weights[i], &sources->weights->along_x[i][lu_backwards(lu, slot)],
               sizeof(weights[i]));
        if (i != REACH)
            rows_of(sources, i - REACH, slot, &rows[i]);
        along_x[i] = u + i - REACH;
        along_y[i] = &rows[i];
        along_z[i] = &sources->u[i][slot];
    }
#pragma GCC unroll 5
    for (int m = 0; m < LU_COMPONENTS; m++)
        sum[m] = -sources->force[slot].component[m];
    add_middle(lu, weights[REACH] + sources->along_y[REACH] + sources->along_z[REACH], u->component,
               sum);
    add_axis(lu, LU_X, along_x, weights, sum);
    add_axis(lu, LU_Y, along_y, sources->along_y, sum);
    add_axis(lu, LU_Z, along_z, sources->along_z, sum);
}

static void set_sources(const struct lu *lu, int block, int z, struct sources *sources)
{
    double along_z[POINTS];

    weights_at(lu, LU_Z, z, along_z);
    for (int i = 0; i < POINTS; i++) {
        int plane = z + i - REACH;

        /* Beyond the boundary the weight is zero: any plane will do. */
        plane = plane < 0 ? 0 : plane >= lu->edge ? lu->edge - 1 : plane;
        sources->u[i] = lu_block(lu, lu->u, block, plane);
        sources->along_z[i] = along_z[i] - (lu_lanes){ 0 };
    }
    sources->low = lu_block(lu, lu->u, block - 1, z);
    sources->high = lu_block(lu, lu->u, block + 1, z);
    sources->force = lu_block(lu, lu->force, block, z);
    sources->along_y = sources->weights->along_y[block];
}

NAS_HOT static void residual_block(const struct lu *lu, const struct sources *sources, int block,
                                   int z)
{
    struct lu_slot *to = lu_block(lu, lu->r, block, z);

    for (int slot = lu->begin_x; slot < lu->end_x + LU_LANES - 1; slot++) {
        lu_choice inner = lu_inner(lu, block, slot);
        lu_lanes sum[LU_COMPONENTS];

        lu_prefetch(&sources->u[POINTS - 1][slot + LU_AHEAD]);
        lu_prefetch(&sources->force[slot + LU_AHEAD]);
        lu_prefetch(&to[slot + LU_AHEAD]);
        residual_slot(lu, sources, slot, sum);
#pragma GCC unroll 5
        for (int m = 0; m < LU_COMPONENTS; m++)
            to[slot].component[m] = lu_choose(inner, sum[m], (lu_lanes){ 0 });
    }
}

/* Few enough that the second-level cache holds them for all planes of a difference. */
#define BLOCKS_AT_ONCE 4

void lu_residual(struct lu *lu)
{
    struct weights weights;
    struct sources sources = { .weights = &weights };

    exchange(lu);
    set_weights(lu, &weights);
    for (int first = lu->first_block; first <= lu->last_block; first += BLOCKS_AT_ONCE) {
        int last = first + BLOCKS_AT_ONCE - 1;

        for (int z = lu->begin_z; z < lu->end_z; z++) {
            for (int block = first; block <= last && block <= lu->last_block; block++) {
                set_sources(lu, block, z, &sources);
                residual_block(lu, &sources, block, z);
            }
        }
    }
    nas_work(WORK_POINTS_BALANCED, (uint64_t)(lu->end_x - lu->begin_x) * (lu->end_y - lu->begin_y) *
                                       (lu->end_z - lu->begin_z));
}
