/* SPDX-License-Identifier: BSD-2-Clause */
/* CG: the smallest eigenvalue of a sparse matrix by inverse iteration with conjugate gradients.
 *
 * Ranks form a grid with as many columns as rows, or twice as many. A rank has one block of the
 * matrix. Vectors are divided like the matrix's columns: all ranks in a column of the grid have the
 * same part. A product is summed along the row of the grid; a swap with one other rank then returns
 * the part that belongs to the column. */
#include "cg_matrix.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define STEPS      25
#define CONDITION  0.1
#define TOLERANCE  1e-10
#define NEAR_AHEAD 192 /* nonzeros */
#define FAR_AHEAD  1024

static const struct {
    uint32_t order;
    unsigned int nonzeros, iterations;
    double shift;
    double zeta;
} sizes[NAS_CLASSES] = {
    [CLASS_S] = { 1400, 7, 15, 10, 8.5971775078648 },
    [CLASS_W] = { 7000, 8, 15, 12, 10.362595087124 },
    [CLASS_A] = { 14000, 11, 15, 20, 17.130235054029 },
    [CLASS_B] = { 75000, 13, 75, 60, 22.712745482631 },
    [CLASS_C] = { 150000, 15, 75, 110, 28.973605592845 },
};

enum { TAG_SUM, TAG_SWAP };

struct cg {
    struct nas_run *run;
    uint32_t order;
    int grid_rows, grid_columns;
    int ratio; /* of grid columns to rows: one or two */
    int row, column;
    struct cg_block block;
    struct cg_matrix matrix;
    uint32_t rows, length; /* of the block, of this rank's part of a vector */
    /* the part of a product that the partner of the swap needs, in this rank's rows */
    uint32_t wanted_start, wanted_length;
    int partner;
    double *x, *z, *p, *q, *r;
    double *product, *incoming; /* of the block's rows */
};

static int rank_at(const struct cg *cg, int row, int column)
{
    return row * cg->grid_columns + column;
}

/* Sends and receives at the same time. */
static void trade(const double *out, uint32_t out_length, double *in, uint32_t in_length,
                  int partner, int tag)
{
    MPI_Request request;

    comm_irecv(in, in_length, MPI_DOUBLE, partner, tag, MPI_COMM_WORLD, &request);
    comm_send(out, out_length, MPI_DOUBLE, partner, tag, MPI_COMM_WORLD);
    comm_waitall(&request, 1);
}

/* Sums along the row of the grid, over columns that differ from this one in bits from 'lowest' up.
 */
static void sum_row(struct cg *cg, double *data, uint32_t length, int lowest)
{
    for (int bit = lowest; bit < cg->grid_columns; bit *= 2) {
        trade(data, length, cg->incoming, length, rank_at(cg, cg->row, cg->column ^ bit), TAG_SUM);
        for (uint32_t i = 0; i < length; i++)
            data[i] += cg->incoming[i];
    }
}

/* With twice as many grid columns as rows, neighbours first exchange halves. */
static void halve(struct cg *cg)
{
    uint32_t other = cg->rows - cg->wanted_length;
    uint32_t other_start = cg->wanted_start ? 0 : cg->wanted_length;

    trade(cg->product + other_start, other, cg->incoming, cg->wanted_length,
          rank_at(cg, cg->row, cg->column ^ 1), TAG_SUM);
    for (uint32_t i = 0; i < cg->wanted_length; i++)
        cg->product[cg->wanted_start + i] += cg->incoming[i];
}

/* Prefetches the matrix at two distances, into the L2 and into the L1 cache: the hardware
 * prefetcher, busy with elements of the vector, does too little. */
static inline void ask_ahead(const uint16_t *columns, const double *values)
{
    __builtin_prefetch(values + NEAR_AHEAD);
    __builtin_prefetch(columns + NEAR_AHEAD);
    __builtin_prefetch(values + FAR_AHEAD, 0, 2);
    __builtin_prefetch(columns + FAR_AHEAD, 0, 2);
}

/* Adds the product with one panel. Sums are kept apart so that they do not wait for one another.
 * Fetching elements one by one is as fast as the processor's gather instructions. */
