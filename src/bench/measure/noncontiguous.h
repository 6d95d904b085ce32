/* SPDX-License-Identifier: BSD-2-Clause */
/* Noncontiguous data: blocks that are sent back to back and stored a stride apart, either by the
 * receiving program or by the adapter. */
#ifndef BENCH_MEASURE_NONCONTIGUOUS_H
#define BENCH_MEASURE_NONCONTIGUOUS_H

#include "stream.h"

struct noncontiguous {
    size_t block_size;
    unsigned int blocks;
    size_t stride; /* from the start of one stored block to the next */
};

/* How many scatter/gather entries a receive may have: the first number in the settings, or the
 * device's limit. */
unsigned int noncontiguous_max_sges(const struct bench *bench);

/* Each is collective over ranks 0 and 1 and gives MB/s. */

/* Without the network: rank 0 copies blocks within its own memory. */
int noncontiguous_copy(struct bench *bench, const struct noncontiguous *layout,
                       struct summary *out);

/* A message with all blocks arrives contiguously, and the receiver copies the blocks. */
int noncontiguous_receive_then_copy(struct bench *bench, const struct noncontiguous *layout,
                                    struct summary *out);

/* Each block has its own scatter entry in the receive, at most 'sges' of them. The blocks may take
 * several messages, and a few are not sent if they do not divide evenly. */
int noncontiguous_scatter_receive(struct bench *bench, const struct noncontiguous *layout,
                                  unsigned int sges, struct summary *out);

#endif
