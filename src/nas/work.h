/* SPDX-License-Identifier: BSD-2-Clause */
/* Kernels count their work in units that each take a processor about the same time. In virtual time
 * the counts are the cost of computation: the adapter file has the speed of each kernel
 * ("nas.is"). */
#ifndef NAS_WORK_H
#define NAS_WORK_H

#include <stdint.h>

enum work_kind {
    WORK_KEYS_BUCKETED,       /* IS: put into the bucket of its upper bits */
    WORK_KEYS_RANKED,         /* IS: counted */
    WORK_POINTS_TRANSFORMED,  /* FT: one point, one of the log2(n) halvings of a transform */
    WORK_POINTS_EVOLVED,      /* FT: one point multiplied by its factor */
    WORK_NONZEROS_MULTIPLIED, /* CG: one entry of the matrix */
    WORK_ELEMENTS_UPDATED,    /* CG: one element in one update or product of vectors */
    WORK_POINTS_STENCILLED,   /* MG: one point of a residual or of a smoothing */
    WORK_POINTS_RESTRICTED,   /* MG: one point of the finer grid */
    WORK_POINTS_PROLONGED,    /* MG: one point of the finer grid */
    WORK_POINTS_SWEPT,        /* LU: one point of a lower or upper sweep */
    WORK_POINTS_BALANCED,     /* LU: one point of a right-hand side */
    WORK_KINDS,
};

/* Called once, before any work: looks up the speed of the kernel. */
void nas_work_begin(const char *kernel);

void nas_work(enum work_kind kind, uint64_t amount);

/* Lets virtual time pass for the work counted so far. Called before reading the clock and before
 * each MPI call. */
void nas_work_charge(void);

/* Resets all counts. */
void nas_work_clear(void);
void nas_work_totals(uint64_t totals[WORK_KINDS]);

const char *nas_work_name(enum work_kind kind);

#endif
