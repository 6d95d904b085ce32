/* SPDX-License-Identifier: BSD-2-Clause */
/* The four operators between and on the grids of MG. The caller updates the layer around the
 * result, except after mg_prolong(), which fills it. */
#ifndef NAS_MG_OPERATORS_H
#define NAS_MG_OPERATORS_H

#include "mg_grid.h"

/* Weights of a point's neighbours, by how many directions they differ in. */
struct mg_weights {
    double centre, face, edge, corner;
};

#define MG_EDGE_MAX 1024

/* r = v - A u; r may be v. The weight of faces is assumed to be zero. */
void mg_residual(const struct mg_grid *grid, const struct mg_weights *a, const double *u,
                 const double *v, double *r);

/* u = u + S r. The weight of corners is assumed to be zero. */
void mg_smooth(const struct mg_grid *grid, const struct mg_weights *s, const double *r, double *u);

/* The points of the coarser grid are every other point of the finer one. */
void mg_restrict(const struct mg_grid *fine, const double *from, const struct mg_grid *coarse,
                 double *to);
void mg_prolong(const struct mg_grid *coarse, const double *from, const struct mg_grid *fine,
                double *to, bool add);

#endif
