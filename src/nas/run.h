/* One run of one kernel: what it is given, what it finds, what it took. */
#ifndef NAS_RUN_H
#define NAS_RUN_H

#include "comm.h"
#include "settings.h"
#include "work.h"

#include <stdbool.h>
#include <stddef.h>

/* Loops that decide a kernel's speed are compiled for several generations of processors, and the
 * best that the machine has is chosen when the program is loaded, too early for a sanitizer. Clang
 * hands no vectors to inline functions from such a loop, and before version 15 it calls those of other
 * files by a name that nothing defines. */
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define NAS_HOT __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define NAS_HOT
#endif

#define NAS_CHECKS_MAX 64

/* A figure, the official one, and how far apart they may be. */
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

    /* what the kernel tells */
    char problem[96];
    unsigned int iterations;
    double operations; /* of the timed section on all ranks, as NPB counts them */
    struct nas_timed timed;
    struct nas_check checks[NAS_CHECKS_MAX]; /* filled on rank 0 */
    unsigned int check_count;

    struct nas_block *blocks;
    bool starved;           /* this rank got no memory; others may not know */
    bool timing;            /* within the timed section */
    double started, spoken; /* when: the section, and the last word about progress */
};

struct nas_kernel {
    const char *name;
    const char *title;
    /* Returns 0, or -1 having said why. All ranks call it. */
    int (*run)(struct nas_run *run);
};

/* In the order of enum nas_kernel_id. */
extern const struct nas_kernel nas_is, nas_ft, nas_cg, nas_mg, nas_lu;

/* Memory that lives as long as the run, aligned to cache lines and zero; NULL if there is none,
 * having said so. */
void *run_allocate(struct nas_run *run, size_t count, size_t size);
void run_free(struct nas_run *run);

/* Says that there is no memory for something, on this rank alone. */
void run_starve(struct nas_run *run, const char *what);

/* Says what is wrong, once for an error that every rank finds; returns -1. */
int run_refuse(const struct nas_run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The timed section. It begins on all ranks together. */
void run_begin(struct nas_run *run);
void run_end(struct nas_run *run);

/* Tells now and then how far a long run has come; silent outside of the timed section. */
void run_progress(struct nas_run *run, unsigned int done);

/* On rank 0: notes a figure of the verification. */
void run_check(struct nas_run *run, double reference, double value, double tolerance,
               const char *format, ...) __attribute__((format(printf, 5, 6)));
bool run_verified(const struct nas_run *run);

/* log2 of a power of two. */
static inline unsigned int log2_of(unsigned int n)
{
    return 31 - __builtin_clz(n);
}

#endif
