/* SPDX-License-Identifier: BSD-2-Clause */
/* FT: solves a diffusion equation on a periodic box by three-dimensional transforms.
 *
 * In space a rank holds whole planes of constant z, divided into blocks: block b has the rows y
 * that rank b owns after the exchange. Exchanging the blocks gives each rank whole columns in z of
 * its own rows, without moving anything within a rank:
 *
 *     space       [block][z of this rank][y of the block][x]
 *     frequency          [z]             [y of this rank][x]   */
#include "fft.h"
#include "random.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ALPHA      1e-6
#define SUMMANDS   1024
#define TOLERANCE  1e-12
#define ITERATIONS 20 /* at most */

struct ft_size {
    unsigned int nx, ny, nz, iterations;
};

static const struct ft_size sizes[NAS_CLASSES] = {
    [CLASS_S] = { 64, 64, 64, 6 },     [CLASS_W] = { 128, 128, 32, 6 },
    [CLASS_A] = { 256, 256, 128, 6 },  [CLASS_B] = { 512, 256, 256, 20 },
    [CLASS_C] = { 512, 512, 512, 20 },
};

static const double checksums[NAS_CLASSES][ITERATIONS][2] = {
    [CLASS_S] = {
        { 554.6087004964, 484.5363331978 },
        { 554.6385409189, 486.5304269511 },
        { 554.6148406171, 488.3910722336 },
        { 554.5423607415, 490.1273169046 },
        { 554.4255039624, 491.7475857993 },
        { 554.2683411902, 493.2597244941 },
    },
    [CLASS_W] = {
        { 567.3612178944, 529.3246849175 },
        { 563.1436885271, 528.2149986629 },
        { 559.4024089970, 527.0996558037 },
        { 556.0698047020, 526.0027904925 },
        { 553.0898991250, 524.9400845633 },
        { 550.4159734538, 523.9212247086 },
    },
    [CLASS_A] = {
        { 504.6735008193, 511.4047905510 },
        { 505.9412319734, 509.8809666433 },
        { 506.9376896287, 509.8144042213 },
        { 507.7892868474, 510.1336130759 },
        { 508.5233095391, 510.4914655194 },
        { 509.1487099959, 510.7917842803 },
    },
    [CLASS_B] = {
        { 517.7643571579, 507.7803458597 },
        { 515.4521291263, 508.8249431599 },
        { 514.6409228649, 509.6208912659 },
        { 514.2378756213, 510.1023387619 },
        { 513.9626667737, 510.3976610617 },
        { 513.7423460082, 510.5948019802 },
        { 513.5547056878, 510.7404165783 },
        { 513.3910925466, 510.8576573661 },
        { 513.2470705390, 510.9577278523 },
        { 513.1197729984, 511.0460304483 },
        { 513.0070319283, 511.1252433800 },
        { 512.9070537032, 511.1968077718 },
        { 512.8182883502, 511.2616233064 },
        { 512.7393733383, 511.3203605551 },
        { 512.6691062020, 511.3735928093 },
        { 512.6064276004, 511.4218460548 },
        { 512.5504076570, 511.4656139760 },
        { 512.5002331720, 511.5053595966 },
        { 512.4551951846, 511.5415130407 },
        { 512.4146770029, 511.5744692211 },
    },
    [CLASS_C] = {
        { 519.5078707457, 514.9019699238 },
        { 515.5422171134, 512.7578201997 },
        { 514.4678022222, 512.2251847514 },
        { 514.0150594328, 512.1090289018 },
        { 513.7550426810, 512.1143685824 },
        { 513.5811056728, 512.1496764568 },
        { 513.4569343165, 512.1870921893 },
        { 513.3651975661, 512.2193250322 },
        { 513.2955192805, 512.2454735794 },
        { 513.2410471738, 512.2663649603 },
        { 513.1971141679, 512.2830879827 },
        { 513.1605205716, 512.2965869718 },
        { 513.1290734194, 512.3075927445 },
        { 513.1012720314, 512.3166486553 },
        { 513.0760908195, 512.3241541685 },
        { 513.0528295923, 512.3304037599 },
        { 513.0310107773, 512.3356167976 },
        { 513.0103090133, 512.3399592211 },
        { 512.9905029333, 512.3435588985 },
        { 512.9714421109, 512.3465164008 },
    },
};

struct ft {
    struct nas_run *run;
    unsigned int nx, ny, nz;
    unsigned int rows, planes;       /* of this rank: rows y in frequency, planes z in space */
    size_t points;                   /* of this rank */
    struct fft_layout rows_of_plane; /* the rows y of a plane in space */
    struct fft along_x, along_y, along_z;
    double *decay_x, *decay_y, *decay_z; /* of the frequencies, in one step of time */
    double complex *spectrum;            /* in frequency, evolving */
    double complex *field, *exchanged;
    double complex sums[ITERATIONS];
};

