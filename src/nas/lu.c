/* SPDX-License-Identifier: BSD-2-Clause */
#include "lu.h"

#include <stdio.h>

#define TOLERANCE 1e-8

static const struct {
    int edge;
    unsigned int iterations;
    double dt;
    double residual[LU_COMPONENTS], error[LU_COMPONENTS], integral;
} sizes[NAS_CLASSES] = {
    [CLASS_S] = { 12,
                  50,
                  0.5,
                  { 1.6196343210976702e-02, 2.1976745164821318e-03, 1.5179927653399185e-03,
                    1.5029584435994323e-03, 3.4264073155896461e-02 },
                  { 6.4223319957960924e-04, 8.4144342047347926e-05, 5.8588269616485186e-05,
                    5.8474222595157350e-05, 1.3103347914111294e-03 },
                  7.8418928865937083e+00 },
    [CLASS_W] = { 33,
                  300,
                  1.5e-3,
                  { 0.1236511638192e+02, 0.1317228477799e+01, 0.2550120713095e+01,
                    0.2326187750252e+01, 0.2826799444189e+02 },
                  { 0.4867877144216e+00, 0.5064652880982e-01, 0.9281818101960e-01,
                    0.8570126542733e-01, 0.1084277417792e+01 },
                  0.1161399311023e+02 },
    [CLASS_A] = { 64,
                  250,
                  2,
                  { 7.7902107606689367e+02, 6.3402765259692870e+01, 1.9499249727292479e+02,
                    1.7845301160418537e+02, 1.8384760349464247e+03 },
                  { 2.9964085685471943e+01, 2.8194576365003349e+00, 7.3473412698774742e+00,
                    6.7139225687777051e+00, 7.0715315688392578e+01 },
                  2.6030925604886277e+01 },
    [CLASS_B] = { 102,
                  250,
                  2,
                  { 3.5532672969982736e+03, 2.6214750795310692e+02, 8.8333721850952190e+02,
                    7.7812774739425265e+02, 7.3087969592545314e+03 },
                  { 1.1401176380212709e+02, 8.1098963655421574e+00, 2.8480597317698308e+01,
                    2.5905394567832939e+01, 2.6054907504857413e+02 },
                  4.7887162703308227e+01 },
    [CLASS_C] = { 162,
                  250,
                  2,
                  { 1.03766980323537846e+04, 8.92212458801008552e+02, 2.56238814582660871e+03,
                    2.19194343857831427e+03, 1.78078057261061185e+04 },
                  { 2.15986399716949279e+02, 1.55789559239863600e+01, 5.41318863077207766e+01,
                    4.82262643154045421e+01, 4.55902910043250358e+02 },
                  6.66404553572181300e+01 },
};

/* Of points begin to end of the cube, those not on its boundary, counted from 'begin'. */
static void inner_range(int begin, int end, int edge, int *inner_begin, int *inner_end)
{
    *inner_begin = begin ? 0 : 1;
    *inner_end = end - begin - (end == edge);
}

static void lay_out(struct lu *lu, int ranks_x, int ranks_y)
{
    int rank = lu->run->rank, at_x = rank % ranks_x, at_y = rank / ranks_x;
    int end_x = lu->edge * (at_x + 1) / ranks_x, end_y = lu->edge * (at_y + 1) / ranks_y;

    lu->first_x = lu->edge * at_x / ranks_x;
    lu->first_y = lu->edge * at_y / ranks_y;
    lu->nx = end_x - lu->first_x;
    lu->ny = end_y - lu->first_y;
    inner_range(lu->first_x, end_x, lu->edge, &lu->begin_x, &lu->end_x);
    inner_range(lu->first_y, end_y, lu->edge, &lu->begin_y, &lu->end_y);
    inner_range(0, lu->edge, lu->edge, &lu->begin_z, &lu->end_z);
    lu->west = at_x ? rank - 1 : MPI_PROC_NULL;
    lu->east = at_x + 1 < ranks_x ? rank + 1 : MPI_PROC_NULL;
    lu->south = at_y ? rank - ranks_x : MPI_PROC_NULL;
    lu->north = at_y + 1 < ranks_y ? rank + ranks_x : MPI_PROC_NULL;
    /* A boundary needs one row; a neighbour's layers get a block of their own, so that they do not
     * add to the blocks that are computed. */
    lu->below = lu->south == MPI_PROC_NULL ? 1 : LU_LANES;
    lu->first_block = lu->below / LU_LANES;
    lu->last_block = lu_row(lu, lu->end_y - 1) / LU_LANES;
    lu->blocks =
        lu_row(lu, lu->end_y - 1 + (lu->north == MPI_PROC_NULL ? 1 : LU_GHOSTS)) / LU_LANES + 1;
    lu->slots = lu->nx + 2 * LU_GHOSTS + LU_LANES - 1;
    for (int y = lu->begin_y; y < lu->end_y; y++)
        lu->inner_y[lu_row(lu, y)] = -1;
    for (int x = lu->begin_x; x < lu->end_x; x++)
        lu->inner_x[lu_backwards(lu, x)] = -1;
}

