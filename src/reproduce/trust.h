/* SPDX-License-Identifier: BSD-2-Clause */
/* How far a modelled adapter is to be trusted: where its parameters come from, and how far it is
 * from values of papers, those that it was fitted to and those that a fit had not seen. */
#ifndef REPRODUCE_TRUST_H
#define REPRODUCE_TRUST_H

#include "paper_db.h"

/* Of errors in percent. */
struct trust_errors {
    unsigned int count;
    double median, nine_in_ten; /* no farther off than this; NAN if there are none */
};

struct trust {
    unsigned int known; /* from specifications, drivers, papers, public figures or measurements */
    unsigned int fitted;
    unsigned int assumed;
    char *fitted_to;             /* names of papers, with commas; "" if origins name none */
    char *assumed_in;            /* how many of each group, the same way: "host 24, bus 2" */
    struct trust_errors seen;    /* values that it was fitted to */
    struct trust_errors unseen;  /* the same and others, left out of a recorded fit */
};

/* Returns 0, or -1 if there is no such adapter. */
int trust_read(const struct paper_db *db, const char *adapter, struct trust *out);
void trust_free(struct trust *trust);

#endif
