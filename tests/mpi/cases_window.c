/* SPDX-License-Identifier: BSD-2-Clause */
/* One-sided: put, get, accumulate and the atomics, under each kind of synchronization. */
#include "case.h"

#include <stdlib.h>
#include <string.h>

#define INTS 20000

static const int counts[] = { 1, 100, INTS };

static void test_fence(void)
{
    int *memory = allocate(INTS * sizeof(int)), *out = allocate(INTS * sizeof(int));
    int *in = allocate(INTS * sizeof(int));
    MPI_Win window;

    MPI_Win_create(memory, INTS * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    for (size_t c = 0; c < sizeof(counts) / sizeof(*counts); c++) {
        int count = counts[c];

        for (int i = 0; i < count; i++) {
            out[i] = rank * 100 + i + (int)c;
            memory[i] = -1;
        }
        MPI_Win_fence(0, window);
        MPI_Put(out, count, MPI_INT, right_of(rank), 0, count, MPI_INT, window);
        MPI_Win_fence(0, window);
        for (int i = 0; i < count; i++)
            expect(memory[i] == left_of(rank) * 100 + i + (int)c, "put: element %d is %d", i,
                   memory[i]);
        MPI_Get(in, count, MPI_INT, right_of(rank), 0, count, MPI_INT, window);
        MPI_Win_fence(0, window);
        for (int i = 0; i < count; i++)
            expect(in[i] == out[i], "get: element %d is %d", i, in[i]);
    }
    MPI_Win_free(&window);
    free(in);
    free(out);
    free(memory);
}

static void test_accumulate(void)
{
    int *memory, *out = allocate(INTS * sizeof(int));
    MPI_Win window;

    MPI_Win_allocate(INTS * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                     &window);
    for (int i = 0; i < INTS; i++) {
        out[i] = rank + i;
        memory[i] = 1;
    }
    MPI_Win_fence(0, window);
    for (int peer = 0; peer < ranks; peer++)
        MPI_Accumulate(out, INTS, MPI_INT, peer, 0, INTS, MPI_INT, MPI_SUM, window);
    MPI_Win_fence(0, window);
    for (int i = 0; i < INTS; i++)
        expect(memory[i] == 1 + ranks * (ranks - 1) / 2 + ranks * i, "accumulate: element %d is %d",
               i, memory[i]);
    MPI_Win_free(&window);
    free(out);
}

/* All ranks increment a counter in the memory of rank 0, which is passive. */
static void test_lock(void)
{
    int *memory, one = 1, seen, last = -1;
    MPI_Win window;

    MPI_Win_allocate(2 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    memory[0] = memory[1] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 20; i++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Get(&seen, 1, MPI_INT, 0, 1, 1, MPI_INT, window);
        MPI_Win_flush(0, window);
        seen++;
        MPI_Put(&seen, 1, MPI_INT, 0, 1, 1, MPI_INT, window);
        MPI_Win_unlock(0, window);
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
        MPI_Fetch_and_op(&one, &seen, MPI_INT, 0, 0, MPI_SUM, window);
        MPI_Win_unlock(0, window);
        expect(seen > last, "a count went from %d to %d", last, seen);
        last = seen;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (!rank) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
        expect(memory[0] == 20 * ranks && memory[1] == 20 * ranks, "%d and %d were counted, not %d",
               memory[0], memory[1], 20 * ranks);
        MPI_Win_unlock(0, window);
    }
    MPI_Win_free(&window);
}

static void test_compare_and_swap(void)
{
    int *memory, nobody = -1, found, winners = 0, won;
    MPI_Win window;

    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    *memory = nobody;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    MPI_Compare_and_swap(&rank, &nobody, &found, MPI_INT, 0, 0, window);
    MPI_Win_flush(0, window);
    MPI_Win_unlock_all(window);
    won = found == nobody;
    MPI_Allreduce(&won, &winners, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect(winners == 1, "%d ranks found the place empty", winners);
    MPI_Win_free(&window);
}

/* Between neighbours only: post, start, complete, wait. */
static void test_neighbours(void)
{
    int *memory, right = right_of(rank), left = left_of(rank), out = rank * 3;
    MPI_Group world, to, from;
    MPI_Win window;

    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    *memory = -1;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &right, &to);
    MPI_Group_incl(world, 1, &left, &from);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_post(from, 0, window);
    MPI_Win_start(to, 0, window);
    MPI_Put(&out, 1, MPI_INT, right, 0, 1, MPI_INT, window);
    MPI_Win_complete(window);
    MPI_Win_wait(window);
    expect(*memory == left * 3, "the neighbour put %d", *memory);
    MPI_Group_free(&from);
    MPI_Group_free(&to);
    MPI_Group_free(&world);
    MPI_Win_free(&window);
}

const struct mpi_case window_cases[] = {
    { "fence", test_fence, 1 },
    { "accumulate", test_accumulate, 1 },
    { "lock", test_lock, 1 },
    { "compare-and-swap", test_compare_and_swap, 1 },
    { "neighbours", test_neighbours, 1 },
    { NULL },
};
