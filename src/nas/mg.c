/* SPDX-License-Identifier: BSD-2-Clause */
/* MG: a Poisson equation on a periodic cube by multigrid cycles.
 *
 * Grids are divided among the ranks as long as every rank has at least two points in every
 * direction. A grid that is too coarse for that is gathered, and from there down every rank
 * computes the whole grid. This does not happen with up to eight ranks. */
#include "mg_operators.h"
#include "random.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LEVELS_MAX    12
#define COARSEST_EDGE 2
#define CHARGES       10 /* of either sign */
#define TOLERANCE     1e-8

static const struct mg_weights poisson = { -8.0 / 3, 0, 1.0 / 6, 1.0 / 12 };
static const struct mg_weights smoother_small = { -3.0 / 8, 1.0 / 32, -1.0 / 64, 0 };
static const struct mg_weights smoother_large = { -3.0 / 17, 1.0 / 33, -1.0 / 61, 0 };

static const struct {
    unsigned int edge, iterations;
    const struct mg_weights *smoother;
    double norm;
} sizes[NAS_CLASSES] = {
    [CLASS_S] = { 32, 4, &smoother_small, 0.5307707005734e-04 },
    [CLASS_W] = { 128, 4, &smoother_small, 0.6467329375339e-05 },
    [CLASS_A] = { 256, 4, &smoother_small, 0.2433365309069e-05 },
    [CLASS_B] = { 256, 20, &smoother_large, 0.1800564401355e-05 },
    [CLASS_C] = { 512, 20, &smoother_large, 0.5706732285740e-06 },
};

struct level {
    struct mg_grid grid;
    double *u, *r;
    bool gathered; /* the whole of the level above, on every rank */
};

struct mg {
    struct nas_run *run;
    const struct mg_weights *smoother;
    unsigned int level_count;
    struct level levels[LEVELS_MAX]; /* the finest first */
    double *v;                       /* of the finest */
    double *scratch;                 /* for gathering */
};

struct candidate {
    double value;
    uint64_t index;
};

/* Inserts a candidate into the list of the best, which is sorted. */
static void offer(struct candidate *best, double sign, double value, uint64_t index)
{
    int i = CHARGES - 1;

    if (sign * value <= sign * best[i].value)
        return;
    for (; i > 0 && sign * value > sign * best[i - 1].value; i--)
        best[i] = best[i - 1];
    best[i] = (struct candidate){ value, index };
}

static void no_candidates(struct candidate *best, double sign)
{
    for (int i = 0; i < CHARGES; i++)
        best[i] = (struct candidate){ -sign * DBL_MAX, 0 };
}

/* The extreme random numbers of this rank's points. */
static void search_part(const struct mg_grid *grid, struct candidate *largest,
                        struct candidate *smallest)
{
    uint64_t edge = grid->edge;

    for (unsigned int z = 0; z < grid->n[AXIS_Z]; z++) {
        for (unsigned int y = 0; y < grid->n[AXIS_Y]; y++) {
            uint64_t index = ((grid->first[AXIS_Z] + z) * edge + grid->first[AXIS_Y] + y) * edge +
                             grid->first[AXIS_X];
            uint64_t x = random_jump(RANDOM_SEED, index);

            for (unsigned int i = 0; i < grid->n[AXIS_X]; i++) {
                double value = random_next(&x);

                offer(largest, 1, value, index + i);
                offer(smallest, -1, value, index + i);
            }
        }
    }
}

static void set_charge(const struct mg_grid *grid, double *v, uint64_t index, double charge)
{
    uint64_t edge = grid->edge,
             at[AXES] = { index % edge, index / edge % edge, index / edge / edge };

    for (int axis = 0; axis < AXES; axis++) {
        if (at[axis] < grid->first[axis] || at[axis] - grid->first[axis] >= grid->n[axis])
            return;
        at[axis] -= grid->first[axis];
    }
    mg_row(grid, v, at[AXIS_Y] + 1, at[AXIS_Z] + 1)[at[AXIS_X] + 1] = charge;
}

/* The points with the ten largest random numbers get +1, the ten smallest -1, the others 0. */
static int set_charges(struct mg *mg)
{
    const struct mg_grid *grid = &mg->levels[0].grid;
    struct candidate *all;
    static const double signs[] = { 1, -1 };
    struct candidate found[2][CHARGES], best[CHARGES];

    all = run_allocate(mg->run, mg->run->ranks, sizeof(found));
    if (!all)
        return -1;
    for (int i = 0; i < 2; i++)
        no_candidates(found[i], signs[i]);
    search_part(grid, found[0], found[1]);
    comm_allgather(found, sizeof(found), MPI_BYTE, all, MPI_COMM_WORLD);
    memset(mg->v, 0, mg_cells(grid) * sizeof(double));
    for (int i = 0; i < 2; i++) {
        no_candidates(best, signs[i]);
        for (int k = 0; k < mg->run->ranks * CHARGES; k++) {
            const struct candidate *one =
                &all[k / CHARGES * 2 * CHARGES + i * CHARGES + k % CHARGES];

            offer(best, signs[i], one->value, one->index);
        }
        for (int k = 0; k < CHARGES; k++)
            set_charge(grid, mg->v, best[k].index, signs[i]);
    }
    mg_exchange(grid, mg->v);
    return 0;
}

static void residual(const struct level *level, const double *v)
{
    mg_residual(&level->grid, &poisson, level->u, v, level->r);
    mg_exchange(&level->grid, level->r);
}

