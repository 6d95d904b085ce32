/* SPDX-License-Identifier: BSD-2-Clause */
/* failure PORTS [return|window]: pulls the cables of the last PORTS ports of the adapter in mid-transfer.
 * As long as a port is left, all messages must arrive; rank 0 prints "arrived". With none left, MPI
 * calls must return an error; each rank that gets one prints "error: TEXT". With 'return', the
 * cables are put back, and once the rails are up again, those of the other ports are pulled
 * instead. With 'window', rank 0 puts, gets and accumulates while the cables of all but the last
 * PORTS ports are pulled, among them that of the rail that locks use. */
#include "data.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS           30
#define WINDOW           4
#define BYTES            (1200u << 10)
#define PULLED           10 /* round in which the cables are pulled */
#define TIMEOUT_SECONDS  30

static int rank;

static struct ibv_context *adapter;
static int port_count;

static void open_adapter(void)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    struct ibv_device_attr attributes;

    adapter = devices && *devices ? ibv_open_device(*devices) : NULL;
    expect(adapter && !ibv_query_device(adapter, &attributes), "no adapter found");
    port_count = attributes.phys_port_cnt;
    ibv_free_device_list(devices);
}

enum cable { OUT, IN };

/* The last ports of the adapter, or all others. */
enum ports { LAST, OTHERS };

static void set_cables(enum ports ports, int count, enum cable cable)
{
    int (*set_port)(struct ibv_context *, uint8_t, int) =
        (int (*)(struct ibv_context *, uint8_t, int))dlsym(RTLD_DEFAULT, "verbena_set_port");

    expect(set_port != NULL, "not a software adapter");
    for (int port = 1; port <= port_count; port++) {
        if ((port > port_count - count) == (ports == LAST))
            expect(!set_port(adapter, port, cable), "cannot set port %d", port);
    }
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

/* Both ranks send and receive at once, so that CTS messages and data share the rails. */
static void exchange(int number, enum ports ports, int pull, unsigned char *buffers)
{
    MPI_Request request[2 * WINDOW];
    int peer = !rank;

    for (int i = 0; i < WINDOW; i++) {
        unsigned char *out = buffers + (size_t)i * BYTES, *in = out + (size_t)WINDOW * BYTES;

        data_fill(out, BYTES, data_seed(rank, peer, (uint64_t)number * WINDOW + i));
        MPI_Irecv(in, BYTES, MPI_BYTE, peer, i, MPI_COMM_WORLD, &request[2 * i]);
        MPI_Isend(out, BYTES, MPI_BYTE, peer, i, MPI_COMM_WORLD, &request[2 * i + 1]);
    }
    if (number % ROUNDS == PULLED && !rank)
        set_cables(ports, pull, OUT);
    MPI_Waitall(2 * WINDOW, request, MPI_STATUSES_IGNORE);
    for (int i = 0; i < WINDOW; i++)
        expect_data(buffers + (size_t)(WINDOW + i) * BYTES, BYTES,
                    data_seed(peer, rank, (uint64_t)number * WINDOW + i), "after a failure");
}

/* Counters of the component. */
static MPI_T_pvar_session session;
static MPI_T_pvar_handle failures, recoveries;

static void start_counter(const char *name, MPI_T_pvar_handle *counter)
{
    int index, values;
    int err = MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index);

    if (!err)
        err = MPI_T_pvar_handle_alloc(session, index, NULL, counter, &values);
    expect(!err && values == 1, "counter %s not found", name);
}

static void start_counters(void)
{
    int provided;

    expect(!MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) && !MPI_T_pvar_session_create(&session),
           "cannot open an MPI_T session");
    start_counter("mtl_verbena_rail_failures", &failures);
    start_counter("mtl_verbena_rail_recoveries", &recoveries);
}

static void stop_counters(void)
{
    MPI_T_pvar_handle_free(session, &failures);
    MPI_T_pvar_handle_free(session, &recoveries);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
}

/* Waits until both ranks have counted that many rails. A rail that the policy does not use is tried
 * now and then by an idle process. */
static void wait_for(MPI_T_pvar_handle counter, int rails, const char *what)
{
    double start = MPI_Wtime();
    unsigned long long count;
    int over;

    do {
        expect(!MPI_T_pvar_read(session, counter, &count), "cannot read a counter");
        over = count == (unsigned long long)rails;
        MPI_Allreduce(MPI_IN_PLACE, &over, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
        expect(MPI_Wtime() - start < TIMEOUT_SECONDS, "%llu of %d rails %s", count, rails, what);
    } while (!over);
}

/* Sends everything over the recovered rails. */
static void use_recovered(int pulled, unsigned char *buffers)
{
    if (!rank)
        set_cables(LAST, pulled, IN);
    wait_for(recoveries, pulled, "have recovered");
    for (int i = ROUNDS; i < 2 * ROUNDS; i++)
        exchange(i, OTHERS, pulled, buffers);
    wait_for(failures, port_count, "have failed");
}

static void use_window(int left)
{
    unsigned char *memory, *out = allocate(BYTES), *in = allocate(BYTES);
    long one = 1, before = -1;
    MPI_Win window;

    MPI_Win_allocate(sizeof(long) + BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_lock_all(0, window);
    for (int i = 0; i < ROUNDS && !rank; i++) {
        data_fill(out, BYTES, i);
        MPI_Put(out, BYTES, MPI_BYTE, 1, sizeof(long), BYTES, MPI_BYTE, window);
        if (i == PULLED)
            set_cables(OTHERS, left, OUT);
        MPI_Win_flush(1, window);
        MPI_Get(in, BYTES, MPI_BYTE, 1, sizeof(long), BYTES, MPI_BYTE, window);
        MPI_Fetch_and_op(&one, &before, MPI_LONG, 1, 0, MPI_SUM, window);
        MPI_Win_flush(1, window);
        expect_data(in, BYTES, i, "got after a failure");
        expect(before == i, "%ld were counted before, not %d", before, i);
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    unsigned char *buffers = allocate((size_t)2 * WINDOW * BYTES);
    int pull = argc > 1 ? atoi(argv[1]) : 1, ranks;
    bool window = argc > 2 && !strcmp(argv[2], "window"), returns = argc > 2 && !window;
    MPI_Errhandler handler;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    expect(ranks == 2, "2 ranks needed, not %d", ranks);
    MPI_Comm_create_errhandler(error_seen, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    open_adapter();
    start_counters();
    for (int i = 0; i < ROUNDS && !window; i++)
        exchange(i, LAST, pull, buffers);
    if (window)
        use_window(pull);
    else
        wait_for(failures, pull, "have failed");
    if (returns)
        use_recovered(pull, buffers);
    if (!rank)
        puts("arrived");
    stop_counters();
    MPI_Finalize();
    ibv_close_device(adapter);
    free(buffers);
    return 0;
}
