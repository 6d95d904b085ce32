/* SPDX-License-Identifier: BSD-2-Clause */
/* Collectives compared with their definitions, short and long, blocking and non-blocking, while
 * point-to-point messages and wildcard receives are pending. */
#include "case.h"

#include <stdlib.h>
#include <string.h>

static const int counts[] = { 0, 1, 5, 300, 5000, 70000 };
#define COUNTS (sizeof(counts) / sizeof(*counts))

static int value(int from, int to, int i)
{
    return from * 7919 + to * 104729 + i * 31;
}

static int *vector(int count)
{
    return allocate(count * sizeof(int));
}

static void expect_int(int found, int wanted, const char *what, int i)
{
    expect(found == wanted, "%s: element %d is %d and should be %d", what, i, found, wanted);
}

static void for_counts(void (*run)(int count, MPI_Comm comm))
{
    for (size_t i = 0; i < COUNTS; i++)
        run(counts[i], MPI_COMM_WORLD);
}

static void bcast(int count, MPI_Comm comm)
{
    int *data = vector(count);

    for (int root = 0; root < ranks; root++) {
        MPI_Request request;

        for (int i = 0; i < count; i++)
            data[i] = rank == root ? value(root, 0, i) : -1;
        if (root % 2) {
            MPI_Ibcast(data, count, MPI_INT, root, comm, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Bcast(data, count, MPI_INT, root, comm);
        }
        for (int i = 0; i < count; i++)
            expect_int(data[i], value(root, 0, i), "bcast", i);
    }
    free(data);
}

static void test_bcast(void)
{
    for_counts(bcast);
}

static int sum_of(int i)
{
    int sum = 0;

    for (int from = 0; from < ranks; from++)
        sum += value(from, 0, i);
    return sum;
}

static void reduce(int count, MPI_Comm comm)
{
    int *out = vector(count), *in = vector(count);
    MPI_Request request;

    for (int i = 0; i < count; i++)
        out[i] = value(rank, 0, i);
    for (int root = 0; root < ranks; root++) {
        MPI_Reduce(out, in, count, MPI_INT, MPI_SUM, root, comm);
        for (int i = 0; rank == root && i < count; i++)
            expect_int(in[i], sum_of(i), "reduce", i);
    }
    MPI_Allreduce(out, in, count, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < count; i++)
        expect_int(in[i], sum_of(i), "allreduce", i);
    MPI_Iallreduce(MPI_IN_PLACE, out, count, MPI_INT, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; i++)
        expect_int(out[i], sum_of(i), "iallreduce in place", i);
    free(in);
    free(out);
}

static void test_reduce(void)
{
    for_counts(reduce);
}

/* The product of two by two matrices: the order of ranks matters. */
static void multiply(void *left, void *right, int *count, MPI_Datatype *type)
{
    unsigned int *a = left, *b = right;

    for (int i = 0; i < *count; i++, a += 4, b += 4) {
        unsigned int product[4] = { a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3],
                                    a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3] };

        memcpy(b, product, sizeof(product));
    }
}

static void matrix_of(int from, unsigned int *matrix)
{
    matrix[0] = from + 1;
    matrix[1] = 2 * from + 3;
    matrix[2] = from * from + 1;
    matrix[3] = 5 - from;
}

static void test_reduce_in_order(void)
{
    unsigned int own[4], found[4], prefix[4], wanted[4], next[4];
    MPI_Datatype matrix;
    int one = 1;
    MPI_Op op;

    MPI_Type_contiguous(4, MPI_UNSIGNED, &matrix);
    MPI_Type_commit(&matrix);
    MPI_Op_create(multiply, 0, &op);
    matrix_of(rank, own);
    MPI_Allreduce(own, found, 1, matrix, op, MPI_COMM_WORLD);
    MPI_Scan(own, prefix, 1, matrix, op, MPI_COMM_WORLD);
    matrix_of(ranks - 1, wanted);
    for (int from = ranks - 2; from >= 0; from--) {
        matrix_of(from, next);
        multiply(next, wanted, &one, &matrix);
    }
    expect(!memcmp(found, wanted, sizeof(found)), "a product of matrices in the wrong order");
    matrix_of(rank, wanted);
    for (int from = rank - 1; from >= 0; from--) {
        matrix_of(from, next);
        multiply(next, wanted, &one, &matrix);
    }
    expect(!memcmp(prefix, wanted, sizeof(prefix)), "a scan of matrices in the wrong order");
    MPI_Op_free(&op);
    MPI_Type_free(&matrix);
}