static void smooth(const struct mg *mg, const struct level *level)
{
    mg_smooth(&level->grid, mg->smoother, level->r, level->u);
    mg_exchange(&level->grid, level->u);
}

static void descend(struct mg *mg)
{
    for (unsigned int i = 1; i < mg->level_count; i++) {
        const struct level *fine = &mg->levels[i - 1], *coarse = &mg->levels[i];

        if (coarse->gathered) {
            mg_gather(&fine->grid, fine->r, &coarse->grid, coarse->r, mg->scratch, mg->run);
        } else {
            mg_restrict(&fine->grid, fine->r, &coarse->grid, coarse->r);
            mg_exchange(&coarse->grid, coarse->r);
        }
    }
}

/* One cycle: from the finest grid down to the coarsest and up again. */
static void cycle(struct mg *mg)
{
    const struct level *coarsest = &mg->levels[mg->level_count - 1];

    descend(mg);
    memset(coarsest->u, 0, mg_cells(&coarsest->grid) * sizeof(double));
    smooth(mg, coarsest);
    for (unsigned int i = mg->level_count - 1; i > 0; i--) {
        const struct level *fine = &mg->levels[i - 1], *coarse = &mg->levels[i];

        if (coarse->gathered) {
            mg_extract(&coarse->grid, coarse->u, &fine->grid, fine->u);
            continue;
        }
        mg_prolong(&coarse->grid, coarse->u, &fine->grid, fine->u, i == 1);
        residual(fine, i == 1 ? mg->v : fine->r);
        smooth(mg, fine);
    }
}

NAS_HOT static double norm(const struct mg *mg)
{
    const struct mg_grid *grid = &mg->levels[0].grid;
    double sum = 0, edge = grid->edge;

    for (unsigned int z = 1; z <= grid->n[AXIS_Z]; z++) {
        for (unsigned int y = 1; y <= grid->n[AXIS_Y]; y++) {
            const double *row = mg_row(grid, mg->levels[0].r, y, z);

#pragma omp simd reduction(+ : sum)
            for (unsigned int x = 1; x <= grid->n[AXIS_X]; x++)
                sum += row[x] * row[x];
        }
    }
    comm_allreduce(&sum, 1, MPI_DOUBLE, MPI_COMM_WORLD);
    return sqrt(sum / (edge * edge * edge));
}

static double solve(struct mg *mg, unsigned int iterations)
{
    residual(&mg->levels[0], mg->v);
    norm(mg);
    for (unsigned int i = 0; i < iterations; i++) {
        cycle(mg);
        residual(&mg->levels[0], mg->v);
        run_progress(mg->run, i + 1);
    }
    return norm(mg);
}

static int add_level(struct mg *mg, unsigned int edge, bool whole)
{
    struct level *level = &mg->levels[mg->level_count];

    if (whole)
        mg_grid_whole(&level->grid, edge);
    else if (mg_grid_divide(&level->grid, mg->run, edge))
        return -1;
    level->gathered = mg->level_count && level[-1].grid.edge == edge;
    level->u = run_allocate(mg->run, mg_cells(&level->grid), sizeof(double));
    level->r = run_allocate(mg->run, mg_cells(&level->grid), sizeof(double));
    if (level->gathered)
        mg->scratch = run_allocate(mg->run, 2 * mg_cells(&level->grid), sizeof(double));
    mg->level_count++;
    return !level->u || !level->r || (level->gathered && !mg->scratch) ? -1 : 0;
}

static int prepare(struct mg *mg, const int divided[AXES])
{
    unsigned int parts = divided[AXIS_Z]; /* none is greater */
    bool whole = false;

    for (unsigned int edge = sizes[mg->run->class].edge; edge >= COARSEST_EDGE; edge /= 2) {
        if (add_level(mg, edge, whole))
            return -1;
        /* The next level would leave a rank without a point. */
        if (!whole && edge > COARSEST_EDGE && edge / 2 < parts) {
            whole = true;
            if (add_level(mg, edge, whole))
                return -1;
        }
    }
    mg->v = run_allocate(mg->run, mg_cells(&mg->levels[0].grid), sizeof(double));
    return mg->v ? set_charges(mg) : -1;
}

static int mg_run(struct nas_run *run)
{
    unsigned int edge = sizes[run->class].edge;
    struct mg mg = { .run = run, .smoother = sizes[run->class].smoother };
    int divided[AXES];
    double found;

    mg_divide_ranks(run->ranks, divided);
    if ((unsigned int)divided[AXIS_Z] > edge / 2)
        return run_error(run, "%u points per edge are too few for %d ranks", edge, run->ranks);
    snprintf(run->problem, sizeof(run->problem), "%u x %u x %u points", edge, edge, edge);
    run->iterations = sizes[run->class].iterations;
    run->operations = 58.0 * run->iterations * edge * edge * edge;
    if (prepare(&mg, divided))
        return -1;
    solve(&mg, 1);
    memset(mg.levels[0].u, 0, mg_cells(&mg.levels[0].grid) * sizeof(double));
    run_begin(run);
    found = solve(&mg, run->iterations);
    run_end(run);
    run_check(run, sizes[run->class].norm, found, TOLERANCE, "norm of the residual");
    return 0;
}

const struct nas_kernel nas_mg = { .name = "mg",
                                   .title = "Poisson equation by multigrid",
                                   .run = mg_run };
