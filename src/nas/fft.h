/* SPDX-License-Identifier: BSD-2-Clause */
/* One-dimensional complex transforms, of a power of two of points, of several lines at a time: each
 * line is in one lane of the processor's vectors. */
#ifndef NAS_FFT_H
#define NAS_FFT_H

#include "run.h"

#include <complex.h>

#define FFT_LANES 16

struct fft {
    unsigned int n;
    double *twiddles; /* of the stages in turn: for each p the powers 1 to 3 of exp(-2 pi i p/n) */
    double *work[2];  /* real parts of n rows of lanes, then imaginary parts */
    bool past_caches; /* non-temporal stores of adjacent lines, not read again soon */
};

enum fft_direction {
    FFT_FORWARD, /* exp(-2 pi i jk/n) */
    FFT_BACKWARD,
};

/* Element i is at i / inner * outer_stride + i % inner * inner_stride. */
struct fft_layout {
    size_t inner, inner_stride, outer_stride;
};

static inline size_t fft_index(const struct fft_layout *layout, unsigned int i)
{
    return i / layout->inner * layout->outer_stride + i % layout->inner * layout->inner_stride;
}

int fft_prepare(struct fft *fft, struct nas_run *run, unsigned int n);

/* The input buffer of a transform that is not in place: point i of a lane is at
 * [i * FFT_LANES + lane]. */
struct fft_input {
    double *re, *im;
};

struct fft_input fft_input(const struct fft *fft, enum fft_direction direction);

/* Transforms that buffer and stores the result. */
void fft_finish(const struct fft *fft, enum fft_direction direction, double complex *first,
                const struct fft_layout *line, const struct fft_layout *lanes);

/* Transforms FFT_LANES lines in place, without scaling. Either the first points of the lines are
 * adjacent, or the points of each line. */
void fft_transform(const struct fft *fft, enum fft_direction direction, double complex *first,
                   const struct fft_layout *line, const struct fft_layout *lanes);

#endif
