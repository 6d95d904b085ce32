/* SPDX-License-Identifier: BSD-2-Clause */
/* counters: rank 0 sends long messages of each class to rank 1, which receives them. Both print the
 * MPI_T performance variables of the component that have changed meanwhile. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES     65536
#define VARIABLES 256

static char buffer[BYTES];

static void communicate(int rank)
{
    MPI_Request request;

    if (rank) {
        for (int i = 0; i < 3; i++)
            MPI_Recv(buffer, BYTES, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Send(buffer, BYTES, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        MPI_Isend(buffer, BYTES, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Send_init(buffer, BYTES, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
    }
    MPI_Bcast(buffer, BYTES, MPI_CHAR, 0, MPI_COMM_WORLD);
}

struct variable {
    char name[256];
    MPI_T_pvar_handle handle; /* counts from its creation on */
};

static int begin(MPI_T_pvar_session session, struct variable *variables)
{
    int total, found = 0;

    MPI_T_pvar_get_num(&total);
    for (int i = 0; i < total && found < VARIABLES; i++) {
        struct variable *variable = &variables[found];
        int length = sizeof(variable->name), level, class, bind, readonly, continuous, atomic;
        MPI_Datatype type;
        MPI_T_enum choices;
        int count;

        if (MPI_T_pvar_get_info(i, variable->name, &length, &level, &class, &type, &choices, NULL,
                                NULL, &bind, &readonly, &continuous, &atomic) ||
            strncmp(variable->name, "mtl_verbena_", 12))
            continue;
        if (MPI_T_pvar_handle_alloc(session, i, NULL, &variable->handle, &count) || count != 1) {
            printf("%s is not one number\n", variable->name);
            exit(1);
        }
        found++;
    }
    return found;
}

static void print(MPI_T_pvar_session session, struct variable *variables, int found, int rank)
{
    for (int i = 0; i < found; i++) {
        unsigned long long value;

        MPI_T_pvar_read(session, variables[i].handle, &value);
        MPI_T_pvar_handle_free(session, &variables[i].handle);
        if (value)
            printf("%d %s %llu\n", rank, variables[i].name, value);
    }
}

int main(int argc, char **argv)
{
    static struct variable variables[VARIABLES];
    MPI_T_pvar_session session;
    int provided, rank, found;

    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    found = begin(session, variables);
    communicate(rank);
    print(session, variables, found, rank);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