static void set_decay(double *decay, unsigned int n)
{
    for (unsigned int i = 0; i < n; i++) {
        double frequency = i < n / 2 ? (double)i : (double)i - n;

        decay[i] = exp(-4 * ALPHA * M_PI * M_PI * frequency * frequency);
    }
}

static double complex *plane_of(const struct ft *ft, unsigned int z)
{
    return ft->field + (size_t)z * ft->rows * ft->nx;
}

static void set_field(struct ft *ft)
{
    for (unsigned int z = 0; z < ft->planes; z++) {
        uint64_t plane = ft->run->rank * (uint64_t)ft->planes + z;
        uint64_t x = random_jump(RANDOM_SEED, 2 * plane * ft->ny * ft->nx);

        for (unsigned int y = 0; y < ft->ny; y++) {
            double complex *row = plane_of(ft, z) + fft_index(&ft->rows_of_plane, y);

            for (unsigned int i = 0; i < ft->nx; i++) {
                double re = random_next(&x);

                row[i] = re + random_next(&x) * I;
            }
        }
    }
}

static void transform_along_x(struct ft *ft, enum fft_direction direction, double complex *plane)
{
    struct fft_layout line = { ft->nx, 1, 0 };

    for (unsigned int y = 0; y < ft->ny; y += FFT_LANES)
        fft_transform(&ft->along_x, direction, plane + fft_index(&ft->rows_of_plane, y), &line,
                      &ft->rows_of_plane);
}

static void transform_along_y(struct ft *ft, enum fft_direction direction, double complex *plane)
{
    struct fft_layout lanes = { FFT_LANES, 1, 0 };

    for (unsigned int x = 0; x < ft->nx; x += FFT_LANES)
        fft_transform(&ft->along_y, direction, plane + x, &ft->rows_of_plane, &lanes);
}

static void exchange(struct ft *ft)
{
    double complex *given = ft->field;

    /* With a single rank the two orders are the same. */
    if (ft->run->ranks == 1)
        return;
    comm_alltoall(given, 2 * (ft->points / ft->run->ranks), MPI_DOUBLE, ft->exchanged,
                  MPI_COMM_WORLD);
    ft->field = ft->exchanged;
    ft->exchanged = given;
}

/* Space to frequency; the result becomes the spectrum. */
static void transform_forward(struct ft *ft)
{
    size_t columns = (size_t)ft->rows * ft->nx;
    struct fft_layout line = { ft->nz, columns, 0 }, lanes = { FFT_LANES, 1, 0 };
    double complex *free_space = ft->spectrum;

    for (unsigned int z = 0; z < ft->planes; z++) {
        transform_along_x(ft, FFT_FORWARD, plane_of(ft, z));
        transform_along_y(ft, FFT_FORWARD, plane_of(ft, z));
    }
    exchange(ft);
    for (size_t column = 0; column < columns; column += FFT_LANES)
        fft_transform(&ft->along_z, FFT_FORWARD, ft->field + column, &line, &lanes);
    ft->spectrum = ft->field;
    ft->field = free_space;
}

/* One time step on FFT_LANES columns, which become the input of the transform along z. */
NAS_HOT static void evolve_columns(const struct ft *ft, size_t column, struct fft_input input)
{
    size_t columns = (size_t)ft->rows * ft->nx;
    double of_y = ft->decay_y[ft->run->rank * ft->rows + column / ft->nx];
    const double *decay_x = ft->decay_x + column % ft->nx, *decay_z = ft->decay_z;
    double decay[FFT_LANES], *restrict re = input.re, *restrict im = input.im;

    for (unsigned int lane = 0; lane < FFT_LANES; lane++)
        decay[lane] = of_y * decay_x[lane];
    for (unsigned int z = 0; z < ft->nz; z++) {
        double *restrict point = (double *)(ft->spectrum + z * columns + column);

        for (unsigned int lane = 0; lane < FFT_LANES; lane++) {
            double factor = decay[lane] * decay_z[z];

            re[z * FFT_LANES + lane] = point[2 * lane] *= factor;
            im[z * FFT_LANES + lane] = point[2 * lane + 1] *= factor;
        }
    }
}

/* A time step in frequency, and back to space. One direction follows the other while its points are
 * in the cache. */
