/* SPDX-License-Identifier: BSD-2-Clause */
/* Periodic grids that are divided among the ranks in three directions, each rank's part with one
 * layer of its neighbours' points around it. */
#ifndef NAS_MG_GRID_H
#define NAS_MG_GRID_H

#include "run.h"

enum { AXIS_X, AXIS_Y, AXIS_Z, AXES };

struct mg_grid {
    unsigned int edge;            /* points of the whole grid in each direction */
    unsigned int n[AXES];         /* points of this rank */
    unsigned int first[AXES];     /* where they begin in the whole */
    int below[AXES], above[AXES]; /* neighbours; -1 if this rank has the whole direction */
    double *buffers[4];           /* out and in, below and above */
};

/* Number of doubles of an array over the grid. */
static inline size_t mg_cells(const struct mg_grid *grid)
{
    return (size_t)(grid->n[AXIS_X] + 2) * (grid->n[AXIS_Y] + 2) * (grid->n[AXIS_Z] + 2);
}

/* The row of an array at y and z, which count the layer below as 0. */
static inline double *mg_row(const struct mg_grid *grid, const double *cells, unsigned int y,
                             unsigned int z)
{
    return (double *)cells + ((size_t)z * (grid->n[AXIS_Y] + 2) + y) * (grid->n[AXIS_X] + 2);
}

static inline uint64_t mg_points(const struct mg_grid *grid)
{
    return (uint64_t)grid->n[AXIS_X] * grid->n[AXIS_Y] * grid->n[AXIS_Z];
}

/* The number of ranks in each direction; their product is 'ranks'. */
void mg_divide_ranks(int ranks, int divided[AXES]);

/* A grid that is divided among the ranks; its edge has at least as many points as there are ranks
 * in any direction. */
int mg_grid_divide(struct mg_grid *grid, struct nas_run *run, unsigned int edge);

/* The same grid whole on every rank, without communication. */
void mg_grid_whole(struct mg_grid *grid, unsigned int edge);

/* Brings the layer around each part up to date. */
void mg_exchange(const struct mg_grid *grid, double *cells);

/* Gathers the parts into the whole on every rank; 'scratch' has the size of the whole. */
void mg_gather(const struct mg_grid *part, const double *cells, const struct mg_grid *whole,
               double *whole_cells, double *scratch, struct nas_run *run);

/* Copies this rank's part, and the layer around it, from the whole. */
void mg_extract(const struct mg_grid *whole, const double *whole_cells, const struct mg_grid *part,
                double *cells);

#endif
