/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes that tell where they come from, and what to do when they do not. */
#ifndef MPI_DATA_H
#define MPI_DATA_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ends the whole program, with the reason, unless the condition holds. */
#define expect(condition, ...)        \
    do {                              \
        if (!(condition))             \
            case_failed(__VA_ARGS__); \
    } while (0)
/* Each program has its own. */
void case_failed(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Bytes that only this seed gives. */
void data_fill(void *buffer, size_t size, uint64_t seed);
bool data_is(const void *buffer, size_t size, uint64_t seed);
void expect_data(const void *buffer, size_t size, uint64_t seed, const char *what);

/* The seed of the message number 'n' from one rank to another. */
uint64_t data_seed(int from, int to, uint64_t n);

/* Whether the region holds this byte only: what a message may not touch. */
void expect_untouched(const void *buffer, size_t size, unsigned char byte, const char *what);

void expect_status(const MPI_Status *status, int source, int tag, size_t bytes);

/* A number that depends on every bit of another. */
uint64_t data_mix(uint64_t x);

void *allocate(size_t size);

#endif
