/* SPDX-License-Identifier: BSD-2-Clause */
/* Random faults on the links. A seed makes them the same in every run. */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fault {
    FAULT_DROP,      /* the switch drops the packet */
    FAULT_CORRUPT,   /* it arrives with a wrong checksum */
    FAULT_DUPLICATE, /* it arrives twice */
    FAULT_REORDER,   /* it is delayed, and others overtake it */
    FAULT_COUNT,
};

struct faults {
    bool any;
    double rates[FAULT_COUNT]; /* from 0 to 1 */
    uint64_t state;            /* of the random number generator; initially the seed */
    uint64_t counts[FAULT_COUNT];
};

extern const char *const fault_names[FAULT_COUNT];

/* Parses "drop=1e-3,reorder=0.01,seed=7". Returns 0, or -1 with the reason in 'error'. */
int faults_read(const char *text, struct faults *out, char *error, size_t size);

/* Whether this fault strikes the current packet. */
bool faults_strike(struct faults *faults, enum fault fault);

/* A random delay, ns. */
uint64_t faults_delay(struct faults *faults);

#endif