static int prepare(struct lu *lu)
{
    struct lu_slot **arrays[] = { &lu->u, &lu->r, &lu->force };
    int longer = lu->nx > lu->ny ? lu->nx : lu->ny;
    size_t face = (size_t)LU_GHOSTS * longer * lu->edge * LU_COMPONENTS;

    for (unsigned int i = 0; i < sizeof(arrays) / sizeof(*arrays); i++) {
        *arrays[i] = run_allocate(lu->run, lu_size(lu), sizeof(struct lu_slot));
        if (!*arrays[i])
            return -1;
    }
    for (unsigned int i = 0; i < sizeof(lu->faces) / sizeof(*lu->faces); i++) {
        lu->faces[i] = run_allocate(lu->run, face, sizeof(double));
        if (!lu->faces[i])
            return -1;
    }
    return 0;
}

static void iterate(struct lu *lu, unsigned int iterations)
{
    for (unsigned int i = 0; i < iterations; i++) {
        lu_sweep(lu);
        lu_residual(lu);
        run_progress(lu->run, i + 1);
    }
}

static void verify(struct lu *lu, const double residual[LU_COMPONENTS])
{
    struct nas_run *run = lu->run;
    double error[LU_COMPONENTS], integral = lu_surface_integral(lu);

    lu_error(lu, error);
    for (int m = 0; m < LU_COMPONENTS; m++)
        run_check(run, sizes[run->class].residual[m], residual[m], TOLERANCE, "residual %d", m + 1);
    for (int m = 0; m < LU_COMPONENTS; m++)
        run_check(run, sizes[run->class].error[m], error[m], TOLERANCE, "error %d", m + 1);
    run_check(run, sizes[run->class].integral, integral, TOLERANCE, "surface integral");
}

/* As NPB counts them. */
static double operations(double edge, double iterations)
{
    return iterations *
           (1984.77 * edge * edge * edge - 10923.3 * edge * edge + 27770.9 * edge - 144010);
}

static int lu_run(struct nas_run *run)
{
    int edge = sizes[run->class].edge;
    unsigned int bits = log2_of(run->ranks);
    int ranks_x = 1 << bits / 2, ranks_y = 1 << (bits + 1) / 2;
    double residual[LU_COMPONENTS];
    struct lu lu = {
        .run = run,
        .edge = edge,
        .dt = sizes[run->class].dt,
        .t1 = (edge - 1.0) * (edge - 1.0),
        .t2 = (edge - 1.0) / 2,
    };

    if (edge / ranks_y < LU_GHOSTS)
        return run_error(run, "%d points per edge are too few for %d ranks", edge, run->ranks);
    snprintf(run->problem, sizeof(run->problem), "%d x %d x %d points", edge, edge, edge);
    run->iterations = sizes[run->class].iterations;
    run->operations = operations(edge, run->iterations);
    lay_out(&lu, ranks_x, ranks_y);
    if (prepare(&lu))
        return -1;
    lu_set_force(&lu);
    lu_set_state(&lu);
    lu_residual(&lu);
    iterate(&lu, 1);
    lu_set_state(&lu);
    lu_residual(&lu);
    run_begin(run);
    iterate(&lu, run->iterations);
    lu_norm(&lu, lu.r, residual);
    run_end(run);
    verify(&lu, residual);
    return 0;
}

const struct nas_kernel nas_lu = { .name = "lu",
                                   .title = "Navier-Stokes equations by over-relaxation",
                                   .run = lu_run };
