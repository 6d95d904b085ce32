/* SPDX-License-Identifier: BSD-2-Clause */
/* Non-contiguous data on either side, short and long. */
#include "case.h"

#include <stdlib.h>
#include <string.h>

#define TAG  6
#define FILL 0xa5

/* A layout: a datatype, and where its bytes lie from the address that is given to MPI. */
struct layout {
    const char *name;
    MPI_Datatype type;
    MPI_Aint low, high; /* all of them within [low, high) */
};

static struct layout layout_of(const char *name, MPI_Datatype type)
{
    struct layout layout = { .name = name, .type = type };
    MPI_Aint extent;

    MPI_Type_commit(&layout.type);
    MPI_Type_get_true_extent(layout.type, &layout.low, &extent);
    layout.high = layout.low + extent;
    return layout;
}

static struct layout make_vector(int bytes)
{
    MPI_Datatype type;

    MPI_Type_vector(bytes / 16 + 1, 16, 40, MPI_BYTE, &type);
    return layout_of("vector", type);
}

static struct layout make_backward(int bytes)
{
    MPI_Datatype type;

    MPI_Type_create_hvector(bytes / 8 + 1, 8, -24, MPI_BYTE, &type);
    return layout_of("backward vector", type);
}

static struct layout make_indexed(int bytes)
{
    int count = bytes / 100 + 1, *lengths = allocate(count * sizeof(int));
    int *places = allocate(count * sizeof(int));
    MPI_Datatype type;

    for (int i = 0; i < count; i++) {
        lengths[i] = 1 + i * 37 % 200;
        places[i] = i * 256 + i % 7;
    }
    MPI_Type_indexed(count, lengths, places, MPI_BYTE, &type);
    free(places);
    free(lengths);
    return layout_of("indexed", type);
}

static struct layout make_struct(int bytes)
{
    int lengths[] = { 1, 3, 2 };
    MPI_Aint places[] = { 0, 16, 48 };
    MPI_Datatype types[] = { MPI_CHAR, MPI_DOUBLE, MPI_SHORT }, one, sized, type;

    MPI_Type_create_struct(3, lengths, places, types, &one);
    MPI_Type_create_resized(one, 0, 64, &sized);
    MPI_Type_contiguous(bytes / 29 + 1, sized, &type);
    MPI_Type_free(&sized);
    MPI_Type_free(&one);
    return layout_of("structures", type);
}

static struct layout make_subarray(int bytes)
{
    int side = 4, whole[3], part[3], start[3] = { 1, 2, 3 };
    MPI_Datatype type;

    while (side * side * side < bytes)
        side++;
    for (int i = 0; i < 3; i++) {
        part[i] = side;
        whole[i] = side + 5;
    }
    MPI_Type_create_subarray(3, whole, part, start, MPI_ORDER_C, MPI_BYTE, &type);
    return layout_of("subarray", type);
}

/* Contiguous, but not at the address passed to MPI. */
static struct layout make_displaced(int bytes)
{
    MPI_Aint place = 48;
    MPI_Datatype type;
    int length = bytes;

    MPI_Type_create_hindexed(1, &length, &place, MPI_BYTE, &type);
    return layout_of("displaced", type);
}

static struct layout (*const makers[])(int) = { make_vector, make_backward, make_indexed,
                                                make_struct, make_subarray, make_displaced };
#define LAYOUTS (sizeof(makers) / sizeof(*makers))

static const int lengths[] = { 1, 100, 4000, 20000, 300000 };
#define LENGTHS (sizeof(lengths) / sizeof(*lengths))

/* Memory for one element of a layout; *base is what MPI is given. */
static unsigned char *place(const struct layout *layout, unsigned char **base)
{
    size_t size = layout->high - layout->low;
    unsigned char *memory = allocate(size);

    memset(memory, FILL, size);
    *base = memory - layout->low;
    return memory;
}

/* Writes bytes into a layout with MPI_Unpack. */
static void scatter(const struct layout *layout, unsigned char *base, const void *bytes, int size)
{
    int position = 0;

    MPI_Unpack(bytes, size, &position, base, 1, layout->type, MPI_COMM_WORLD);
}

/* What memory must look like when these bytes were received and nothing else was touched. */
static void expect_received(const struct layout *layout, const unsigned char *memory,
                            const void *bytes, int size)
{
    unsigned char *base, *wanted = place(layout, &base);

    scatter(layout, base, bytes, size);
    expect(!memcmp(wanted, memory, layout->high - layout->low),
           "%s of %d bytes: wrong bytes, or bytes between them written", layout->name, size);
    free(wanted);
}

