/* SPDX-License-Identifier: BSD-2-Clause */
/* The matrix of CG: sparse, symmetric, with known spectrum, made of random vectors. */
#ifndef NAS_CG_MATRIX_H
#define NAS_CG_MATRIX_H

#include "run.h"

/* Rows first_row to end_row, of which only the columns first_column to end_column. */
struct cg_block {
    uint32_t first_row, end_row;
    uint32_t first_column, end_column;
};

#define CG_PANEL 65536 /* columns, so that 16 bits index them */
#define CG_GROUP 8

/* Entries are stored by panels of columns, and within a panel by rows, each padded with zeros to
 * whole groups. Rows count from the first of the block, columns from the first of the panel. */
struct cg_matrix {
    uint32_t rows, panels;
    uint64_t nonzeros; /* without the padding */
    uint64_t *starts;  /* of the rows of the first panel, of the second and so on, and the end */
    uint16_t *columns;
    double *values;
};

/* Makes the part within 'block' of the sum over i of w^i v_i v_i^T, plus (condition - shift) times
 * the identity. w^order is 'condition', and v_i has 'nonzeros' random entries and 0.5 at index i.
 */
struct cg_recipe {
    uint32_t order;
    unsigned int nonzeros;
    double condition, shift;
};

int cg_matrix_make(struct cg_matrix *matrix, struct nas_run *run, const struct cg_recipe *recipe,
                   const struct cg_block *block);

#endif
