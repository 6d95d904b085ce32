/* SPDX-License-Identifier: BSD-2-Clause */
/* Truncated receives, cancelled requests, buffered sends without a buffer. */
#include "case.h"

#include <stdlib.h>
#include <string.h>

#define TAG 5

static int error_class(int code)
{
    int class;

    MPI_Error_class(code, &class);
    return class;
}

/* Memory beyond the receive stays untouched, the send succeeds, the next message is complete. */
static void truncated(size_t size, size_t room, bool posted, MPI_Comm comm)
{
    unsigned char *out = allocate(size), *in = allocate(size);
    MPI_Request receive, sent;
    MPI_Status status;
    int code;

    data_fill(out, size, data_seed(rank, right_of(rank), 0));
    memset(in, 0xa5, size);
    if (posted)
        MPI_Irecv(in, room, MPI_BYTE, left_of(rank), TAG, comm, &receive);
    MPI_Barrier(comm);
    MPI_Isend(out, size, MPI_BYTE, right_of(rank), TAG, comm, &sent);
    if (!posted) {
        MPI_Probe(left_of(rank), TAG, comm, &status);
        MPI_Irecv(in, room, MPI_BYTE, left_of(rank), TAG, comm, &receive);
    }
    code = MPI_Wait(&receive, &status);
    expect(error_class(code) == MPI_ERR_TRUNCATE, "a message of %zu bytes in %zu: error class %d",
           size, room, error_class(code));
    expect_untouched(in + room, size - room, 0xa5,
                     posted ? "truncated, posted" : "truncated, unexpected");
    expect(MPI_Wait(&sent, MPI_STATUS_IGNORE) == MPI_SUCCESS, "the sender of %zu got an error",
           size);
    MPI_Sendrecv(out, size, MPI_BYTE, right_of(rank), TAG, in, size, MPI_BYTE, left_of(rank), TAG,
                 comm, MPI_STATUS_IGNORE);
    expect_data(in, size, data_seed(left_of(rank), rank, 0), "after a truncated one");
    free(in);
    free(out);
}

static void test_truncation(void)
{
    static const size_t pairs[][2] = {
        { 1, 0 }, { 64, 63 }, { 4096, 1 }, { 65539, 65538 }, { 1 << 20, 1 << 10 }
    };
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
        truncated(pairs[i][0], pairs[i][1], true, comm);
        truncated(pairs[i][0], pairs[i][1], false, comm);
    }
    MPI_Comm_free(&comm);
}

static void test_cancel_receive(void)
{
    char in = 0, out = 4;
    MPI_Request request, sent;
    MPI_Status status;
    int cancelled;

    MPI_Irecv(&in, 1, MPI_CHAR, MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    expect(cancelled, "a receive that nothing had matched was not cancelled");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Isend(&out, 1, MPI_CHAR, right_of(rank), 77, MPI_COMM_WORLD, &sent);
    MPI_Recv(&in, 1, MPI_CHAR, left_of(rank), 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect(in == 4, "the receive behind a cancelled one got nothing");
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
}

/* A receive that has matched cannot be cancelled. */
static void test_cancel_too_late(void)
{
    char in = 0, out = 6;
    MPI_Request request;
    MPI_Status status;
    int cancelled, done = 0;

    MPI_Irecv(&in, 1, MPI_CHAR, left_of(rank), 78, MPI_COMM_WORLD, &request);
    MPI_Send(&out, 1, MPI_CHAR, right_of(rank), 78, MPI_COMM_WORLD);
    while (!done)
        MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    expect(!cancelled && in == 6, "a receive that was done was cancelled");
}

/* A send is either cancelled without effect, or delivered. */
static void cancel_send(size_t size)
{
    unsigned char *out = allocate(size), *in = allocate(size);
    int cancelled, theirs;
    MPI_Request request;
    MPI_Status status;

    data_fill(out, size, data_seed(rank, right_of(rank), size));
    MPI_Isend(out, size, MPI_BYTE, right_of(rank), 79, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Sendrecv(NULL, 0, MPI_BYTE, right_of(rank), 80, NULL, 0, MPI_BYTE, left_of(rank), 80,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    MPI_Sendrecv(&cancelled, 1, MPI_INT, right_of(rank), 81, &theirs, 1, MPI_INT, left_of(rank), 81,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!theirs) {
        MPI_Recv(in, size, MPI_BYTE, left_of(rank), 79, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect_data(in, size, data_seed(left_of(rank), rank, size), "not cancelled");
    }
    free(in);
    free(out);
}

static void test_cancel_send(void)
{
    cancel_send(8);
    cancel_send(64);
}

static void test_no_buffer(void)
{
    MPI_Request request;
    MPI_Comm comm;
    int code;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Bsend_init(&rank, 1, MPI_INT, right_of(rank), TAG, comm, &request);
    code = MPI_Start(&request);
    if (code == MPI_SUCCESS)
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(error_class(code) == MPI_ERR_BUFFER, "a buffered send without a buffer: error class %d",
           error_class(code));
    MPI_Comm_free(&comm);
}

const struct mpi_case error_cases[] = {
    { "truncation", test_truncation, 1 },
    { "cancel-receive", test_cancel_receive, 1 },
    { "cancel-too-late", test_cancel_too_late, 1 },
    { "cancel-send", test_cancel_send, 1 },
    { "no-buffer", test_no_buffer, 1 },
    { NULL },
};
