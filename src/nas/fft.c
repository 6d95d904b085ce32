/* SPDX-License-Identifier: BSD-2-Clause */
/* Stockham's form of the transform: every stage reads one buffer and writes the other, and the
 * result comes out in order. Stages have radix four, the last one radix two if necessary. */
#include "fft.h"

#include <math.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define LANES FFT_LANES

enum { TWIDDLE_PARTS = 6 }; /* real and imaginary part of three powers */

int fft_prepare(struct fft *fft, struct nas_run *run, unsigned int n)
{
    double *twiddle;

    fft->n = n;
    fft->twiddles = twiddle = run_allocate(run, n * TWIDDLE_PARTS, sizeof(double));
    fft->work[0] = run_allocate(run, 2 * n * LANES, sizeof(double));
    fft->work[1] = run_allocate(run, 2 * n * LANES, sizeof(double));
    if (!fft->twiddles || !fft->work[0] || !fft->work[1])
        return -1;
    for (unsigned int rest = n; rest >= 4; rest /= 4) {
        for (unsigned int p = 0; p < rest / 4; p++) {
            for (unsigned int power = 1; power < 4; power++) {
                double angle = -2 * M_PI * power * p / rest;

                *twiddle++ = cos(angle);
                *twiddle++ = sin(angle);
            }
        }
    }
    return 0;
}

/* One stage: transforms of 'rest' points remain, 'width' / LANES of them side by side. */
static inline __attribute__((always_inline)) void
stage_of_four(unsigned int rest, size_t width, const double *twiddle, const double *restrict re,
              const double *restrict im, double *restrict to_re, double *restrict to_im)
{
    size_t quarter = rest / 4 * width;

    for (unsigned int p = 0; p < rest / 4; p++, twiddle += TWIDDLE_PARTS) {
        double w1r = twiddle[0], w1i = twiddle[1], w2r = twiddle[2], w2i = twiddle[3];
        double w3r = twiddle[4], w3i = twiddle[5];
        const double *r = re + p * width, *i = im + p * width;
        double *tr = to_re + 4 * p * width, *ti = to_im + 4 * p * width;

#pragma omp simd
        for (size_t q = 0; q < width; q++) {
            double ar = r[q], ai = i[q];
            double br = r[q + quarter], bi = i[q + quarter];
            double cr = r[q + 2 * quarter], ci = i[q + 2 * quarter];
            double dr = r[q + 3 * quarter], di = i[q + 3 * quarter];
            double sum_r = ar + cr, sum_i = ai + ci, gap_r = ar - cr, gap_i = ai - ci;
            double other_r = br + dr, other_i = bi + di;
            double turn_r = bi - di, turn_i = dr - br; /* -i (b - d) */
            double x1r = gap_r + turn_r, x1i = gap_i + turn_i;
            double x2r = sum_r - other_r, x2i = sum_i - other_i;
            double x3r = gap_r - turn_r, x3i = gap_i - turn_i;

            tr[q] = sum_r + other_r;
            ti[q] = sum_i + other_i;
            tr[q + width] = x1r * w1r - x1i * w1i;
            ti[q + width] = x1r * w1i + x1i * w1r;
            tr[q + 2 * width] = x2r * w2r - x2i * w2i;
            ti[q + 2 * width] = x2r * w2i + x2i * w2r;
            tr[q + 3 * width] = x3r * w3r - x3i * w3i;
            ti[q + 3 * width] = x3r * w3i + x3i * w3r;
        }
    }
}

static inline __attribute__((always_inline)) void
stage_of_two(size_t width, const double *restrict re, const double *restrict im,
             double *restrict to_re, double *restrict to_im)
{
#pragma omp simd
    for (size_t q = 0; q < width; q++) {
        to_re[q] = re[q] + re[q + width];
        to_im[q] = im[q] + im[q + width];
        to_re[q + width] = re[q] - re[q + width];
        to_im[q + width] = im[q] - im[q + width];
    }
}

/* Transforms work[0]; returns the buffer that holds the result. */
NAS_HOT static int run_stages(const struct fft *fft)
{
    const double *twiddle = fft->twiddles;
    size_t half = (size_t)fft->n * LANES, width = LANES;
    unsigned int rest = fft->n;
    int from = 0;

    for (; rest >= 4; rest /= 4, width *= 4, from = !from) {
        const double *in = fft->work[from];
        double *out = fft->work[!from];

        /* A constant width lets the compiler unroll the loop. */
        if (width == LANES)
            stage_of_four(rest, LANES, twiddle, in, in + half, out, out + half);
        else
            stage_of_four(rest, width, twiddle, in, in + half, out, out + half);
        twiddle += rest / 4 * TWIDDLE_PARTS;
    }
    if (rest == 2) {
        const double *in = fft->work[from];
        double *out = fft->work[!from];

        stage_of_two(width, in, in + half, out, out + half);
        from = !from;
    }
    return from;
}

