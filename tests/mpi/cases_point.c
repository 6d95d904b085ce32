/* SPDX-License-Identifier: BSD-2-Clause */
/* Every send mode, every size, every byte. */
#include "case.h"

#include <stdlib.h>
#include <string.h>

#define TAG      7
#define MANY     500
#define ROUNDS   10
#define PATIENCE 200

typedef int send_call(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int start_call(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

/* A message to the right while one from the left is received; the receive is posted before. */
static void pass(send_call *send, start_call *start, size_t size, uint64_t n)
{
    unsigned char *out = allocate(size), *in = allocate(size + 8);
    MPI_Request receive, sent = MPI_REQUEST_NULL;
    MPI_Status status;

    data_fill(out, size, data_seed(rank, right_of(rank), n));
    memset(in, 0xa5, size + 8);
    MPI_Irecv(in, size + 8, MPI_BYTE, left_of(rank), TAG, MPI_COMM_WORLD, &receive);
    MPI_Barrier(MPI_COMM_WORLD);
    if (send)
        send(out, size, MPI_BYTE, right_of(rank), TAG, MPI_COMM_WORLD);
    else
        start(out, size, MPI_BYTE, right_of(rank), TAG, MPI_COMM_WORLD, &sent);
    MPI_Wait(&receive, &status);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    expect_status(&status, left_of(rank), TAG, size);
    expect_data(in, size, data_seed(left_of(rank), rank, n), "message");
    expect_untouched(in + size, 8, 0xa5, "message");
    free(in);
    free(out);
}

static void pass_all(send_call *send, start_call *start)
{
    for (size_t i = 0; i < size_count; i++)
        pass(send, start, sizes[i], i);
}

static void with_buffer(void (*run)(void))
{
    int size = (LARGEST + MPI_BSEND_OVERHEAD) * 2;
    void *buffer = allocate(size), *back;

    MPI_Buffer_attach(buffer, size);
    run();
    MPI_Buffer_detach(&back, &size);
    expect(back == buffer, "another buffer is detached than was attached");
    free(buffer);
}

static void test_send(void)
{
    pass_all(MPI_Send, NULL);
}

static void test_ssend(void)
{
    pass_all(MPI_Ssend, NULL);
}

static void test_rsend(void)
{
    pass_all(MPI_Rsend, NULL);
}

static void test_isend(void)
{
    pass_all(NULL, MPI_Isend);
}

static void test_issend(void)
{
    pass_all(NULL, MPI_Issend);
}

static void test_irsend(void)
{
    pass_all(NULL, MPI_Irsend);
}

static void buffered(void)
{
    pass_all(MPI_Bsend, NULL);
    pass_all(NULL, MPI_Ibsend);
}

static void test_bsend(void)
{
    with_buffer(buffered);
}

/* No rank receives before both have sent. */
static void bsend_first(void)
{
    unsigned char *out = allocate(LARGEST), *in = allocate(LARGEST);

    data_fill(out, LARGEST, data_seed(rank, right_of(rank), 1));
    MPI_Bsend(out, LARGEST, MPI_BYTE, right_of(rank), TAG, MPI_COMM_WORLD);
    memset(out, 0, LARGEST);
    MPI_Recv(in, LARGEST, MPI_BYTE, left_of(rank), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect_data(in, LARGEST, data_seed(left_of(rank), rank, 1), "buffered");
    free(in);
    free(out);
}

static void test_bsend_returns(void)
{
    with_buffer(bsend_first);
}

/* A synchronous send does not complete before its receive has started. */
static void test_ssend_waits(void)
{
    char out = 1, in = 0, go = 0;
    MPI_Request sent;
    int done = 0;

    if (rank == 0) {
        MPI_Issend(&out, 1, MPI_CHAR, 1, TAG, MPI_COMM_WORLD, &sent);
        for (int i = 0; i < PATIENCE; i++) {
            MPI_Test(&sent, &done, MPI_STATUS_IGNORE);
            expect(!done, "a synchronous send was done before its receive");
        }
        MPI_Send(&go, 1, MPI_CHAR, 1, TAG + 1, MPI_COMM_WORLD);
        MPI_Wait(&sent, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_Recv(&go, 1, MPI_CHAR, 0, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&in, 1, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect(in == 1, "wrong byte");
    }
}

static void test_sendrecv(void)
{
    for (size_t i = 0; i < size_count; i++) {
        unsigned char *out = allocate(sizes[i]), *in = allocate(sizes[i]);
        MPI_Status status;

        data_fill(out, sizes[i], data_seed(rank, right_of(rank), i));
        MPI_Sendrecv(out, sizes[i], MPI_BYTE, right_of(rank), TAG, in, sizes[i], MPI_BYTE,
                     left_of(rank), TAG, MPI_COMM_WORLD, &status);
        expect_status(&status, left_of(rank), TAG, sizes[i]);
        expect_data(in, sizes[i], data_seed(left_of(rank), rank, i), "sendrecv");
        MPI_Sendrecv_replace(out, sizes[i], MPI_BYTE, right_of(rank), TAG, left_of(rank), TAG,
                             MPI_COMM_WORLD, &status);
        expect_data(out, sizes[i], data_seed(left_of(rank), rank, i), "sendrecv_replace");
        free(in);
        free(out);
    }
}

static void test_self(void)
{
    for (size_t i = 0; i < size_count; i++) {
        unsigned char *out = allocate(sizes[i]), *in = allocate(sizes[i]);
        MPI_Request request[2];
        MPI_Status status[2];

        data_fill(out, sizes[i], data_seed(rank, rank, i));
        MPI_Isend(out, sizes[i], MPI_BYTE, rank, TAG, MPI_COMM_WORLD, &request[0]);
        MPI_Irecv(in, sizes[i], MPI_BYTE, rank, TAG, MPI_COMM_WORLD, &request[1]);
        MPI_Waitall(2, request, status);
        expect_status(&status[1], rank, TAG, sizes[i]);
        expect_data(in, sizes[i], data_seed(rank, rank, i), "to itself");
        memset(in, 0, sizes[i]);
        MPI_Irecv(in, sizes[i], MPI_BYTE, MPI_ANY_SOURCE, TAG, MPI_COMM_SELF, &request[1]);
        MPI_Ssend(out, sizes[i], MPI_BYTE, 0, TAG, MPI_COMM_SELF);
        MPI_Wait(&request[1], &status[1]);
        expect_status(&status[1], 0, TAG, sizes[i]);
        expect_data(in, sizes[i], data_seed(rank, rank, i), "to itself, synchronous");
        free(in);
        free(out);
    }
}

/* All requests are started repeatedly, with different data each time. */
static void persistent(size_t size)
{
    unsigned char *out[4], *in[4];
    MPI_Request request[8];

    for (int i = 0; i < 4; i++) {
        out[i] = allocate(size);
        in[i] = allocate(size);
        MPI_Recv_init(in[i], size, MPI_BYTE, left_of(rank), i, MPI_COMM_WORLD, &request[i]);
    }
    MPI_Send_init(out[0], size, MPI_BYTE, right_of(rank), 0, MPI_COMM_WORLD, &request[4]);
    MPI_Ssend_init(out[1], size, MPI_BYTE, right_of(rank), 1, MPI_COMM_WORLD, &request[5]);
    MPI_Rsend_init(out[2], size, MPI_BYTE, right_of(rank), 2, MPI_COMM_WORLD, &request[6]);
    MPI_Send_init(out[3], size, MPI_BYTE, right_of(rank), 3, MPI_COMM_WORLD, &request[7]);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 4; i++)
            data_fill(out[i], size, data_seed(rank, right_of(rank), round * 4 + i));
        MPI_Startall(4, request);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Start(&request[7]);
        MPI_Startall(3, request + 4);
        MPI_Waitall(8, request, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 4; i++)
            expect_data(in[i], size, data_seed(left_of(rank), rank, round * 4 + i), "persistent");
    }
    for (int i = 0; i < 8; i++)
        MPI_Request_free(&request[i]);
    for (int i = 0; i < 4; i++) {
        free(in[i]);
        free(out[i]);
    }
}

static void test_persistent(void)
{
    static const size_t some[] = { 0, 8, 8191, 65539, 1 << 20 };

    for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++)
        persistent(some[i]);
}

/* All rounds are sent before the first is received, from a strided datatype. */
static void persistent_buffered(int count)
{
    int *out = allocate(2 * count * sizeof(int)), *in = allocate(count * sizeof(int));
    MPI_Request request;
    MPI_Datatype every_other;

    MPI_Type_vector(count, 1, 2, MPI_INT, &every_other);
    MPI_Type_commit(&every_other);
    MPI_Bsend_init(out, 1, every_other, right_of(rank), TAG, MPI_COMM_WORLD, &request);
    MPI_Type_free(&every_other);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 2 * count; i++)
            out[i] = rank + round * count + i;
        if (round % 2)
            MPI_Startall(1, &request);
        else
            MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        memset(out, 0xff, 2 * count * sizeof(int));
    }
    MPI_Request_free(&request);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Status status;

        MPI_Recv(in, count, MPI_INT, left_of(rank), TAG, MPI_COMM_WORLD, &status);
        expect_status(&status, left_of(rank), TAG, count * sizeof(int));
        for (int i = 0; i < count; i++)
            expect(in[i] == left_of(rank) + round * count + 2 * i,
                   "round %d, %d integers: number %d is %d", round, count, i, in[i]);
    }
    free(in);
    free(out);
}

