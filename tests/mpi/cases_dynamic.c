/* SPDX-License-Identifier: BSD-2-Clause */
/* Dynamic processes: spawned, or connected through a port. */
#include "case.h"
#include "spawned.h"

#include <stdlib.h>
#include <string.h>

#define CHILDREN 2
#define BYTES    200000

/* Called by both sides of an intercommunicator; all ranks of one side exchange messages with all of
 * the other. Different seeds distinguish the sides. */
static void talk(MPI_Comm between, int side)
{
    unsigned char *out = allocate(BYTES), *in = allocate(BYTES);
    int own, others;

    MPI_Comm_rank(between, &own);
    MPI_Comm_remote_size(between, &others);
    for (int peer = 0; peer < others; peer++) {
        for (size_t size = 10; size <= BYTES; size *= 20) {
            MPI_Status status;

            data_fill(out, size, data_seed(own + side * 1000, peer, size));
            MPI_Sendrecv(out, size, MPI_BYTE, peer, 1, in, size, MPI_BYTE, peer, 1, between,
                         &status);
            expect_data(in, size, data_seed(peer + !side * 1000, own, size), "between groups");
        }
    }
    free(in);
    free(out);
}

static void merge(MPI_Comm between, int side)
{
    MPI_Comm all;
    int count, one = 1;

    MPI_Intercomm_merge(between, side, &all);
    MPI_Comm_size(all, &count);
    MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_INT, MPI_SUM, all);
    expect(one == count, "%d of %d processes took part", one, count);
    MPI_Comm_free(&all);
}

void be_spawned(void)
{
    MPI_Comm parent;

    MPI_Comm_get_parent(&parent);
    expect(parent != MPI_COMM_NULL, "spawned without a parent");
    talk(parent, 1);
    merge(parent, 1);
    MPI_Comm_disconnect(&parent);
}

static void test_spawn(void)
{
    char *words[] = { SPAWNED, NULL };
    int errors[CHILDREN];
    MPI_Comm children;

    MPI_Comm_spawn(arguments[0], words, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                   errors);
    talk(children, 0);
    merge(children, 0);
    MPI_Comm_disconnect(&children);
}

/* Rank 0 opens a port, the others connect to it. */
static void test_connect(void)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm half, between;

    MPI_Comm_split(MPI_COMM_WORLD, !rank, rank, &half);
    if (!rank)
        MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, sizeof(port), MPI_CHAR, 0, MPI_COMM_WORLD);
    if (!rank)
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &between);
    else
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &between);
    talk(between, !rank);
    MPI_Comm_disconnect(&between);
    if (!rank)
        MPI_Close_port(port);
    MPI_Comm_free(&half);
}

const struct mpi_case dynamic_cases[] = {
    { "spawn", test_spawn, 1 },
    { "connect", test_connect, 2 },
    { NULL },
};
