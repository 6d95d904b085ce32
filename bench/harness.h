/* SPDX-License-Identifier: BSD-2-Clause */
/* What every benchmark program needs: a clock, a second pinned process, figures over repeats. */
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct harness_peer {
    int socket;
    bool initiator;
};

struct harness_times {
    double *seconds;
    unsigned count;
};

double harness_now(void);

/*
 * Runs this same program a second time, joined by a socket, and pins both: the initiator to
 * the first core the caller may use, the other to the second. The peer is a fresh exec, not a
 * bare fork, so that neither side inherits adapter state. Both die if a run takes over 2 minutes.
 */
struct harness_peer harness_split(char **argv);

/* Reaps the peer; false if it ended badly. */
bool harness_join(const struct harness_peer *peer);

void harness_swap(const struct harness_peer *peer, const void *mine, void *theirs, size_t size);
void harness_barrier(const struct harness_peer *peer);

struct harness_times harness_times_new(unsigned repeats);
void harness_times_free(struct harness_times *times);

/*
 * Prints the closing fields of a JSON line: the mean over all repeats, and the median, least
 * and greatest of them, all in microseconds for each of `operations` per repeat.
 */
void harness_print_times(const struct harness_times *times, double operations);

/* A whole number between the bounds, or the program ends naming the option. */
unsigned long harness_number(const char *option, const char *text, unsigned long least,
                             unsigned long greatest);

#endif
