/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a replay cannot go on, or leaves messages behind: rank by rank, with the labels. */
#ifndef REPLAY_STUCK_H
#define REPLAY_STUCK_H

#include <stddef.h>

/* No event is left, but operations are. Writes lines into 'error'; returns -1. */
int stuck_explain(char *error, size_t size);

/* Returns 0, or -1 with lines in 'error' if messages were sent that nobody has received. */
int stuck_check_unmatched(char *error, size_t size);

#endif
