/* SPDX-License-Identifier: BSD-2-Clause */
/* One run of one kernel: its parameters, its results and its timings. */
#ifndef NAS_RUN_H
#define NAS_RUN_H

#include "comm.h"
#include "settings.h"
#include "work.h"

#include <stdbool.h>
#include <stddef.h>

/* Hot loops are compiled for several generations of processors. The loader chooses the best one
 * that the machine supports, which is too early for sanitizers. Clang does not pass vectors to
 * inline functions from such a loop, and before version 15 calls to such functions in other files
 * do not link. */
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define NAS_HOT __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define NAS_HOT
#endif

#define NAS_CHECKS_MAX 64

/* A computed value, the official one, and the tolerance. */
struct nas_check {
    char name[32];
    double value;
    double reference;
    double tolerance; /* relative */
    bool good;
};

struct nas_timed {
    double seconds;
    struct comm_account comm;
    uint64_t work[WORK_KINDS];
};

struct nas_block;

struct nas_run {
    const struct nas_kernel *kernel;
    enum nas_class class;
    int rank, ranks;

    /* set by the kernel */
    char problem[96];
    unsigned int iterations;
    double operations; /* of the timed section on all ranks, as NPB counts them */
    struct nas_timed timed;
    struct nas_check checks[NAS_CHECKS_MAX]; /* filled on rank 0 */
    unsigned int check_count;

    struct nas_block *blocks;
    bool out_of_memory;          /* on this rank; others may not know */
    bool timing;                 /* within the timed section */
    double started, progress_at; /* times of the start and of the last progress message */
};

struct nas_kernel {
    const char *name;
    const char *title;
    /* Called by all ranks. Returns 0, or -1 after printing why. */
    int (*run)(struct nas_run *run);
};

/* In the order of enum nas_kernel_id. */
extern const struct nas_kernel nas_is, nas_ft, nas_cg, nas_mg, nas_lu;

/* Zeroed memory for the duration of the run, aligned to cache lines; NULL after printing why. */
void *run_allocate(struct nas_run *run, size_t count, size_t size);
void run_free(struct nas_run *run);

/* Prints that memory for something could not be allocated, on this rank alone. */
void run_out_of_memory(struct nas_run *run, const char *what);

/* Prints an error that every rank finds, once; returns -1. */
int run_error(const struct nas_run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The timed section. It begins with a barrier. */
void run_begin(struct nas_run *run);
void run_end(struct nas_run *run);

/* Prints the progress of a long run every few seconds, in the timed section only. */
void run_progress(struct nas_run *run, unsigned int done);

/* Records a value of the verification, on rank 0. */
void run_check(struct nas_run *run, double reference, double value, double tolerance,
               const char *format, ...) __attribute__((format(printf, 5, 6)));
bool run_verified(const struct nas_run *run);

/* log2 of a power of two. */
static inline unsigned int log2_of(unsigned int n)
{
    return 31 - __builtin_clz(n);
}

#endif
