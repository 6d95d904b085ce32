/* SPDX-License-Identifier: BSD-2-Clause */
/* What goes wrong on the cables, by chance: the chance comes from a seed, so the same run goes
 * wrong in the same way again. */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fault {
    FAULT_DROP,      /* the switch loses it */
    FAULT_CORRUPT,   /* it arrives, and its checksum is wrong */
    FAULT_DUPLICATE, /* it arrives, and once more a little later */
    FAULT_REORDER,   /* it is held up, and others overtake it */
    FAULT_COUNT,
};

struct faults {
    bool any;
    double rates[FAULT_COUNT]; /* from 0 to 1 */
    uint64_t state;            /* of the generator; at first the seed */
    uint64_t counts[FAULT_COUNT];
};

extern const char *const fault_names[FAULT_COUNT];

/* Reads "drop=1e-3,reorder=0.01,seed=7". Returns 0, or -1 with what is wrong in 'error'. */
int faults_read(const char *text, struct faults *out, char *error, size_t size);

/* Whether this one happens to the packet at hand. */
bool faults_strike(struct faults *faults, enum fault fault);

/* By how much a packet is late, ns. */
uint64_t faults_delay(struct faults *faults);

#endif
