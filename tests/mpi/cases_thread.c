/* SPDX-License-Identifier: BSD-2-Clause */
/* Several threads of a process inside MPI at the same time. */
#include "case.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS  4
#define MESSAGES 100

static const size_t turn[] = { 8, 2000, 20000, 0, 90000 };

struct thread {
    pthread_t id;
    int number;
    MPI_Comm comm;
};

static void run_threads(void *(*body)(void *), bool own_comm)
{
    struct thread threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        threads[i].number = i;
        threads[i].comm = MPI_COMM_WORLD;
        if (own_comm)
            MPI_Comm_dup(MPI_COMM_WORLD, &threads[i].comm);
    }
    for (int i = 0; i < THREADS; i++)
        expect(!pthread_create(&threads[i].id, NULL, body, &threads[i]), "no thread");
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i].id, NULL);
        if (own_comm)
            MPI_Comm_free(&threads[i].comm);
    }
}

/* Each thread has a tag of its own. */
static void *ring(void *argument)
{
    const struct thread *self = argument;
    unsigned char *out = allocate(90000), *in = allocate(90000);

    for (int i = 0; i < MESSAGES; i++) {
        size_t size = turn[i % 5];
        uint64_t n = self->number * MESSAGES + i;
        MPI_Request request;
        MPI_Status status;

        data_fill(out, size, data_seed(rank, right_of(rank), n));
        MPI_Isend(out, size, MPI_BYTE, right_of(rank), self->number, MPI_COMM_WORLD, &request);
        MPI_Recv(in, 90000, MPI_BYTE, left_of(rank), self->number, MPI_COMM_WORLD, &status);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect_status(&status, left_of(rank), self->number, size);
        expect_data(in, size, data_seed(left_of(rank), rank, n), "of a thread");
    }
    free(in);
    free(out);
    return NULL;
}

static void test_threads_ring(void)
{
    run_threads(ring, false);
}

/* Any thread may get any message; each message is received once. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int seen[THREADS * MESSAGES];

static void *anybody(void *argument)
{
    const struct thread *self = argument;
    int out[MESSAGES];

    for (int i = 0; i < MESSAGES; i++) {
        MPI_Message message;
        MPI_Status status;
        int in = -1;

        out[i] = self->number * MESSAGES + i;
        MPI_Send(&out[i], 1, MPI_INT, right_of(rank), out[i], MPI_COMM_WORLD);
        MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);
        MPI_Mrecv(&in, 1, MPI_INT, &message, &status);
        expect_status(&status, left_of(rank), in, sizeof(int));
        pthread_mutex_lock(&lock);
        seen[in]++;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void test_threads_anybody(void)
{
    run_threads(anybody, false);
    for (int i = 0; i < THREADS * MESSAGES; i++)
        expect(seen[i] == 1, "message %d was received %d times", i, seen[i]);
}

static void *collect(void *argument)
{
    const struct thread *self = argument;

    for (int i = 0; i < MESSAGES / 4; i++) {
        int sum = self->number * rank + i;

        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, self->comm);
        expect(sum == self->number * ranks * (ranks - 1) / 2 + i * ranks,
               "the sum of thread %d is %d", self->number, sum);
    }
    return NULL;
}

static void test_threads_collective(void)
{
    run_threads(collect, true);
}

/* One thread waits inside MPI for a message that another one sends. */
static void *wait_inside(void *argument)
{
    int in = 0;

    MPI_Recv(&in, 1, MPI_INT, left_of(rank), 500, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect(in == left_of(rank), "%d came", in);
    return NULL;
}

static void test_threads_waiting(void)
{
    pthread_t waiter;

    expect(!pthread_create(&waiter, NULL, wait_inside, NULL), "no thread");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(&rank, 1, MPI_INT, right_of(rank), 500, MPI_COMM_WORLD);
    pthread_join(waiter, NULL);
}

const struct mpi_case thread_cases[] = {
    { "threads-ring", test_threads_ring, 1 },
    { "threads-anybody", test_threads_anybody, 1 },
    { "threads-collective", test_threads_collective, 1 },
    { "threads-waiting", test_threads_waiting, 1 },
    { NULL },
};
