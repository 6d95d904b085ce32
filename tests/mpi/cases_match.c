/* SPDX-License-Identifier: BSD-2-Clause */
/* Which message a receive gets: order, tags, wildcards, communicators, probes. */
#include "case.h"

#include <stdlib.h>
#include <string.h>

#define COUNT 400
#define FLOOD 2000

/* Short and long messages alternate: short ones must not overtake. */
static const size_t mixed[] = { 8, 100000, 0, 5000, 20000, 16, 300000 };

static size_t mixed_size(int n)
{
    return mixed[n % (sizeof(mixed) / sizeof(*mixed))];
}

static void test_order(void)
{
    unsigned char *buffer = allocate(300000), *out = allocate(300000);
    MPI_Status status;

    for (int i = 0; i < COUNT; i++) {
        MPI_Request sent;

        data_fill(out, mixed_size(i), data_seed(rank, right_of(rank), i));
        MPI_Isend(out, mixed_size(i), MPI_BYTE, right_of(rank), 1, MPI_COMM_WORLD, &sent);
        MPI_Recv(buffer, 300000, MPI_BYTE, left_of(rank), 1, MPI_COMM_WORLD, &status);
        MPI_Wait(&sent, MPI_STATUS_IGNORE);
        expect_status(&status, left_of(rank), 1, mixed_size(i));
        expect_data(buffer, mixed_size(i), data_seed(left_of(rank), rank, i), "in order");
    }
    free(out);
    free(buffer);
}

