/* SPDX-License-Identifier: BSD-2-Clause */
#include "mg_grid.h"

#include <string.h>

enum { OUT_BELOW, OUT_ABOVE, IN_BELOW, IN_ABOVE };
enum { TAG_DOWN, TAG_UP };

void mg_divide_ranks(int ranks, int divided[AXES])
{
    unsigned int bits = log2_of(ranks);

    /* Rows are divided last: the processor's vectors run along them. */
    divided[AXIS_Z] = 1 << (bits + 2) / 3;
    divided[AXIS_Y] = 1 << (bits + 1) / 3;
    divided[AXIS_X] = 1 << bits / 3;
}

static void coordinates(int rank, const int divided[AXES], int at[AXES])
{
    at[AXIS_X] = rank % divided[AXIS_X];
    at[AXIS_Y] = rank / divided[AXIS_X] % divided[AXIS_Y];
    at[AXIS_Z] = rank / divided[AXIS_X] / divided[AXIS_Y];
}

static int neighbour(const int divided[AXES], const int at[AXES], int axis, int step)
{
    int to[AXES] = { at[AXIS_X], at[AXIS_Y], at[AXIS_Z] };

    to[axis] = (to[axis] + step + divided[axis]) % divided[axis];
    return (to[AXIS_Z] * divided[AXIS_Y] + to[AXIS_Y]) * divided[AXIS_X] + to[AXIS_X];
}

static size_t face_cells(const struct mg_grid *grid, int axis)
{
    return mg_cells(grid) / (grid->n[axis] + 2);
}

int mg_grid_divide(struct mg_grid *grid, struct nas_run *run, unsigned int edge)
{
    int divided[AXES], at[AXES];
    size_t largest = 0;

    grid->edge = edge;
    mg_divide_ranks(run->ranks, divided);
    coordinates(run->rank, divided, at);
    for (int axis = 0; axis < AXES; axis++) {
        grid->n[axis] = edge / divided[axis];
        grid->first[axis] = at[axis] * grid->n[axis];
        grid->below[axis] = divided[axis] == 1 ? -1 : neighbour(divided, at, axis, -1);
        grid->above[axis] = divided[axis] == 1 ? -1 : neighbour(divided, at, axis, 1);
    }
    for (int axis = 0; axis < AXES; axis++)
        largest = face_cells(grid, axis) > largest ? face_cells(grid, axis) : largest;
    for (int i = 0; i < 4; i++) {
        grid->buffers[i] = run_allocate(run, largest, sizeof(double));
        if (!grid->buffers[i])
            return -1;
    }
    return 0;
}

void mg_grid_whole(struct mg_grid *grid, unsigned int edge)
{
    memset(grid, 0, sizeof(*grid));
    grid->edge = edge;
    for (int axis = 0; axis < AXES; axis++) {
        grid->n[axis] = edge;
        grid->below[axis] = grid->above[axis] = -1;
    }
}

/* The cells of a face lie in 'blocks' runs of 'run' doubles, 'stride' apart. */
struct face {
    double *first;
    size_t run, blocks, stride;
};

static struct face face_at(const struct mg_grid *grid, double *cells, int axis, unsigned int layer)
{
    size_t row = grid->n[AXIS_X] + 2, plane = row * (grid->n[AXIS_Y] + 2);

    switch (axis) {
    case AXIS_X:
        return (struct face){ cells + layer, 1, mg_cells(grid) / row, row };
    case AXIS_Y:
        return (struct face){ cells + layer * row, row, grid->n[AXIS_Z] + 2, plane };
    default:
        return (struct face){ cells + layer * plane, plane, 1, 0 };
    }
}

static void copy_face(struct face to, struct face from)
{
    if (to.run == 1) {
        for (size_t i = 0; i < to.blocks; i++)
            to.first[i * to.stride] = from.first[i * from.stride];
        return;
    }
    for (size_t i = 0; i < to.blocks; i++)
        memcpy(to.first + i * to.stride, from.first + i * from.stride, to.run * sizeof(double));
}

static struct face packed(struct face like, double *buffer)
{
    return (struct face){ buffer, like.run, like.blocks, like.run };
}

