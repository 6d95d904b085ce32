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
    FAULT_FLIP,      /* a cable flips bits; the rate is that of each bit */
    FAULT_COUNT,
};

struct faults {
    bool any;
    double rates[FAULT_COUNT]; /* from 0 to 1 */
    uint64_t state;            /* of the random number generator; initially the seed */
    uint64_t counts[FAULT_COUNT]; /* FAULT_FLIP: bits */
    uint64_t until_flip;          /* bits that pass before the next one flips */
    uint64_t undetected;          /* frames whose checksums fit although bits had flipped */
};

extern const char *const fault_names[FAULT_COUNT];

/* Parses "drop=1e-3,reorder=0.01,seed=7". Returns 0, or -1 with the reason in 'error'. */
int faults_read(const char *text, struct faults *out, char *error, size_t size);

/* Whether this fault strikes the current packet. */
bool faults_strike(struct faults *faults, enum fault fault);

/* Whether a frame of so many bytes, which passes now, is hit: if so, call faults_flip(). */
bool faults_hit(struct faults *faults, size_t length);

/* Flips bits of a frame that passes. Returns how many. */
unsigned int faults_flip(struct faults *faults, uint8_t *bytes, size_t length);

/* A random delay, ns. */
uint64_t faults_delay(struct faults *faults);

#endif