static void multiply_panel(const struct cg_matrix *matrix, const uint64_t *starts,
                           const double *restrict vector, double *restrict product)
{
    const uint16_t *columns = matrix->columns;
    const double *values = matrix->values;
    uint64_t i = starts[0];

    for (uint32_t row = 0; row < matrix->rows; row++) {
        double a = product[row], b = 0, c = 0, d = 0;

        for (uint64_t end = starts[row + 1]; i < end; i += CG_GROUP) {
            ask_ahead(columns + i, values + i);
#pragma GCC unroll 2
            for (uint64_t k = i; k < i + CG_GROUP; k += 4) {
                a += values[k] * vector[columns[k]];
                b += values[k + 1] * vector[columns[k + 1]];
                c += values[k + 2] * vector[columns[k + 2]];
                d += values[k + 3] * vector[columns[k + 3]];
            }
        }
        product[row] = (a + b) + (c + d);
    }
}

static void multiply_block(const struct cg_matrix *matrix, const double *vector, double *product)
{
    memset(product, 0, matrix->rows * sizeof(*product));
    for (uint32_t panel = 0; panel < matrix->panels; panel++)
        multiply_panel(matrix, matrix->starts + (size_t)panel * matrix->rows,
                       vector + (size_t)panel * CG_PANEL, product);
}

static void multiply(struct cg *cg, const double *vector, double *result)
{
    multiply_block(&cg->matrix, vector, cg->product);
    nas_work(WORK_NONZEROS_MULTIPLIED, cg->matrix.nonzeros);
    if (cg->ratio == 2)
        halve(cg);
    sum_row(cg, cg->product + cg->wanted_start, cg->wanted_length, cg->ratio);
    if (cg->partner == cg->run->rank)
        memcpy(result, cg->product + cg->wanted_start, cg->length * sizeof(*result));
    else
        trade(cg->product + cg->wanted_start, cg->wanted_length, result, cg->length, cg->partner,
              TAG_SWAP);
}

NAS_HOT static double dot_part(const double *restrict a, const double *restrict b, uint32_t length)
{
    double sum = 0;

#pragma omp simd reduction(+ : sum)
    for (uint32_t i = 0; i < length; i++)
        sum += a[i] * b[i];
    return sum;
}

static double dot(struct cg *cg, const double *a, const double *b)
{
    double sum = dot_part(a, b, cg->length);

    nas_work(WORK_ELEMENTS_UPDATED, cg->length);
    sum_row(cg, &sum, 1, 1);
    return sum;
}

/* to = a + factor * b */
NAS_HOT static void combine_parts(double *to, const double *a, double factor, const double *b,
                                  uint32_t length)
{
    for (uint32_t i = 0; i < length; i++)
        to[i] = a[i] + factor * b[i];
}

static void combine(struct cg *cg, double *to, const double *a, double factor, const double *b)
{
    combine_parts(to, a, factor, b, cg->length);
    nas_work(WORK_ELEMENTS_UPDATED, cg->length);
}

/* Solves A z = x by a fixed number of steps; returns |x - A z|. */
static double solve(struct cg *cg)
{
    size_t bytes = cg->length * sizeof(double);
    double rho;

    memset(cg->z, 0, bytes);
    memcpy(cg->r, cg->x, bytes);
    memcpy(cg->p, cg->x, bytes);
    rho = dot(cg, cg->r, cg->r);
    for (unsigned int step = 0; step < STEPS; step++) {
        double alpha, before = rho;

        multiply(cg, cg->p, cg->q);
        alpha = rho / dot(cg, cg->p, cg->q);
        combine(cg, cg->z, cg->z, alpha, cg->p);
        combine(cg, cg->r, cg->r, -alpha, cg->q);
        rho = dot(cg, cg->r, cg->r);
        combine(cg, cg->p, cg->r, rho / before, cg->p);
    }
    multiply(cg, cg->z, cg->r);
    combine(cg, cg->r, cg->x, -1, cg->r);
    return sqrt(dot(cg, cg->r, cg->r));
}

/* One step of inverse iteration; returns the estimate of the eigenvalue. */
static double iterate(struct cg *cg, double *residual)
{
    double product, scale;

    *residual = solve(cg);
    product = dot(cg, cg->x, cg->z);
    scale = 1 / sqrt(dot(cg, cg->z, cg->z));
    for (uint32_t i = 0; i < cg->length; i++)
        cg->x[i] = scale * cg->z[i];
    nas_work(WORK_ELEMENTS_UPDATED, cg->length);
    return sizes[cg->run->class].shift + 1 / product;
}

