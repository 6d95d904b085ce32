/* SPDX-License-Identifier: BSD-2-Clause */
/* How far a modelled adapter is to be trusted: where its parameters come from, and how far values
 * of papers were when they were left out of its fit. */
#ifndef REPRODUCE_TRUST_H
#define REPRODUCE_TRUST_H

#include "paper_db.h"

struct trust {
    unsigned int known; /* from specifications, drivers, papers, public figures or measurements */
    unsigned int fitted;
    unsigned int assumed;
    char *fitted_to;       /* names of papers, with commas; "" if origins name none */
    unsigned int left_out; /* values on this adapter that were left out of a recorded fit */
    double median;         /* of their errors, in percent; NAN if there are none */
    double nine_in_ten;    /* are no farther off than this */
};

/* Returns 0, or -1 if there is no such adapter. */
int trust_read(const struct paper_db *db, const char *adapter, struct trust *out);
void trust_free(struct trust *trust);

#endif
