/* SPDX-License-Identifier: BSD-2-Clause */
/* schedule SEED COUNT [THREADS [LARGEST]]: random communication, one schedule for each seed from
 * SEED on. Every byte is checked, and rank 0 prints a digest of everything received, which is the
 * same with any MPI library. Each thread runs a schedule of its own. */
#include "schedule.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS_MAX    8
#define PHASES_MAX     5
#define BUFFER         (8u << 20)
#define LARGEST        (64u << 20)
#define THREAD_LARGEST (1u << 20)

static int rank, ranks;
static uint64_t seed;
static size_t largest = LARGEST;

struct thread {
    pthread_t id;
    int number;
    MPI_Comm comm;
    uint64_t digest;
};

void case_failed(const char *format, ...)
{
    char reason[512];
    va_list more;

    va_start(more, format);
    vsnprintf(reason, sizeof(reason), format, more);
    va_end(more);
    printf("FAIL seed-%" PRIu64 ": rank %d of %d: %s\n", seed, rank, ranks, reason);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

static void *run_schedule(void *argument)
{
    struct thread *self = argument;
    struct dice dice = { .state = data_mix(seed * THREADS_MAX + self->number) };
    struct phase *phase = allocate(sizeof(*phase));
    int phases = 1 + (int)dice_below(&dice, PHASES_MAX);

    phase->mode = allocate(ranks * sizeof(*phase->mode));
    phase->posted = allocate(ranks * sizeof(*phase->posted));
    self->digest = 0;
    for (int i = 0; i < phases; i++) {
        schedule_phase(&dice, ranks, largest, phase);
        self->digest = data_mix(self->digest) + schedule_run(phase, self->comm);
    }
    free(phase->posted);
    free(phase->mode);
    free(phase);
    return NULL;
}

static void run_seed(struct thread *threads, int count)
{
    uint64_t digest = 0, total = 0;

    if (count == 1) {
        run_schedule(&threads[0]);
    } else {
        for (int i = 0; i < count; i++)
            expect(!pthread_create(&threads[i].id, NULL, run_schedule, &threads[i]), "no thread");
        for (int i = 0; i < count; i++)
            pthread_join(threads[i].id, NULL);
    }
    for (int i = 0; i < count; i++)
        digest = data_mix(digest ^ threads[i].digest);
    MPI_Reduce(&digest, &total, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (!rank)
        printf("seed %" PRIu64 " ranks %d threads %d digest %016" PRIx64 "\n", seed, ranks, count,
               total);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t seeds = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    int count = argc > 3 ? atoi(argv[3]) : 1, level, size = BUFFER;
    struct thread threads[THREADS_MAX];
    void *buffer;

    MPI_Init_thread(&argc, &argv, count > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (count > 1)
        largest = THREAD_LARGEST;
    if (argc > 4)
        largest = strtoull(argv[4], NULL, 10);
    expect(count >= 1 && count <= THREADS_MAX, "from 1 to %d threads", THREADS_MAX);
    expect(count == 1 || level == MPI_THREAD_MULTIPLE, "no MPI_THREAD_MULTIPLE");
    buffer = allocate(size);
    MPI_Buffer_attach(buffer, size);
    for (int i = 0; i < count; i++) {
        threads[i].number = i;
        MPI_Comm_dup(MPI_COMM_WORLD, &threads[i].comm);
    }
    for (seed = first; seed < first + seeds; seed++)
        run_seed(threads, count);
    for (int i = 0; i < count; i++)
        MPI_Comm_free(&threads[i].comm);
    MPI_Buffer_detach(&buffer, &size);
    free(buffer);
    MPI_Finalize();
    return 0;
}
