/* SPDX-License-Identifier: BSD-2-Clause */
#include "run.h"
#include "util/util.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGNMENT      64
#define PAGE           4096
#define HUGE_PAGE      (UINT64_C(2) << 20)
#define PROGRESS_EVERY 5.0 /* seconds */

struct nas_block {
    struct nas_block *next;
} __attribute__((aligned(ALIGNMENT)));

void *run_allocate(struct nas_run *run, size_t count, size_t size)
{
    size_t bytes = round_up(count * size, ALIGNMENT);
    /* At least page-aligned: the offset within a page affects modelled time, and the heap differs
     * from run to run. */
    size_t alignment = bytes < HUGE_PAGE ? PAGE : HUGE_PAGE;
    size_t whole = round_up(sizeof(struct nas_block) + bytes, alignment);
    struct nas_block *block = aligned_alloc(alignment, whole);
    char what[32];

    if (!block) {
        snprintf(what, sizeof(what), "%zu MB", bytes >> 20);
        run_out_of_memory(run, what);
        return NULL;
    }
    if (alignment == HUGE_PAGE)
        madvise(block, whole, MADV_HUGEPAGE); /* optional: without it the run is only slower */
    block->next = run->blocks;
    run->blocks = block;
    return memset(block + 1, 0, bytes);
}

void run_out_of_memory(struct nas_run *run, const char *what)
{
    fprintf(stderr, "verbena-nas: rank %d: out of memory: cannot allocate %s\n", run->rank, what);
    run->out_of_memory = true;
}

void run_free(struct nas_run *run)
{
    while (run->blocks) {
        struct nas_block *next = run->blocks->next;

        free(run->blocks);
        run->blocks = next;
    }
}

int run_error(const struct nas_run *run, const char *format, ...)
{
    va_list arguments;

    if (run->rank)
        return -1;
    va_start(arguments, format);
    fprintf(stderr, "verbena-nas: %s class %c: ", run->kernel->name, nas_class_letter(run->class));
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return -1;
}

void run_begin(struct nas_run *run)
{
    MPI_Barrier(MPI_COMM_WORLD);
    comm_account_clear();
    nas_work_clear();
    run->timing = true;
    run->started = run->progress_at = MPI_Wtime();
}

void run_end(struct nas_run *run)
{
    nas_work_charge();
    run->timed.seconds = MPI_Wtime() - run->started;
    run->timing = false;
    run->timed.comm = comm_account_now();
    nas_work_totals(run->timed.work);
}

void run_progress(struct nas_run *run, unsigned int done)
{
    double now;

    if (run->rank || !run->timing)
        return;
    now = MPI_Wtime();
    if (now - run->progress_at < PROGRESS_EVERY)
        return;
    run->progress_at = now;
    fprintf(stderr, "%s class %c: %u of %u iterations in %.0f s\n", run->kernel->name,
            nas_class_letter(run->class), done, run->iterations, now - run->started);
}

void run_check(struct nas_run *run, double reference, double value, double tolerance,
               const char *format, ...)
{
    struct nas_check *check;
    va_list arguments;

    if (run->rank)
        return;
    check = &run->checks[run->check_count++];
    va_start(arguments, format);
    vsnprintf(check->name, sizeof(check->name), format, arguments);
    va_end(arguments);
    check->value = value;
    check->reference = reference;
    check->tolerance = tolerance;
    /* False for NaN, too. */
    check->good = fabs(value - reference) <= tolerance * fabs(reference);
}

bool run_verified(const struct nas_run *run)
{
    for (unsigned int i = 0; i < run->check_count; i++) {
        if (!run->checks[i].good)
            return false;
    }
    return run->check_count > 0;
}