static void set_ones(struct cg *cg)
{
    for (uint32_t i = 0; i < cg->length; i++)
        cg->x[i] = 1;
}

/* Where part i of n begins. Parts of the rows are one or two parts of the columns. */
static uint32_t part_start(uint32_t order, int i, int n)
{
    return (uint64_t)order * i / n;
}

static void lay_out(struct cg *cg)
{
    unsigned int bits = log2_of(cg->run->ranks);
    int wanted;

    cg->grid_rows = 1 << bits / 2;
    cg->grid_columns = 1 << (bits + 1) / 2;
    cg->ratio = cg->grid_columns / cg->grid_rows;
    cg->row = cg->run->rank / cg->grid_columns;
    cg->column = cg->run->rank % cg->grid_columns;
    cg->block = (struct cg_block){
        .first_row = part_start(cg->order, cg->row, cg->grid_rows),
        .end_row = part_start(cg->order, cg->row + 1, cg->grid_rows),
        .first_column = part_start(cg->order, cg->column, cg->grid_columns),
        .end_column = part_start(cg->order, cg->column + 1, cg->grid_columns),
    };
    cg->rows = cg->block.end_row - cg->block.first_row;
    cg->length = cg->block.end_column - cg->block.first_column;
    /* The mapping is its own inverse: partners swap. */
    wanted = cg->row * cg->ratio + cg->column % cg->ratio;
    cg->partner = rank_at(cg, cg->column / cg->ratio, wanted);
    cg->wanted_start = part_start(cg->order, wanted, cg->grid_columns) - cg->block.first_row;
    cg->wanted_length = part_start(cg->order, wanted + 1, cg->grid_columns) -
                        part_start(cg->order, wanted, cg->grid_columns);
}

static int prepare(struct cg *cg)
{
    struct nas_run *run = cg->run;
    struct cg_recipe recipe = { cg->order, sizes[run->class].nonzeros, CONDITION,
                                sizes[run->class].shift };
    double **vectors[] = { &cg->x, &cg->z, &cg->p, &cg->q, &cg->r };

    lay_out(cg);
    for (unsigned int i = 0; i < sizeof(vectors) / sizeof(*vectors); i++) {
        *vectors[i] = run_allocate(run, cg->length, sizeof(double));
        if (!*vectors[i])
            return -1;
    }
    cg->product = run_allocate(run, cg->rows, sizeof(double));
    cg->incoming = run_allocate(run, cg->rows, sizeof(double));
    if (!cg->product || !cg->incoming)
        return -1;
    return cg_matrix_make(&cg->matrix, run, &recipe, &cg->block);
}

static double operations(const struct nas_run *run)
{
    double order = sizes[run->class].order, nonzeros = sizes[run->class].nonzeros;
    double entries = nonzeros * (nonzeros + 1);

    return 2 * run->iterations * order * (3 + entries + STEPS * (5 + entries) + 3);
}

static int cg_run(struct nas_run *run)
{
    struct cg cg = { .run = run, .order = sizes[run->class].order };
    double zeta = 0, residual;

    if ((uint32_t)run->ranks > cg.order)
        return run_error(run, "%u rows support at most as many ranks, not %d", cg.order,
                         run->ranks);
    run->iterations = sizes[run->class].iterations;
    run->operations = operations(run);
    snprintf(run->problem, sizeof(run->problem), "order %u, %u nonzeros a vector", cg.order,
             sizes[run->class].nonzeros);
    if (prepare(&cg))
        return -1;
    set_ones(&cg);
    iterate(&cg, &residual);
    set_ones(&cg);
    run_begin(run);
    for (unsigned int i = 0; i < run->iterations; i++) {
        zeta = iterate(&cg, &residual);
        run_progress(run, i + 1);
    }
    run_end(run);
    run_check(run, sizes[run->class].zeta, zeta, TOLERANCE, "zeta");
    return 0;
}

const struct nas_kernel nas_cg = { .name = "cg",
                                   .title = "smallest eigenvalue by conjugate gradients",
                                   .run = cg_run };