static void persistent_buffered_all(void)
{
    static const int counts[] = { 1, 10, 5000, 200000 };

    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
        persistent_buffered(counts[i]);
}

static void test_persistent_buffered(void)
{
    with_buffer(persistent_buffered_all);
}

static void test_many_at_a_time(void)
{
    static const size_t turn[] = { 8, 3000, 0, 20000, 100, 70000 };
    static unsigned char *out[MANY], *in[MANY];
    static MPI_Request request[2 * MANY];
    int left = 2 * MANY;

    for (int i = 0; i < MANY; i++) {
        size_t size = turn[i % 6];

        out[i] = allocate(size);
        in[i] = allocate(size);
        data_fill(out[i], size, data_seed(rank, right_of(rank), i));
        MPI_Isend(out[i], size, MPI_BYTE, right_of(rank), i, MPI_COMM_WORLD, &request[i]);
    }
    for (int i = MANY - 1; i >= 0; i--)
        MPI_Irecv(in[i], turn[i % 6], MPI_BYTE, left_of(rank), i, MPI_COMM_WORLD,
                  &request[MANY + i]);
    while (left) {
        int done, index[2 * MANY];

        MPI_Waitsome(2 * MANY, request, &done, index, MPI_STATUSES_IGNORE);
        expect(done > 0, "MPI_Waitsome found %d of %d", done, left);
        left -= done;
    }
    for (int i = 0; i < MANY; i++) {
        expect_data(in[i], turn[i % 6], data_seed(left_of(rank), rank, i), "one of many");
        free(in[i]);
        free(out[i]);
    }
}