static void exchange(const struct layout *layout, bool gather_side, bool scatter_side)
{
    int size, left = left_of(rank), right = right_of(rank);
    unsigned char *out_base, *in_base, *bytes, *theirs;
    unsigned char *out = place(layout, &out_base), *in = place(layout, &in_base);
    MPI_Request sent;

    MPI_Type_size(layout->type, &size);
    bytes = allocate(size);
    theirs = allocate(size);
    data_fill(bytes, size, data_seed(rank, right, size));
    data_fill(theirs, size, data_seed(left, rank, size));
    scatter(layout, out_base, bytes, size);
    if (gather_side)
        MPI_Isend(out_base, 1, layout->type, right, TAG, MPI_COMM_WORLD, &sent);
    else
        MPI_Isend(bytes, size, MPI_BYTE, right, TAG, MPI_COMM_WORLD, &sent);
    if (scatter_side) {
        MPI_Recv(in_base, 1, layout->type, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect_received(layout, in, theirs, size);
    } else {
        unsigned char *plain = allocate(size);

        MPI_Recv(plain, size, MPI_BYTE, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect(!memcmp(plain, theirs, size), "%s of %d bytes gathered wrongly", layout->name, size);
        free(plain);
    }
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    free(theirs);
    free(bytes);
    free(in);
    free(out);
}

static void for_all(void (*run)(const struct layout *layout))
{
    for (size_t maker = 0; maker < LAYOUTS; maker++) {
        for (size_t i = 0; i < LENGTHS; i++) {
            struct layout layout = makers[maker](lengths[i]);

            run(&layout);
            MPI_Type_free(&layout.type);
        }
    }
}

static void both_sides(const struct layout *layout)
{
    exchange(layout, true, true);
}

static void sender_only(const struct layout *layout)
{
    exchange(layout, true, false);
}

static void receiver_only(const struct layout *layout)
{
    exchange(layout, false, true);
}

static void test_both_sides(void)
{
    for_all(both_sides);
}

static void test_sender_only(void)
{
    for_all(sender_only);
}

static void test_receiver_only(void)
{
    for_all(receiver_only);
}

/* Requests that are started again gather again; one of them starts beside its address. */
static void persistent(const struct layout *layout)
{
    unsigned char *base, *out = place(layout, &base), *bytes, *in;
    int size, left = left_of(rank);
    MPI_Request request[2];

    MPI_Type_size(layout->type, &size);
    bytes = allocate(size);
    in = allocate(size);
    MPI_Send_init(base, 1, layout->type, right_of(rank), TAG, MPI_COMM_WORLD, &request[0]);
    MPI_Recv_init(in, size, MPI_BYTE, left, TAG, MPI_COMM_WORLD, &request[1]);
    for (int round = 0; round < 3; round++) {
        data_fill(bytes, size, data_seed(rank, right_of(rank), round));
        scatter(layout, base, bytes, size);
        MPI_Startall(2, request);
        MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
        expect_data(in, size, data_seed(left, rank, round), layout->name);
    }
    MPI_Request_free(&request[0]);
    MPI_Request_free(&request[1]);
    free(in);
    free(bytes);
    free(out);
}

static void test_persistent_types(void)
{
    for_all(persistent);
}

/* Elements of a type with an extent of its own; fewer arrive than there is room for. */
static void test_counts(void)
{
    int out[40], in[80], count, elements;
    MPI_Datatype pair, sized;
    MPI_Request sent;
    MPI_Status status;

    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_create_resized(pair, 0, 4 * sizeof(int), &sized);
    MPI_Type_commit(&sized);
    memset(in, 0xff, sizeof(in));
    for (int i = 0; i < 40; i++)
        out[i] = rank * 1000 + i;
    MPI_Isend(out, 31, MPI_INT, right_of(rank), TAG, MPI_COMM_WORLD, &sent);
    MPI_Recv(in, 20, sized, left_of(rank), TAG, MPI_COMM_WORLD, &status);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    MPI_Get_count(&status, sized, &count);
    MPI_Get_elements(&status, sized, &elements);
    expect(count == MPI_UNDEFINED && elements == 31, "half an element: count %d, elements %d",
           count, elements);
    for (int i = 0; i < 31; i++)
        expect(in[i / 2 * 4 + i % 2] == left_of(rank) * 1000 + i, "element %d is wrong", i);
    expect(in[2] == -1 && in[3] == -1, "the gap of an element was written");
    MPI_Type_free(&sized);
    MPI_Type_free(&pair);
}

/* Messages of an empty datatype. */
static void test_empty_type(void)
{
    MPI_Datatype nothing;
    MPI_Status status;
    char byte = 9;

    MPI_Type_contiguous(0, MPI_BYTE, &nothing);
    MPI_Type_commit(&nothing);
    MPI_Sendrecv(&byte, 3, nothing, right_of(rank), TAG, &byte, 5, nothing, left_of(rank), TAG,
                 MPI_COMM_WORLD, &status);
    expect_status(&status, left_of(rank), TAG, 0);
    expect(byte == 9, "a message of no bytes wrote one");
    MPI_Type_free(&nothing);
}

static void test_packed(void)
{
    unsigned char out[2048], in[2048];
    double real = rank + 0.5, real_in = 0;
    int number = rank, number_in = 0, position = 0, length;
    MPI_Status status;

    MPI_Pack(&number, 1, MPI_INT, out, sizeof(out), &position, MPI_COMM_WORLD);
    MPI_Pack(&real, 1, MPI_DOUBLE, out, sizeof(out), &position, MPI_COMM_WORLD);
    MPI_Sendrecv(out, position, MPI_PACKED, right_of(rank), TAG, in, sizeof(in), MPI_PACKED,
                 left_of(rank), TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_PACKED, &length);
    position = 0;
    MPI_Unpack(in, length, &position, &number_in, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Unpack(in, length, &position, &real_in, 1, MPI_DOUBLE, MPI_COMM_WORLD);
    expect(number_in == left_of(rank) && real_in == left_of(rank) + 0.5, "%d and %g were packed",
           number_in, real_in);
}

const struct mpi_case type_cases[] = {
    { "types-both-sides", test_both_sides, 1 },
    { "types-of-sender", test_sender_only, 1 },
    { "types-of-receiver", test_receiver_only, 1 },
    { "types-persistent", test_persistent_types, 1 },
    { "types-counts", test_counts, 1 },
    { "types-empty", test_empty_type, 1 },
    { "types-packed", test_packed, 1 },
    { NULL },
};