static void exchange_faces(const struct mg_grid *grid, double *cells, int axis)
{
    unsigned int n = grid->n[axis];
    struct face lowest = face_at(grid, cells, axis, 1), highest = face_at(grid, cells, axis, n);
    int count = face_cells(grid, axis), below = grid->below[axis], above = grid->above[axis];
    MPI_Request requests[2];

    comm_irecv(grid->buffers[IN_BELOW], count, MPI_DOUBLE, below, TAG_UP, MPI_COMM_WORLD,
               &requests[0]);
    comm_irecv(grid->buffers[IN_ABOVE], count, MPI_DOUBLE, above, TAG_DOWN, MPI_COMM_WORLD,
               &requests[1]);
    copy_face(packed(lowest, grid->buffers[OUT_BELOW]), lowest);
    comm_send(grid->buffers[OUT_BELOW], count, MPI_DOUBLE, below, TAG_DOWN, MPI_COMM_WORLD);
    copy_face(packed(highest, grid->buffers[OUT_ABOVE]), highest);
    comm_send(grid->buffers[OUT_ABOVE], count, MPI_DOUBLE, above, TAG_UP, MPI_COMM_WORLD);
    comm_waitall(requests, 2);
    copy_face(face_at(grid, cells, axis, 0), packed(lowest, grid->buffers[IN_BELOW]));
    copy_face(face_at(grid, cells, axis, n + 1), packed(highest, grid->buffers[IN_ABOVE]));
}

/* One direction after the other, each including the layers that the previous ones brought: this
 * also exchanges edges and corners. */
void mg_exchange(const struct mg_grid *grid, double *cells)
{
    for (int axis = 0; axis < AXES; axis++) {
        unsigned int n = grid->n[axis];

        if (grid->below[axis] >= 0) {
            exchange_faces(grid, cells, axis);
        } else {
            copy_face(face_at(grid, cells, axis, 0), face_at(grid, cells, axis, n));
            copy_face(face_at(grid, cells, axis, n + 1), face_at(grid, cells, axis, 1));
        }
    }
}

void mg_gather(const struct mg_grid *part, const double *cells, const struct mg_grid *whole,
               double *whole_cells, double *scratch, struct nas_run *run)
{
    int divided[AXES], at[AXES];
    const unsigned int *n = part->n;
    size_t points = mg_points(part), used = 0;
    double *mine = scratch + points * run->ranks;

    for (unsigned int z = 1; z <= n[AXIS_Z]; z++) {
        for (unsigned int y = 1; y <= n[AXIS_Y]; y++, used += n[AXIS_X])
            memcpy(mine + used, mg_row(part, cells, y, z) + 1, n[AXIS_X] * sizeof(double));
    }
    comm_allgather(mine, points, MPI_DOUBLE, scratch, MPI_COMM_WORLD);
    mg_divide_ranks(run->ranks, divided);
    used = 0;
    for (int rank = 0; rank < run->ranks; rank++) {
        coordinates(rank, divided, at);
        for (unsigned int z = 1; z <= n[AXIS_Z]; z++) {
            for (unsigned int y = 1; y <= n[AXIS_Y]; y++, used += n[AXIS_X])
                memcpy(mg_row(whole, whole_cells, at[AXIS_Y] * n[AXIS_Y] + y,
                              at[AXIS_Z] * n[AXIS_Z] + z) +
                           at[AXIS_X] * n[AXIS_X] + 1,
                       scratch + used, n[AXIS_X] * sizeof(double));
        }
    }
    mg_exchange(whole, whole_cells);
}

void mg_extract(const struct mg_grid *whole, const double *whole_cells, const struct mg_grid *part,
                double *cells)
{
    for (unsigned int z = 0; z < part->n[AXIS_Z] + 2; z++) {
        for (unsigned int y = 0; y < part->n[AXIS_Y] + 2; y++)
            memcpy(mg_row(part, cells, y, z),
                   mg_row(whole, whole_cells, part->first[AXIS_Y] + y, part->first[AXIS_Z] + z) +
                       part->first[AXIS_X],
                   (part->n[AXIS_X] + 2) * sizeof(double));
    }
}
