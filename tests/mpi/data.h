/* SPDX-License-Identifier: BSD-2-Clause */
/* Test data derived from a seed, and checks of received data. */
#ifndef MPI_DATA_H
#define MPI_DATA_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Aborts the program with a message unless the condition holds. */
#define expect(condition, ...)        \
    do {                              \
        if (!(condition))             \
            case_failed(__VA_ARGS__); \
    } while (0)
/* Defined by each program, or in alone.c. */
void case_failed(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Bytes derived from the seed. */
void data_fill(void *buffer, size_t size, uint64_t seed);
bool data_is(const void *buffer, size_t size, uint64_t seed);
void expect_data(const void *buffer, size_t size, uint64_t seed, const char *what);

/* The seed of message 'n' from one rank to another. */
uint64_t data_seed(int from, int to, uint64_t n);

/* Expects memory that no message may touch to hold only this byte. */
void expect_untouched(const void *buffer, size_t size, unsigned char byte, const char *what);

void expect_status(const MPI_Status *status, int source, int tag, size_t bytes);

/* A hash function. */
uint64_t data_mix(uint64_t x);

void *allocate(size_t size);

#endif
