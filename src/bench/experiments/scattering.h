/* Pieces that arrive one after the other and belong apart: put in place by the program, or by the
 * adapter. What 'strided' and 'scatter' have in common. */
#ifndef BENCH_EXPERIMENTS_SCATTERING_H
#define BENCH_EXPERIMENTS_SCATTERING_H

#include "bench/stream.h"

struct scattering {
    size_t piece;        /* bytes */
    unsigned int pieces; /* of a block */
    size_t stride;       /* bytes between the places of pieces */
};

/* How many segments a receive may have: the first number that was asked for, or what the device
 * takes. */
unsigned int most_entries(const struct bench *bench);

/* Each is collective over ranks 0 and 1, and gives MB/s. */

/* No network: rank 0 stores blocks of its own. */
int scattering_local(struct bench *bench, const struct scattering *layout, struct summary *out);

/* Blocks arrive contiguously and are then stored by the receiver. */
int scattering_by_program(struct bench *bench, const struct scattering *layout,
                          struct summary *out);

/* Each piece has its own entry in the receive's list. A message has 'entries' of them at most, so
 * that a block may take several messages, and falls short of a few pieces if they do not come out
 * even. */
int scattering_by_adapter(struct bench *bench, const struct scattering *layout,
                          unsigned int entries, struct summary *out);

#endif
