/* SPDX-License-Identifier: BSD-2-Clause */
/* What a row proves: whether the model has seen its value. The origins in the adapter files decide.
 */
#ifndef REPRODUCE_ROLE_H
#define REPRODUCE_ROLE_H

#include "paper_db.h"

enum role {
    ROLE_PREDICTED, /* no parameter was fitted to it */
    ROLE_FITTED,    /* the origin of a parameter names its table or figure, or says no more */
    ROLE_INPUT,     /* an echo of a parameter that was taken from it: not counted */
    ROLE_REPEATED,  /* the same measurement as another row: not counted */
    ROLE_SHAPE,     /* no value */
    ROLES,
};

enum role role_of(const struct paper_row *row);
const char *role_name(enum role role);

/* Whether two lists of sources, such as "figures 2 and 9 to 11" and "table 1 and figure 9b", share
 * one. A figure stands for all of its parts. */
bool role_sources_overlap(const char *one, const char *other);

/* Whether an origin says that its parameter was fitted to the row, and names its paper. */
bool role_fits(const char *origin, const struct paper_row *row);

#endif