NAS_HOT static void load_adjacent(const double *restrict from, const struct fft_layout *line,
                                  unsigned int n, double *restrict re, double *restrict im)
{
    for (unsigned int i = 0; i < n; i++) {
        const double *point = from + 2 * fft_index(line, i);

        for (unsigned int lane = 0; lane < LANES; lane++) {
            re[i * LANES + lane] = point[2 * lane];
            im[i * LANES + lane] = point[2 * lane + 1];
        }
    }
}

NAS_HOT static void store_adjacent(double *restrict to, const struct fft_layout *line,
                                   unsigned int n, const double *restrict re,
                                   const double *restrict im)
{
    for (unsigned int i = 0; i < n; i++) {
        double *point = to + 2 * fft_index(line, i);

        for (unsigned int lane = 0; lane < LANES; lane++) {
            point[2 * lane] = re[i * LANES + lane];
            point[2 * lane + 1] = im[i * LANES + lane];
        }
    }
}

/* A non-temporal store: does not read the cache line first. */
static inline void put_past_caches(double *to, double re, double im)
{
#ifdef __SSE2__
    _mm_stream_pd(to, _mm_set_pd(im, re));
#else
    to[0] = re;
    to[1] = im;
#endif
}

/* Non-temporal stores must be visible before other ranks are told about them. */
static inline void end_of_past_caches(void)
{
#ifdef __SSE2__
    _mm_sfence();
#endif
}

NAS_HOT static void stream_adjacent(double *restrict to, const struct fft_layout *line,
                                    unsigned int n, const double *restrict re,
                                    const double *restrict im)
{
    for (unsigned int i = 0; i < n; i++) {
        double *point = to + 2 * fft_index(line, i);

#pragma GCC unroll 16
        for (unsigned int lane = 0; lane < LANES; lane++)
            put_past_caches(point + 2 * lane, re[i * LANES + lane], im[i * LANES + lane]);
    }
    end_of_past_caches();
}

/* Points of a line are adjacent: blocks of LANES x LANES points are transposed. */
NAS_HOT static void load_rows(const double *restrict from, const struct fft_layout *lanes,
                              unsigned int n, double *restrict re, double *restrict im)
{
    for (unsigned int i = 0; i < n; i += LANES) {
        for (unsigned int lane = 0; lane < LANES; lane++) {
            const double *point = from + 2 * (fft_index(lanes, lane) + i);

            for (unsigned int k = 0; k < LANES; k++) {
                re[(i + k) * LANES + lane] = point[2 * k];
                im[(i + k) * LANES + lane] = point[2 * k + 1];
            }
        }
    }
}

NAS_HOT static void store_rows(double *restrict to, const struct fft_layout *lanes, unsigned int n,
                               const double *restrict re, const double *restrict im)
{
    for (unsigned int i = 0; i < n; i += LANES) {
        for (unsigned int lane = 0; lane < LANES; lane++) {
            double *point = to + 2 * (fft_index(lanes, lane) + i);

            for (unsigned int k = 0; k < LANES; k++) {
                point[2 * k] = re[(i + k) * LANES + lane];
                point[2 * k + 1] = im[(i + k) * LANES + lane];
            }
        }
    }
}

/* Swapping real and imaginary parts before and after turns forward into backward. */
static size_t real_start(const struct fft *fft, enum fft_direction direction)
{
    return direction == FFT_FORWARD ? 0 : (size_t)fft->n * LANES;
}

static size_t imaginary_start(const struct fft *fft, enum fft_direction direction)
{
    return direction == FFT_FORWARD ? (size_t)fft->n * LANES : 0;
}

struct fft_input fft_input(const struct fft *fft, enum fft_direction direction)
{
    return (struct fft_input){ fft->work[0] + real_start(fft, direction),
                               fft->work[0] + imaginary_start(fft, direction) };
}

void fft_finish(const struct fft *fft, enum fft_direction direction, double complex *first,
                const struct fft_layout *line, const struct fft_layout *lanes)
{
    const double *done = fft->work[run_stages(fft)];
    const double *re = done + real_start(fft, direction);
    const double *im = done + imaginary_start(fft, direction);

    if (lanes->inner_stride == 1 && fft->past_caches)
        stream_adjacent((double *)first, line, fft->n, re, im);
    else if (lanes->inner_stride == 1)
        store_adjacent((double *)first, line, fft->n, re, im);
    else
        store_rows((double *)first, lanes, fft->n, re, im);
    nas_work(WORK_POINTS_TRANSFORMED, (uint64_t)fft->n * LANES * log2_of(fft->n));
}

void fft_transform(const struct fft *fft, enum fft_direction direction, double complex *first,
                   const struct fft_layout *line, const struct fft_layout *lanes)
{
    struct fft_input input = fft_input(fft, direction);

    if (lanes->inner_stride == 1)
        load_adjacent((double *)first, line, fft->n, input.re, input.im);
    else
        load_rows((double *)first, lanes, fft->n, input.re, input.im);
    fft_finish(fft, direction, first, line, lanes);
}