/* The same with all messages in flight at once, and wildcard receives. */
static void test_order_unexpected(void)
{
    static MPI_Request request[COUNT];
    static unsigned char *out[COUNT];
    unsigned char *buffer = allocate(300000);

    for (int i = 0; i < COUNT; i++) {
        out[i] = allocate(mixed_size(i));
        data_fill(out[i], mixed_size(i), data_seed(rank, right_of(rank), i));
        MPI_Isend(out[i], mixed_size(i), MPI_BYTE, right_of(rank), i % 3, MPI_COMM_WORLD,
                  &request[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        MPI_Status status;

        MPI_Recv(buffer, 300000, MPI_BYTE, left_of(rank), MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        expect_status(&status, left_of(rank), i % 3, mixed_size(i));
        expect_data(buffer, mixed_size(i), data_seed(left_of(rank), rank, i), "in order");
    }
    MPI_Waitall(COUNT, request, MPI_STATUSES_IGNORE);
    for (int i = 0; i < COUNT; i++)
        free(out[i]);
    free(buffer);
}

static void test_tags_in_reverse(void)
{
    static MPI_Request request[FLOOD];
    static int out[FLOOD];

    for (int i = 0; i < FLOOD; i++) {
        out[i] = rank * FLOOD + i;
        MPI_Isend(&out[i], 1, MPI_INT, right_of(rank), i, MPI_COMM_WORLD, &request[i]);
    }
    for (int i = FLOOD - 1; i >= 0; i--) {
        int in = -1;

        MPI_Recv(&in, 1, MPI_INT, left_of(rank), i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect(in == left_of(rank) * FLOOD + i, "tag %d brought the message %d", i, in);
    }
    MPI_Waitall(FLOOD, request, MPI_STATUSES_IGNORE);
}

/* Messages of one sender stay in order while others send, too. */
static void test_any_source(void)
{
    int *next = allocate(ranks * sizeof(int)), total = (ranks - 1) * COUNT;
    unsigned char *buffer = allocate(300000);

    memset(next, 0, ranks * sizeof(int));
    if (rank) {
        for (int i = 0; i < COUNT; i++) {
            data_fill(buffer, mixed_size(i), data_seed(rank, 0, i));
            MPI_Send(buffer, mixed_size(i), MPI_BYTE, 0, rank + i % 2, MPI_COMM_WORLD);
        }
        total = 0;
    }
    for (int i = 0; i < total; i++) {
        MPI_Status status;
        int from, n;

        MPI_Recv(buffer, 300000, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        from = status.MPI_SOURCE;
        expect(from > 0 && from < ranks, "a message from rank %d", from);
        n = next[from]++;
        expect_status(&status, from, from + n % 2, mixed_size(n));
        expect_data(buffer, mixed_size(n), data_seed(from, 0, n), "from anybody");
    }
    free(buffer);
    free(next);
}

/* Receives match in the order they were posted, wildcard or not. */
static void test_posted_in_order(void)
{
    int in[4] = { 0 }, out[4] = { 10, 11, 12, 13 };
    MPI_Request request[4];
    MPI_Status status[4];
    int left = left_of(rank);

    MPI_Irecv(&in[0], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request[0]);
    MPI_Irecv(&in[1], 1, MPI_INT, left, 5, MPI_COMM_WORLD, &request[1]);
    MPI_Irecv(&in[2], 1, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &request[2]);
    MPI_Irecv(&in[3], 1, MPI_INT, left, MPI_ANY_TAG, MPI_COMM_WORLD, &request[3]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 4; i++)
        MPI_Send(&out[i], 1, MPI_INT, right_of(rank), i == 3 ? 6 : 5, MPI_COMM_WORLD);
    MPI_Waitall(4, request, status);
    for (int i = 0; i < 4; i++) {
        expect(in[i] == out[i], "receive %d got the message %d", i, in[i] - 10);
        expect_status(&status[i], left, i == 3 ? 6 : 5, sizeof(int));
    }
}

static void test_probe(void)
{
    for (size_t i = 0; i < size_count; i++) {
        unsigned char *out = allocate(sizes[i]), *in = allocate(sizes[i]);
        MPI_Request sent;
        MPI_Status status;
        int there;

        MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &there, &status);
        expect(!there, "a probe found what nobody sent");
        data_fill(out, sizes[i], data_seed(rank, right_of(rank), i));
        MPI_Isend(out, sizes[i], MPI_BYTE, right_of(rank), 2, MPI_COMM_WORLD, &sent);
        if (i % 2) {
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        } else {
            do
                MPI_Iprobe(left_of(rank), 2, MPI_COMM_WORLD, &there, &status);
            while (!there);
        }
        expect_status(&status, left_of(rank), 2, sizes[i]);
        MPI_Recv(in, sizes[i], MPI_BYTE, left_of(rank), 2, MPI_COMM_WORLD, &status);
        expect_status(&status, left_of(rank), 2, sizes[i]);
        expect_data(in, sizes[i], data_seed(left_of(rank), rank, i), "probed");
        MPI_Wait(&sent, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
        free(in);
        free(out);
    }
}

/* A message taken by a matched probe matches no other receive. */
static void matched_probe(size_t size, bool immediate)
{
    unsigned char *out = allocate(2 * size), *first = allocate(size), *second = allocate(size);
    MPI_Message message;
    MPI_Request request[3];
    MPI_Status status;
    int there = 0;

    for (int i = 0; i < 2; i++) {
        data_fill(out + i * size, size, data_seed(rank, right_of(rank), i));
        MPI_Isend(out + i * size, size, MPI_BYTE, right_of(rank), 3, MPI_COMM_WORLD, &request[i]);
    }
    if (immediate) {
        while (!there)
            MPI_Improbe(left_of(rank), 3, MPI_COMM_WORLD, &there, &message, &status);
    } else {
        MPI_Mprobe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &message, &status);
    }
    expect_status(&status, left_of(rank), 3, size);
    MPI_Recv(second, size, MPI_BYTE, left_of(rank), 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect_data(second, size, data_seed(left_of(rank), rank, 1), "behind the matched one");
    if (immediate) {
        MPI_Imrecv(first, size, MPI_BYTE, &message, &request[2]);
        MPI_Wait(&request[2], &status);
    } else {
        MPI_Mrecv(first, size, MPI_BYTE, &message, &status);
    }
    expect_status(&status, left_of(rank), 3, size);
    expect_data(first, size, data_seed(left_of(rank), rank, 0), "matched");
    expect(message == MPI_MESSAGE_NULL, "a message that was received is still there");
    MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    free(second);
    free(first);
    free(out);
}

static void test_matched_probe(void)
{
    MPI_Message message;
    MPI_Status status;
    char byte;

    for (size_t i = 0; i < size_count; i++)
        matched_probe(sizes[i], i % 2);
    MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &message, &status);
    expect(message == MPI_MESSAGE_NO_PROC, "a message from nobody");
    MPI_Mrecv(&byte, 1, MPI_CHAR, &message, &status);
    expect_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
}

/* A call with one status leaves its MPI_ERROR alone. */
static void test_probe_leaves_error(void)
{
    enum { OWN = 4711 };
    MPI_Status status = { .MPI_ERROR = OWN };
    MPI_Message message;
    MPI_Request sent;
    int there = 0, in;

    MPI_Isend(&rank, 1, MPI_INT, right_of(rank), 6, MPI_COMM_WORLD, &sent);
    MPI_Probe(left_of(rank), 6, MPI_COMM_WORLD, &status);
    expect(status.MPI_ERROR == OWN, "MPI_Probe set MPI_ERROR to %d", status.MPI_ERROR);
    MPI_Iprobe(left_of(rank), 6, MPI_COMM_WORLD, &there, &status);
    expect(there && status.MPI_ERROR == OWN, "MPI_Iprobe set MPI_ERROR to %d", status.MPI_ERROR);
    MPI_Mprobe(left_of(rank), 6, MPI_COMM_WORLD, &message, &status);
    expect(status.MPI_ERROR == OWN, "MPI_Mprobe set MPI_ERROR to %d", status.MPI_ERROR);
    MPI_Mrecv(&in, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    MPI_Isend(&rank, 1, MPI_INT, right_of(rank), 6, MPI_COMM_WORLD, &sent);
    for (there = 0; !there;)
        MPI_Improbe(left_of(rank), 6, MPI_COMM_WORLD, &there, &message, &status);
    expect(status.MPI_ERROR == OWN, "MPI_Improbe set MPI_ERROR to %d", status.MPI_ERROR);
    MPI_Mrecv(&in, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
}

/* How a long message is received. Within a node it comes in pieces, and some are here before. */
enum asked { POSTED, LATE, PROBED, MATCHED, STRIDED, ASKED };

static void send_long(const unsigned char *data, size_t size, enum asked asked)
{
    MPI_Request request;

    if (asked != LATE) {
        MPI_Send(data, size, MPI_BYTE, rank + 1, asked, MPI_COMM_WORLD);
        return;
    }
    MPI_Isend(data, size, MPI_BYTE, rank + 1, asked, MPI_COMM_WORLD, &request);
    MPI_Send(data, 1, MPI_BYTE, rank + 1, ASKED, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void receive_long(unsigned char *in, size_t size, enum asked asked, MPI_Status *status)
{
    MPI_Message message;
    MPI_Datatype type;

    switch (asked) {
    case LATE:
        MPI_Recv(in, 1, MPI_BYTE, rank - 1, ASKED, MPI_COMM_WORLD, status);
        break;
    case PROBED:
        MPI_Probe(rank - 1, PROBED, MPI_COMM_WORLD, status);
        expect_status(status, rank - 1, PROBED, size);
        break;
    case MATCHED:
        MPI_Mprobe(MPI_ANY_SOURCE, MATCHED, MPI_COMM_WORLD, &message, status);
        expect_status(status, rank - 1, MATCHED, size);
        MPI_Mrecv(in, size, MPI_BYTE, &message, status);
        return;
    case STRIDED:
        MPI_Type_vector(size / 16, 16, 40, MPI_BYTE, &type);
        MPI_Type_commit(&type);
        MPI_Recv(in, 1, type, rank - 1, STRIDED, MPI_COMM_WORLD, status);
        MPI_Type_free(&type);
        for (size_t i = 0; i < size; i += 16)
            memmove(in + i, in + i / 16 * 40, 16);
        return;
    default:
        break;
    }
    MPI_Recv(in, size, MPI_BYTE, rank - 1, asked, MPI_COMM_WORLD, status);
}

static void test_long_one_way(void)
{
    static const size_t lengths[] = { 40000, 65536, 100000, 131072, 200000, 262144 };
    unsigned char *buffer = allocate(3 * 262144);
    MPI_Status status;

    for (size_t i = 0; i < 4 * ASKED * sizeof(lengths) / sizeof(*lengths); i++) {
        size_t size = lengths[i / ASKED % (sizeof(lengths) / sizeof(*lengths))];
        enum asked asked = i % ASKED;

        if (rank % 2 == 0 && rank + 1 < ranks) {
            data_fill(buffer, size, data_seed(rank, rank + 1, i));
            send_long(buffer, size, asked);
        } else if (rank % 2) {
            receive_long(buffer, size, asked, &status);
            expect_status(&status, rank - 1, asked, size);
            expect_data(buffer, size, data_seed(rank - 1, rank, i), "long");
        }
    }
    free(buffer);
}

/* The message arrives while its receiver waits in MPI_Recv. */
enum waiting { SHORT, EMPTY, ANY, SYNCHRONOUS, FOLLOWED, OVERTAKEN, LONGER, CUT, WAITINGS };

static void answer(int peer, enum waiting waiting, unsigned char *data, size_t size)
{
    MPI_Request sent;
    int in;

    MPI_Recv(&in, 1, MPI_INT, peer, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (double until = MPI_Wtime() + 1e-6 * (in % 50); MPI_Wtime() < until;)
        ;
    if (waiting == OVERTAKEN)
        MPI_Send(&in, 1, MPI_INT, peer, 9, MPI_COMM_WORLD);
    if (waiting == SYNCHRONOUS || waiting == FOLLOWED)
        MPI_Issend(data, size, MPI_BYTE, peer, 7, MPI_COMM_WORLD, &sent);
    else
        MPI_Isend(data, size, MPI_BYTE, peer, 7, MPI_COMM_WORLD, &sent);
    if (waiting == FOLLOWED)
        MPI_Send(&in, 1, MPI_INT, peer, 7, MPI_COMM_WORLD);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
}

static void ask(int peer, enum waiting waiting, int number, size_t size)
{
    bool any = waiting == ANY;
    size_t room = waiting == CUT ? size / 2 : size;
    unsigned char in[4096];
    MPI_Status status;
    int error, class, other;

    memset(in, 0, sizeof(in));
    MPI_Send(&number, 1, MPI_INT, peer, 8, MPI_COMM_WORLD);
    error = MPI_Recv(in, room, MPI_BYTE, any ? MPI_ANY_SOURCE : peer, any ? MPI_ANY_TAG : 7,
                     MPI_COMM_WORLD, &status);
    if (waiting == CUT) {
        MPI_Error_class(error, &class);
        expect(class == MPI_ERR_TRUNCATE, "half the room: error class %d", class);
    } else {
        expect_status(&status, peer, 7, size);
        expect_data(in, size, data_seed(peer, rank, number), "awaited");
    }
    if (waiting != OVERTAKEN && waiting != FOLLOWED)
        return;
    MPI_Recv(&other, 1, MPI_INT, peer, waiting == OVERTAKEN ? 9 : 7, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    expect(other == number, "the other message brought %d, not %d", other, number);
}

static void test_awaited(void)
{
    static const size_t lengths[WAITINGS] = { 40, 0, 600, 8, 4, 1024, 4000, 100 };
    unsigned char data[4096];
    int peer = rank ^ 1;

    if (peer >= ranks)
        return;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < 100 * WAITINGS; i++) {
        enum waiting waiting = i % WAITINGS;
        size_t size = lengths[waiting];

        if (rank % 2) {
            ask(peer, waiting, i, size);
        } else {
            data_fill(data, size, data_seed(rank, peer, i));
            answer(peer, waiting, data, size);
        }
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void test_communicators_apart(void)
{
    MPI_Comm copies[3];
    MPI_Request request[3];
    int out[3];

    for (int i = 0; i < 3; i++) {
        out[i] = 100 + i;
        MPI_Comm_dup(MPI_COMM_WORLD, &copies[i]);
    }
    for (int i = 0; i < 3; i++)
        MPI_Isend(&out[i], 1, MPI_INT, right_of(rank), 4, copies[i], &request[i]);
    for (int i = 2; i >= 0; i--) {
        int in = 0;

        MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, copies[i], MPI_STATUS_IGNORE);
        expect(in == 100 + i, "communicator %d brought the message of %d", i, in - 100);
    }
    MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 3; i++)
        MPI_Comm_free(&copies[i]);
}

/* Every other rank, in reverse. */
static void test_split(void)
{
    MPI_Comm part;
    int own, count, before, in = -1;

    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &part);
    MPI_Comm_rank(part, &own);
    MPI_Comm_size(part, &count);
    expect(count == (ranks + !(rank % 2)) / 2, "%d ranks in a half of %d", count, ranks);
    before = (own + count - 1) % count;
    MPI_Sendrecv(&rank, 1, MPI_INT, (own + 1) % count, 0, &in, 1, MPI_INT, before, 0, part,
                 MPI_STATUS_IGNORE);
    expect(in % 2 == rank % 2 && (own ? in == rank + 2 : in == rank % 2),
           "the neighbour in the half of rank %d is %d", rank, in);
    MPI_Comm_free(&part);
}

/* An intercommunicator between the two halves of the ranks. */
static void test_between_groups(void)
{
    int colour = rank % 2, own, others, in = -1;
    MPI_Comm half, between;

    MPI_Comm_split(MPI_COMM_WORLD, colour, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !colour, 9, &between);
    MPI_Comm_rank(half, &own);
    MPI_Comm_remote_size(between, &others);
    if (own < others) {
        MPI_Sendrecv(&rank, 1, MPI_INT, own, 0, &in, 1, MPI_INT, own, 0, between,
                     MPI_STATUS_IGNORE);
        expect(in == (rank ^ 1), "the counterpart of %d is %d", rank, in);
    }
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
}

const struct mpi_case match_cases[] = {
    { "order", test_order, 1 },
    { "order-unexpected", test_order_unexpected, 1 },
    { "tags-in-reverse", test_tags_in_reverse, 1 },
    { "any-source", test_any_source, 2 },
    { "posted-in-order", test_posted_in_order, 1 },
    { "probe", test_probe, 1 },
    { "matched-probe", test_matched_probe, 1 },
    { "probe-leaves-error", test_probe_leaves_error, 1 },
    { "long-one-way", test_long_one_way, 2 },
    { "awaited", test_awaited, 2 },
    { "communicators-apart", test_communicators_apart, 1 },
    { "split", test_split, 1 },
    { "between-groups", test_between_groups, 2 },
    { NULL },
};
