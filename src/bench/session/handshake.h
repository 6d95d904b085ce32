/* SPDX-License-Identifier: BSD-2-Clause */
/* The handshake: rank 0's first message to each other rank, with its assignment. */
#ifndef BENCH_HANDSHAKE_H
#define BENCH_HANDSHAKE_H

#include "bench/bench.h"

#define HANDSHAKE_MAX 16384

struct assignment {
    const struct experiment *experiment;
    struct settings settings;
    int rank;
    int ranks;
};

/* 'words' are the rank's options; a 'remote' rank does not get options that are local to each host.
 * Returns 0, or -1 with the reason in 'error'. */
int handshake_write(char text[HANDSHAKE_MAX], const struct assignment *assignment, bool remote,
                    char *const *words, int count, const char *version, char *error, size_t size);

/* Splits the text, which must outlive the assignment. Returns 0, or -1 with the reply to the peer
 * in 'refusal'. */
int handshake_read(char *text, const char *version, struct assignment *out, char *refusal,
                   size_t size);

#endif