/* Memory is unmapped and mapped again between messages: stale registrations must not be used. */
static void test_memory_comes_and_goes(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        size_t size = (1 << 20) + round * 4096;

        pass(MPI_Send, NULL, size, round);
        pass(NULL, MPI_Isend, size, round + 100);
    }
}

static void test_proc_null(void)
{
    MPI_Status status;
    char byte = 3;

    MPI_Send(&byte, 1, MPI_CHAR, MPI_PROC_NULL, TAG, MPI_COMM_WORLD);
    MPI_Recv(&byte, 1, MPI_CHAR, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &status);
    expect_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    expect(byte == 3, "a receive from nobody wrote something");
}

/* Every pair of ranks, in both directions at once. */
static void test_all_pairs(void)
{
    static const size_t size = 40000;
    unsigned char *out = allocate(size * ranks), *in = allocate(size * ranks);
    MPI_Request *request = allocate(2 * ranks * sizeof(*request));

    for (int peer = 0; peer < ranks; peer++) {
        data_fill(out + peer * size, size, data_seed(rank, peer, 0));
        MPI_Irecv(in + peer * size, size, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &request[peer]);
        MPI_Isend(out + peer * size, size, MPI_BYTE, peer, TAG, MPI_COMM_WORLD,
                  &request[ranks + peer]);
    }
    MPI_Waitall(2 * ranks, request, MPI_STATUSES_IGNORE);
    for (int peer = 0; peer < ranks; peer++)
        expect_data(in + peer * size, size, data_seed(peer, rank, 0), "from each");
    free(request);
    free(in);
    free(out);
}

/* A program may wait for a time by reading the clock. */
static void test_clock(void)
{
    double start = MPI_Wtime();

    while (MPI_Wtime() - start < 100e-6)
        ;
}

const struct mpi_case point_cases[] = {
    { "clock", test_clock, 1 },
    { "send", test_send, 1 },
    { "ssend", test_ssend, 1 },
    { "bsend", test_bsend, 1 },
    { "bsend-returns", test_bsend_returns, 1 },
    { "rsend", test_rsend, 1 },
    { "isend", test_isend, 1 },
    { "issend", test_issend, 1 },
    { "irsend", test_irsend, 1 },
    { "ssend-waits", test_ssend_waits, 2 },
    { "sendrecv", test_sendrecv, 1 },
    { "self", test_self, 1 },
    { "persistent", test_persistent, 1 },
    { "persistent-buffered", test_persistent_buffered, 1 },
    { "many-at-a-time", test_many_at_a_time, 1 },
    { "memory-comes-and-goes", test_memory_comes_and_goes, 1 },
    { "proc-null", test_proc_null, 1 },
    { "all-pairs", test_all_pairs, 1 },
    { NULL },
};
