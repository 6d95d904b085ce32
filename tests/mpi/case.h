/* The conformance program: cases that all ranks run together, and what they share. */
#ifndef MPI_CASE_H
#define MPI_CASE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mpi_case {
    const char *name;
    void (*run)(void);
    int ranks; /* at least */
};

/* Each list ends with a row without a name. */
extern const struct mpi_case point_cases[];
extern const struct mpi_case match_cases[];
extern const struct mpi_case error_cases[];
extern const struct mpi_case type_cases[];
extern const struct mpi_case collective_cases[];
extern const struct mpi_case window_cases[];
extern const struct mpi_case thread_cases[];
extern const struct mpi_case dynamic_cases[];

extern int rank, ranks;
extern int thread_level;
extern char **arguments; /* of the program */

static inline int right_of(int of)
{
    return (of + 1) % ranks;
}

static inline int left_of(int of)
{
    return (of + ranks - 1) % ranks;
}

/* Sizes around every limit at which ways of sending change. */
extern const size_t sizes[];
extern const size_t size_count;
#define LARGEST ((4u << 20) + 5)

/* Ends the whole program, with the reason, unless the condition holds. */
#define expect(condition, ...)        \
    do {                              \
        if (!(condition))             \
            case_failed(__VA_ARGS__); \
    } while (0)
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

void *allocate(size_t size);

#endif
