/* Work is counted where it is done, in units that a processor takes about the same time for. In
 * virtual time it is what computing costs: the adapter file has the speed of a kernel ("nas.is"). The
 * kernels know nothing of what is made of the counts. */
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

/* Once, before any work: finds the speed of the kernel. */
void nas_work_begin(const char *kernel);

void nas_work(enum work_kind kind, uint64_t amount);

/* So many accesses at random to a table of that size: what they take where it is too large for the
 * processor to have all of it at hand. */
void nas_work_at_random(uint64_t accesses, uint64_t bytes);

/* Lets the time of what was counted pass; to be called before the time is taken and before anything
 * is sent or waited for. */
void nas_work_charge(void);

/* Forgets what was counted. */
void nas_work_clear(void);
void nas_work_totals(uint64_t totals[WORK_KINDS]);

const char *nas_work_name(enum work_kind kind);

#endif