static void evolve_backward(struct ft *ft)
{
    size_t columns = (size_t)ft->rows * ft->nx;
    struct fft_layout line = { ft->nz, columns, 0 }, lanes = { FFT_LANES, 1, 0 };

    for (size_t column = 0; column < columns; column += FFT_LANES) {
        evolve_columns(ft, column, fft_input(&ft->along_z, FFT_BACKWARD));
        fft_finish(&ft->along_z, FFT_BACKWARD, ft->field + column, &line, &lanes);
    }
    nas_work(WORK_POINTS_EVOLVED, ft->points);
    exchange(ft);
    for (unsigned int z = 0; z < ft->planes; z++) {
        transform_along_y(ft, FFT_BACKWARD, plane_of(ft, z));
        transform_along_x(ft, FFT_BACKWARD, plane_of(ft, z));
    }
}

static double complex checksum(const struct ft *ft)
{
    double complex sum = 0;
    double total = (double)ft->nx * ft->ny * ft->nz;

    for (unsigned int j = 1; j <= SUMMANDS; j++) {
        unsigned int x = j % ft->nx, y = 3 * j % ft->ny, z = 5 * j % ft->nz;

        if (z / ft->planes == (unsigned int)ft->run->rank)
            sum += plane_of(ft, z % ft->planes)[fft_index(&ft->rows_of_plane, y) + x];
    }
    sum /= total;
    comm_reduce(0, &sum, 2, MPI_DOUBLE, MPI_COMM_WORLD);
    return sum;
}

static void solve(struct ft *ft, unsigned int iterations)
{
    set_decay(ft->decay_x, ft->nx);
    set_decay(ft->decay_y, ft->ny);
    set_decay(ft->decay_z, ft->nz);
    set_field(ft);
    transform_forward(ft);
    for (unsigned int i = 0; i < iterations; i++) {
        evolve_backward(ft);
        ft->sums[i] = checksum(ft);
        run_progress(ft->run, i + 1);
    }
}

static void verify(const struct ft *ft)
{
    for (unsigned int i = 0; i < ft->run->iterations; i++) {
        const double *official = checksums[ft->run->class][i];

        run_check(ft->run, official[0], creal(ft->sums[i]), TOLERANCE, "checksum %u, real", i + 1);
        run_check(ft->run, official[1], cimag(ft->sums[i]), TOLERANCE, "checksum %u, imaginary",
                  i + 1);
    }
}

static int prepare(struct ft *ft)
{
    struct nas_run *run = ft->run;

    /* Data written along z have left the caches before they are read again. */
    ft->along_z.past_caches = true;
    ft->rows = ft->ny / run->ranks;
    ft->planes = ft->nz / run->ranks;
    ft->points = (size_t)ft->nx * ft->ny * ft->planes;
    ft->rows_of_plane = (struct fft_layout){ ft->rows, ft->nx, ft->points / run->ranks };
    ft->decay_x = run_allocate(run, ft->nx, sizeof(double));
    ft->decay_y = run_allocate(run, ft->ny, sizeof(double));
    ft->decay_z = run_allocate(run, ft->nz, sizeof(double));
    ft->spectrum = run_allocate(run, ft->points, sizeof(*ft->spectrum));
    ft->field = run_allocate(run, ft->points, sizeof(*ft->field));
    if (!ft->decay_x || !ft->decay_y || !ft->decay_z || !ft->spectrum || !ft->field)
        return -1;
    if (run->ranks > 1) {
        ft->exchanged = run_allocate(run, ft->points, sizeof(*ft->exchanged));
        if (!ft->exchanged)
            return -1;
    }
    return fft_prepare(&ft->along_x, run, ft->nx) || fft_prepare(&ft->along_y, run, ft->ny) ||
           fft_prepare(&ft->along_z, run, ft->nz);
}

/* As NPB counts them, which is somewhat less than the arithmetic done. */
static double operations(const struct ft_size *size)
{
    double points = (double)size->nx * size->ny * size->nz;

    return points *
           (14.8157 + 7.19641 * log(points) + (5.23518 + 7.21113 * log(points)) * size->iterations);
}

static int ft_run(struct nas_run *run)
{
    const struct ft_size *size = &sizes[run->class];
    struct ft ft = { .run = run, .nx = size->nx, .ny = size->ny, .nz = size->nz };
    unsigned int most = size->ny < size->nz ? size->ny : size->nz;

    if ((unsigned int)run->ranks > most)
        return run_error(run, "%u planes support at most as many ranks, not %d", most, run->ranks);
    snprintf(run->problem, sizeof(run->problem), "%u x %u x %u points", size->nx, size->ny,
             size->nz);
    run->iterations = size->iterations;
    run->operations = operations(size);
    if (prepare(&ft))
        return -1;
    solve(&ft, 1);
    run_begin(run);
    solve(&ft, size->iterations);
    run_end(run);
    verify(&ft);
    return 0;
}

const struct nas_kernel nas_ft = { .name = "ft",
                                   .title = "diffusion by 3-D Fourier transforms",
                                   .run = ft_run };
