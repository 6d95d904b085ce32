/* SPDX-License-Identifier: BSD-2-Clause */
/* What a process of an experiment is told when it starts: the first thing that rank 0 says to each
 * of the others. */
#ifndef BENCH_GREETING_H
#define BENCH_GREETING_H

#include "bench/bench.h"

#define GREETING_MAX 16384

struct assignment {
    const struct experiment *experiment;
    struct settings settings;
    int rank;
    int ranks;
};

/* 'words' are the options that the process shall read; one that is 'away', on another host, does
 * not get those that are each host's own. Returns 0, or -1 with the reason in 'error'. */
int greeting_write(char text[GREETING_MAX], const struct assignment *assignment, bool away,
                   char *const *words, int count, const char *version, char *error, size_t size);

/* The text is taken apart, and must live as long as the assignment. Returns 0, or -1 with what to
 * tell the other side in 'refusal'. */
int greeting_read(char *text, const char *version, struct assignment *out, char *refusal,
                  size_t size);

#endif
