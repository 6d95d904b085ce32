/* failure PORTS: pulls the cables of the last PORTS ports of the adapter in mid-transfer, from
 * within. All messages must arrive whole as long as a port is left; rank 0 prints "arrived". With
 * none left MPI calls have to return an error: each rank that sees one prints "error: TEXT". */
#include "data.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUNDS         30
#define WINDOW         8
#define BYTES          (600u << 10)
#define PULLED         10 /* in the middle of this round */

#define TRIALS_SECONDS 2

static int rank;

void case_failed(const char *format, ...)
{
    va_list more;

    va_start(more, format);
    printf("FAIL failure: rank %d: ", rank);
    vprintf(format, more);
    va_end(more);
    putchar('\n');
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

static void pull_cables(int count)
{
    int (*set_port)(struct ibv_context *, uint8_t, int) =
        (int (*)(struct ibv_context *, uint8_t, int))dlsym(RTLD_DEFAULT, "verbena_set_port");
    struct ibv_device **devices = ibv_get_device_list(NULL);
    struct ibv_context *context = devices && *devices ? ibv_open_device(*devices) : NULL;
    struct ibv_device_attr attributes;

    expect(set_port && context && !ibv_query_device(context, &attributes),
           "this is not a software adapter");
    for (int i = 0; i < count; i++)
        expect(!set_port(context, attributes.phys_port_cnt - i, 0), "port %d cannot be pulled",
               attributes.phys_port_cnt - i);
    ibv_close_device(context);
    ibv_free_device_list(devices);
}

static void error_seen(MPI_Comm *comm, int *code, ...)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;

    MPI_Error_string(*code, text, &length);
    printf("error: %s\n", text);
    fflush(stdout);
    _exit(3);
}

/* Rank 0 sends, rank 1 receives, and then the other way round. */
static void round_trip(int number, int pull, unsigned char *buffers)
{
    MPI_Request request[WINDOW];
    int sender = number % 2, peer = !rank;

    for (int i = 0; i < WINDOW; i++) {
        unsigned char *buffer = buffers + (size_t)i * BYTES;
        uint64_t n = (uint64_t)number * WINDOW + i;

        if (rank == sender) {
            data_fill(buffer, BYTES, data_seed(rank, peer, n));
            MPI_Isend(buffer, BYTES, MPI_BYTE, peer, i, MPI_COMM_WORLD, &request[i]);
        } else {
            MPI_Irecv(buffer, BYTES, MPI_BYTE, peer, i, MPI_COMM_WORLD, &request[i]);
        }
    }
    if (number == PULLED && !rank)
        pull_cables(pull);
    MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
    for (int i = 0; rank != sender && i < WINDOW; i++)
        expect_data(buffers + (size_t)i * BYTES, BYTES,
                    data_seed(peer, rank, (uint64_t)number * WINDOW + i), "after a failure");
}

/* A policy may not have used the port since. Who waits tries every rail now and then. */
static void wait_for_trials(void)
{
    char word = 0;

    if (rank) {
        MPI_Recv(&word, 1, MPI_CHAR, 0, WINDOW, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        sleep(TRIALS_SECONDS);
        MPI_Send(&word, 1, MPI_CHAR, 1, WINDOW, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    unsigned char *buffers = allocate((size_t)WINDOW * BYTES);
    int pull = argc > 1 ? atoi(argv[1]) : 1, ranks;
    MPI_Errhandler handler;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    expect(ranks == 2, "two ranks are wanted, not %d", ranks);
    MPI_Comm_create_errhandler(error_seen, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    for (int i = 0; i < ROUNDS; i++)
        round_trip(i, pull, buffers);
    wait_for_trials();
    if (!rank)
        puts("arrived");
    MPI_Finalize();
    free(buffers);
    return 0;
}