static void test_scan(void)
{
    int own = rank + 1, found = 0, before = 0;
    struct {
        double value;
        int place;
    } mine = { (rank * 5) % 7, rank }, best;

    MPI_Scan(&own, &found, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect_int(found, (rank + 1) * (rank + 2) / 2, "scan", 0);
    MPI_Exscan(&own, &before, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank)
        expect_int(before, rank * (rank + 1) / 2, "exscan", 0);
    MPI_Allreduce(&mine, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    for (int from = 0; from < ranks; from++)
        expect((from * 5) % 7 <= best.value, "maxloc: rank %d has more than %g", from, best.value);
    expect((best.place * 5) % 7 == best.value, "maxloc names rank %d", best.place);
}

static void gather(int count, MPI_Comm comm)
{
    int *own = vector(count), *all = vector(count * ranks), root = ranks - 1;

    for (int i = 0; i < count; i++)
        own[i] = value(rank, 0, i);
    MPI_Gather(own, count, MPI_INT, all, count, MPI_INT, root, comm);
    for (int i = 0; rank == root && i < count * ranks; i++)
        expect_int(all[i], value(i / count, 0, i % count), "gather", i);
    memset(own, 0, count * sizeof(int));
    MPI_Scatter(all, count, MPI_INT, own, count, MPI_INT, root, comm);
    for (int i = 0; i < count; i++)
        expect_int(own[i], value(rank, 0, i), "scatter", i);
    memset(all, 0, count * ranks * sizeof(int));
    MPI_Allgather(own, count, MPI_INT, all, count, MPI_INT, comm);
    for (int i = 0; i < count * ranks; i++)
        expect_int(all[i], value(i / count, 0, i % count), "allgather", i);
    free(all);
    free(own);
}

static void test_gather(void)
{
    for_counts(gather);
}

/* Rank r has r parts; rank 0 none at all. */
static void uneven(int count, MPI_Comm comm)
{
    int *each = vector(ranks), *places = vector(ranks), total = 0;
    int *own = vector(count * rank), *all;

    for (int from = 0; from < ranks; from++) {
        each[from] = from * count;
        places[from] = total;
        total += each[from] + 1;
    }
    all = vector(total);
    for (int i = 0; i < each[rank]; i++)
        own[i] = value(rank, 1, i);
    MPI_Allgatherv(own, each[rank], MPI_INT, all, each, places, MPI_INT, comm);
    for (int from = 0; from < ranks; from++) {
        for (int i = 0; i < each[from]; i++)
            expect_int(all[places[from] + i], value(from, 1, i), "allgatherv", i);
    }
    memset(own, 0, each[rank] * sizeof(int));
    MPI_Scatterv(all, each, places, MPI_INT, own, each[rank], MPI_INT, 0, comm);
    for (int i = 0; i < each[rank]; i++)
        expect_int(own[i], value(rank, 1, i), "scatterv", i);
    memset(all, 0, total * sizeof(int));
    MPI_Gatherv(own, each[rank], MPI_INT, all, each, places, MPI_INT, 0, comm);
    for (int from = 0; !rank && from < ranks; from++) {
        for (int i = 0; i < each[from]; i++)
            expect_int(all[places[from] + i], value(from, 1, i), "gatherv", i);
    }
    free(all);
    free(own);
    free(places);
    free(each);
}

static void test_uneven(void)
{
    uneven(0, MPI_COMM_WORLD);
    uneven(3, MPI_COMM_WORLD);
    uneven(20000, MPI_COMM_WORLD);
}

static void alltoall(int count, MPI_Comm comm)
{
    int *out = vector(count * ranks), *in = vector(count * ranks);
    MPI_Request request;

    for (int i = 0; i < count * ranks; i++)
        out[i] = value(rank, i / count, i % count);
    MPI_Alltoall(out, count, MPI_INT, in, count, MPI_INT, comm);
    for (int i = 0; i < count * ranks; i++)
        expect_int(in[i], value(i / count, rank, i % count), "alltoall", i);
    memset(in, 0, count * ranks * sizeof(int));
    MPI_Ialltoall(out, count, MPI_INT, in, count, MPI_INT, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < count * ranks; i++)
        expect_int(in[i], value(i / count, rank, i % count), "ialltoall", i);
    free(in);
    free(out);
}

static void test_alltoall(void)
{
    for_counts(alltoall);
}

/* From a to b go a + 2b parts, and none where that is a multiple of three. */
static int part(int from, int to, int count)
{
    return (from + 2 * to) % 3 ? (from + 2 * to) * count : 0;
}

static void alltoallv(int count, bool by_type)
{
    int *send_count = vector(ranks), *send_place = vector(ranks), sent = 0;
    int *recv_count = vector(ranks), *recv_place = vector(ranks), received = 0;
    MPI_Datatype *types = allocate(ranks * sizeof(*types));
    int unit = by_type ? sizeof(int) : 1, *out, *in;

    for (int peer = 0; peer < ranks; peer++) {
        send_count[peer] = part(rank, peer, count);
        recv_count[peer] = part(peer, rank, count);
        send_place[peer] = sent * unit;
        recv_place[peer] = received * unit;
        sent += send_count[peer];
        received += recv_count[peer];
        types[peer] = MPI_INT;
    }
    out = vector(sent);
    in = vector(received);
    for (int peer = 0; peer < ranks; peer++) {
        for (int i = 0; i < send_count[peer]; i++)
            out[send_place[peer] / unit + i] = value(rank, peer, i);
    }
    if (by_type)
        MPI_Alltoallw(out, send_count, send_place, types, in, recv_count, recv_place, types,
                      MPI_COMM_WORLD);
    else
        MPI_Alltoallv(out, send_count, send_place, MPI_INT, in, recv_count, recv_place, MPI_INT,
                      MPI_COMM_WORLD);
    for (int peer = 0; peer < ranks; peer++) {
        for (int i = 0; i < recv_count[peer]; i++)
            expect_int(in[recv_place[peer] / unit + i], value(peer, rank, i), "alltoallv", i);
    }
    free(in);
    free(out);
    free(types);
    free(recv_place);
    free(recv_count);
    free(send_place);
    free(send_count);
}

static void test_alltoallv(void)
{
    for (int count = 1; count < 20000; count *= 7) {
        alltoallv(count, false);
        alltoallv(count, true);
    }
}

static void reduce_scatter(int count, MPI_Comm comm)
{
    int *each = vector(ranks), total = 0, before = 0, *out, *in;

    for (int to = 0; to < ranks; to++) {
        each[to] = to % 2 ? count : count / 2;
        before += to < rank ? each[to] : 0;
        total += each[to];
    }
    out = vector(total > count * ranks ? total : count * ranks);
    in = vector(count);
    for (int i = 0; i < count * ranks; i++)
        out[i] = value(rank, 0, i);
    MPI_Reduce_scatter(out, in, each, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < each[rank]; i++)
        expect_int(in[i], sum_of(before + i), "reduce_scatter", i);
    MPI_Reduce_scatter_block(out, in, count, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < count; i++)
        expect_int(in[i], sum_of(rank * count + i), "reduce_scatter_block", i);
    free(in);
    free(out);
    free(each);
}

static void test_reduce_scatter(void)
{
    for_counts(reduce_scatter);
}

/* No rank leaves a barrier before the last has entered. */
static void test_barrier(void)
{
    MPI_Request request;

    for (int late = 0; late < ranks; late++) {
        int token = 0, there = 0;

        if (rank == late) {
            for (int peer = 0; peer < ranks; peer++) {
                if (peer != rank)
                    MPI_Send(&late, 1, MPI_INT, peer, 11, MPI_COMM_WORLD);
            }
        }
        if (late % 2) {
            MPI_Ibarrier(MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Barrier(MPI_COMM_WORLD);
        }
        if (rank != late) {
            while (!there)
                MPI_Iprobe(late, 11, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
            MPI_Recv(&token, 1, MPI_INT, late, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            expect_int(token, late, "barrier", 0);
        }
    }
}

/* Wildcard receives are posted during collectives, and must not get their messages. */
static void test_wildcards_apart(void)
{
    int in[8], out = 1234, *data = vector(70000);
    MPI_Request request[8];

    for (int i = 0; i < 8; i++)
        MPI_Irecv(&in[i], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request[i]);
    for (int i = 0; i < 70000; i++)
        data[i] = rank;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, data, 70000, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Bcast(data, 10, MPI_INT, 0, MPI_COMM_WORLD);
    expect_int(data[69999], ranks * (ranks - 1) / 2, "allreduce", 69999);
    for (int i = 0; i < 8; i++)
        MPI_Send(&out, 1, MPI_INT, right_of(rank), i, MPI_COMM_WORLD);
    MPI_Waitall(8, request, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 8; i++)
        expect_int(in[i], out, "wildcard", i);
    free(data);
}

/* Several in flight at once, also on subsets of the ranks. */
static void test_overlapping(void)
{
    int sums[6], bytes[6], own, count;
    MPI_Request request[12];
    MPI_Comm part;

    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &part);
    MPI_Comm_rank(part, &own);
    MPI_Comm_size(part, &count);
    for (int i = 0; i < 6; i++) {
        sums[i] = own + i;
        bytes[i] = own ? -1 : i;
        MPI_Iallreduce(MPI_IN_PLACE, &sums[i], 1, MPI_INT, MPI_SUM, part, &request[2 * i]);
        MPI_Ibcast(&bytes[i], 1, MPI_INT, 0, part, &request[2 * i + 1]);
    }
    MPI_Waitall(12, request, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 6; i++) {
        expect_int(sums[i], count * (count - 1) / 2 + i * count, "overlapping allreduce", i);
        expect_int(bytes[i], i, "overlapping bcast", i);
    }
    MPI_Comm_free(&part);
}

const struct mpi_case collective_cases[] = {
    { "bcast", test_bcast, 1 },
    { "reduce", test_reduce, 1 },
    { "reduce-in-order", test_reduce_in_order, 1 },
    { "scan", test_scan, 1 },
    { "gather", test_gather, 1 },
    { "uneven-gather", test_uneven, 1 },
    { "alltoall", test_alltoall, 1 },
    { "alltoallv", test_alltoallv, 1 },
    { "reduce-scatter", test_reduce_scatter, 1 },
    { "barrier", test_barrier, 1 },
    { "wildcards-apart", test_wildcards_apart, 1 },
    { "overlapping-collectives", test_overlapping, 1 },
    { NULL },
};
