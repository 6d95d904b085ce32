/* SPDX-License-Identifier: BSD-2-Clause */
/* One-sided: put, get, accumulate and the atomics, under each kind of synchronization. */
#include "case.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define INTS 20000

static const int counts[] = { 1, 100, INTS };

static void test_fence(void)
{
    int *memory = allocate(INTS * sizeof(int)), *out = allocate(INTS * sizeof(int));
    int *in = allocate(INTS * sizeof(int));
    MPI_Win window;

    MPI_Win_create(memory, INTS * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    for (size_t c = 0; c < sizeof(counts) / sizeof(*counts); c++) {
        int count = counts[c];

        for (int i = 0; i < count; i++) {
            out[i] = rank * 100 + i + (int)c;
            memory[i] = -1;
        }
        MPI_Win_fence(0, window);
        MPI_Put(out, count, MPI_INT, right_of(rank), 0, count, MPI_INT, window);
        MPI_Win_fence(0, window);
        for (int i = 0; i < count; i++)
            expect(memory[i] == left_of(rank) * 100 + i + (int)c, "put: element %d is %d", i,
                   memory[i]);
        MPI_Get(in, count, MPI_INT, right_of(rank), 0, count, MPI_INT, window);
        MPI_Win_fence(0, window);
        for (int i = 0; i < count; i++)
            expect(in[i] == out[i], "get: element %d is %d", i, in[i]);
    }
    MPI_Win_free(&window);
    free(in);
    free(out);
    free(memory);
}

static void test_accumulate(void)
{
    int *memory, *out = allocate(INTS * sizeof(int));
    MPI_Win window;

    MPI_Win_allocate(INTS * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                     &window);
    for (int i = 0; i < INTS; i++) {
        out[i] = rank + i;
        memory[i] = 1;
    }
    MPI_Win_fence(0, window);
    for (int peer = 0; peer < ranks; peer++)
        MPI_Accumulate(out, INTS, MPI_INT, peer, 0, INTS, MPI_INT, MPI_SUM, window);
    MPI_Win_fence(0, window);
    for (int i = 0; i < INTS; i++)
        expect(memory[i] == 1 + ranks * (ranks - 1) / 2 + ranks * i, "accumulate: element %d is %d",
               i, memory[i]);
    MPI_Win_free(&window);
    free(out);
}

/* All ranks increment a counter in the memory of rank 0, which is passive. */
static void test_lock(void)
{
    int *memory, one = 1, seen, last = -1;
    MPI_Win window;

    MPI_Win_allocate(2 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    memory[0] = memory[1] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 20; i++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Get(&seen, 1, MPI_INT, 0, 1, 1, MPI_INT, window);
        MPI_Win_flush(0, window);
        seen++;
        MPI_Put(&seen, 1, MPI_INT, 0, 1, 1, MPI_INT, window);
        MPI_Win_unlock(0, window);
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
        MPI_Fetch_and_op(&one, &seen, MPI_INT, 0, 0, MPI_SUM, window);
        MPI_Win_unlock(0, window);
        expect(seen > last, "a count went from %d to %d", last, seen);
        last = seen;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (!rank) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
        expect(memory[0] == 20 * ranks && memory[1] == 20 * ranks, "%d and %d were counted, not %d",
               memory[0], memory[1], 20 * ranks);
        MPI_Win_unlock(0, window);
    }
    MPI_Win_free(&window);
}

static void test_compare_and_swap(void)
{
    int *memory, nobody = -1, found, winners = 0, won;
    MPI_Win window;

    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    *memory = nobody;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    MPI_Compare_and_swap(&rank, &nobody, &found, MPI_INT, 0, 0, window);
    MPI_Win_flush(0, window);
    MPI_Win_unlock_all(window);
    won = found == nobody;
    MPI_Allreduce(&won, &winners, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect(winners == 1, "%d ranks found the place empty", winners);
    MPI_Win_free(&window);
}

/* Between neighbours only: post, start, complete, wait. */
static void test_neighbours(void)
{
    int *memory, right = right_of(rank), left = left_of(rank), out = rank * 3;
    MPI_Group world, to, from;
    MPI_Win window;

    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    *memory = -1;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &right, &to);
    MPI_Group_incl(world, 1, &left, &from);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_post(from, 0, window);
    MPI_Win_start(to, 0, window);
    MPI_Put(&out, 1, MPI_INT, right, 0, 1, MPI_INT, window);
    MPI_Win_complete(window);
    MPI_Win_wait(window);
    expect(*memory == left * 3, "the neighbour put %d", *memory);
    MPI_Group_free(&from);
    MPI_Group_free(&to);
    MPI_Group_free(&world);
    MPI_Win_free(&window);
}

/* Everything that an origin can do arrives at a target that is outside MPI. */
struct passive {
    volatile int done; /* by how many ranks */
    int swapped, maximum;
    long sum;
    unsigned char bytes[3][20000]; /* by three ranks at most */
};

static void work_on_passive(MPI_Win window, unsigned char *bytes)
{
    int one = 1, nobody = 0, found, place = (rank - 1) % 3;
    size_t size = sizeof(((struct passive *)NULL)->bytes[0]);
    MPI_Aint where = offsetof(struct passive, bytes) + place * size;
    long term = rank;

    MPI_Win_lock_all(0, window);
    data_fill(bytes, size, place);
    MPI_Put(bytes, size, MPI_BYTE, 0, where, size, MPI_BYTE, window);
    MPI_Win_flush(0, window);
    memset(bytes, 0, size);
    MPI_Get(bytes, size, MPI_BYTE, 0, where, size, MPI_BYTE, window);
    for (int i = 0; i < 10; i++)
        MPI_Accumulate(&term, 1, MPI_LONG, 0, offsetof(struct passive, sum), 1, MPI_LONG, MPI_SUM,
                       window);
    MPI_Fetch_and_op(&rank, &found, MPI_INT, 0, offsetof(struct passive, maximum), MPI_MAX, window);
    MPI_Compare_and_swap(&rank, &nobody, &found, MPI_INT, 0, offsetof(struct passive, swapped),
                         window);
    MPI_Win_flush(0, window);
    expect_data(bytes, size, place, "got back");
    MPI_Fetch_and_op(&one, &found, MPI_INT, 0, offsetof(struct passive, done), MPI_SUM, window);
    MPI_Win_unlock_all(window);
}

/* A tenth of a millisecond outside MPI. */
static void rest(void)
{
    int (*is_virtual)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "verbena_is_virtual");
    void (*compute)(uint64_t) = (void (*)(uint64_t))dlsym(RTLD_DEFAULT, "verbena_compute");

    if (is_virtual && is_virtual())
        compute(100000);
    else
        usleep(100);
}

static void test_passive(void)
{
    unsigned char *bytes = allocate(20000);
    struct passive *memory;
    MPI_Win window;

    MPI_Win_allocate(sizeof(*memory), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank) {
        work_on_passive(window, bytes);
    } else {
        for (int i = 0; i < 200000 && memory->done < ranks - 1; i++)
            rest();
        expect(memory->done == ranks - 1, "%d of %d origins came to an end while the target slept",
               memory->done, ranks - 1);
        expect(memory->sum == 10l * ranks * (ranks - 1) / 2, "the sum is %ld", memory->sum);
        expect(memory->maximum == ranks - 1, "the maximum is %d", memory->maximum);
        expect(memory->swapped > 0 && memory->swapped < ranks, "rank %d won", memory->swapped);
        for (int i = 0; i < 3 && i < ranks - 1; i++)
            expect_data(memory->bytes[i], sizeof(memory->bytes[i]), i, "put");
    }
    MPI_Win_free(&window);
    free(bytes);
}

/* Around every threshold between protocols, with and without requests, also to the rank itself. */
static void test_window_sizes(void)
{
    unsigned char *memory, *out = allocate(1 << 20), *in = allocate(1 << 20);
    MPI_Request request;
    MPI_Win window;

    MPI_Win_allocate((1 << 20) + 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_lock_all(0, window);
    for (size_t i = 0; sizes[i] <= 1 << 20 && i < size_count; i++) {
        int size = sizes[i], to = i % 3 ? right_of(rank) : rank;

        data_fill(out, size, data_seed(rank, to, i));
        if (i % 2) {
            MPI_Rput(out, size, MPI_BYTE, to, 3, size, MPI_BYTE, window, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Put(out, size, MPI_BYTE, to, 3, size, MPI_BYTE, window);
        }
        MPI_Win_flush(to, window);
        MPI_Rget(in, size, MPI_BYTE, to, 3, size, MPI_BYTE, window, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect_data(in, size, data_seed(rank, to, i), "got");
        expect_untouched(in + size, sizes[i] < 1 << 20 ? 1 : 0, in[size], "behind it");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    free(in);
    free(out);
}

/* A column of the target's matrix, from every other element of the origin. */
static void test_window_types(void)
{
    enum { ROWS = 500, COLUMNS = 7 };
    int(*memory)[COLUMNS], out[2 * ROWS], in[2 * ROWS];
    MPI_Datatype column, every_other;
    MPI_Win window;

    MPI_Type_vector(ROWS, 1, COLUMNS, MPI_INT, &column);
    MPI_Type_vector(ROWS, 1, 2, MPI_INT, &every_other);
    MPI_Type_commit(&column);
    MPI_Type_commit(&every_other);
    MPI_Win_allocate(sizeof(int[ROWS][COLUMNS]), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                     &memory, &window);
    for (int i = 0; i < 2 * ROWS; i++) {
        out[i] = rank * 10000 + i;
        in[i] = -1;
    }
    MPI_Win_fence(0, window);
    MPI_Put(out, 1, every_other, right_of(rank), 3, 1, column, window);
    MPI_Win_fence(0, window);
    MPI_Accumulate(out, ROWS, MPI_INT, right_of(rank), 3, 1, column, MPI_SUM, window);
    MPI_Win_fence(0, window);
    MPI_Get(in, 1, every_other, right_of(rank), 3, 1, column, window);
    MPI_Win_fence(0, window);
    for (int i = 0; i < ROWS; i++) {
        int wanted = 20000 * left_of(rank) + 3 * i;

        expect(memory[i][3] == wanted, "element %d of the column is %d", i, memory[i][3]);
        expect(memory[i][2] == 0 && memory[i][4] == 0, "beside element %d of the column", i);
        expect(in[2 * i] == 20000 * rank + 3 * i && in[2 * i + 1] == -1, "got element %d: %d, %d",
               i, in[2 * i], in[2 * i + 1]);
    }
    /* The origin may be longer than what it gets. */
    MPI_Get(in, 2 * ROWS, MPI_INT, right_of(rank), 3, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    expect(in[0] == 20000 * rank && in[1] == -1, "got %d, %d", in[0], in[1]);
    MPI_Win_free(&window);
    MPI_Type_free(&every_other);
    MPI_Type_free(&column);
}

/* Operations, a type with a gap in it, and data longer than a buffer. */
static void test_get_accumulate(void)
{
    enum { LONG = 3000 };
    struct {
        double value;
        int where;
    } * memory, mine = { rank * 1.5, rank }, before = { -2, -2 };
    double *numbers, *out = allocate(LONG * sizeof(double)), *old = allocate(LONG * sizeof(double));
    MPI_Win pairs, window;

    MPI_Win_allocate(sizeof(*memory), sizeof(*memory), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                     &pairs);
    MPI_Win_allocate(LONG * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &numbers,
                     &window);
    memory->value = memory->where = -1;
    for (int i = 0; i < LONG; i++) {
        numbers[i] = i;
        out[i] = rank + 1;
    }
    MPI_Win_fence(0, pairs);
    MPI_Win_fence(0, window);
    MPI_Get_accumulate(&mine, 1, MPI_DOUBLE_INT, &before, 1, MPI_DOUBLE_INT, 0, 0, 1,
                       MPI_DOUBLE_INT, MPI_MAXLOC, pairs);
    MPI_Get_accumulate(out, LONG, MPI_DOUBLE, old, LONG, MPI_DOUBLE, 0, 0, LONG, MPI_DOUBLE,
                       MPI_SUM, window);
    MPI_Win_fence(0, pairs);
    MPI_Win_fence(0, window);
    expect(before.value >= -1 && before.value < mine.value + ranks * 1.5, "%g was there",
           before.value);
    expect(rank || (memory->value == (ranks - 1) * 1.5 && memory->where == ranks - 1),
           "the maximum is %g of rank %d", memory->value, memory->where);
    for (int i = 0; i < LONG; i++)
        expect(old[i] >= i && old[i] <= i + ranks * (ranks + 1) / 2 && old[i] - i == old[0],
               "element %d was %g", i, old[i]);
    MPI_Get_accumulate(NULL, 0, MPI_DOUBLE, old, LONG, MPI_DOUBLE, 0, 0, LONG, MPI_DOUBLE,
                       MPI_NO_OP, window);
    MPI_Win_fence(0, window);
    for (int i = 0; i < LONG; i++)
        expect(old[i] == i + ranks * (ranks + 1) / 2, "element %d is %g", i, old[i]);
    MPI_Win_free(&window);
    MPI_Win_free(&pairs);
    free(old);
    free(out);
}

/* Memory that comes and goes, at the same address. */
static void test_dynamic_window(void)
{
    int *memory = allocate(4096), out, seen;
    MPI_Aint address, there;
    MPI_Win window;

    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Get_address(memory, &address);
    MPI_Sendrecv(&address, 1, MPI_AINT, left_of(rank), 0, &there, 1, MPI_AINT, right_of(rank), 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 3; i++) {
        MPI_Win_attach(window, memory, 4096);
        MPI_Win_fence(0, window);
        out = rank * 10 + i;
        MPI_Put(&out, 1, MPI_INT, right_of(rank), MPI_Aint_add(there, 8), 1, MPI_INT, window);
        MPI_Win_fence(0, window);
        expect(memory[2] == left_of(rank) * 10 + i, "%d was put", memory[2]);
        MPI_Get(&seen, 1, MPI_INT, right_of(rank), MPI_Aint_add(there, 8), 1, MPI_INT, window);
        MPI_Win_fence(0, window);
        expect(seen == out, "%d was there", seen);
        MPI_Win_detach(window, memory);
    }
    MPI_Win_free(&window);
    free(memory);
}

/* The memory of a neighbour may be gone when a region is attached beside the next one. */
static void test_detached_neighbour(void)
{
    const size_t page = sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int *number = (int *)(memory + 2 * page), out = rank * 7 + 1;
    MPI_Aint address, there;
    MPI_Win window;

    expect(memory != MAP_FAILED, "no memory");
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_attach(window, memory, page);
    MPI_Win_attach(window, memory + page, page);
    MPI_Win_detach(window, memory);
    munmap(memory, page);
    MPI_Win_attach(window, number, page);
    MPI_Get_address(number, &address);
    MPI_Sendrecv(&address, 1, MPI_AINT, left_of(rank), 0, &there, 1, MPI_AINT, right_of(rank), 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_fence(0, window);
    MPI_Put(&out, 1, MPI_INT, right_of(rank), there, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    expect(*number == left_of(rank) * 7 + 1, "%d was put", *number);
    MPI_Win_detach(window, number);
    MPI_Win_detach(window, memory + page);
    MPI_Win_free(&window);
    munmap(memory + page, 2 * page);
}

static void test_many_windows(void)
{
    enum { MANY = 6 };
    int *memory[MANY];
    MPI_Win window[MANY];

    for (int i = 0; i < MANY; i++) {
        MPI_Win_allocate(sizeof(int), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory[i], &window[i]);
        MPI_Win_fence(0, window[i]);
    }
    for (int i = 0; i < MANY; i++) {
        int out = 100 * rank + i;

        MPI_Put(&out, 1, MPI_INT, right_of(rank), 0, 1, MPI_INT, window[i]);
    }
    for (int i = 0; i < MANY; i++) {
        MPI_Win_fence(0, window[i]);
        expect(*memory[i] == 100 * left_of(rank) + i, "window %d has %d", i, *memory[i]);
    }
    for (int i = 0; i < MANY; i++)
        MPI_Win_free(&window[i]);
}

/* Ranks of a node see each other's stores. */
static void test_shared_window(void)
{
    int *memory, *there, node_rank, node_ranks, unit;
    MPI_Aint size;
    MPI_Comm node;
    MPI_Win window;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &node_rank);
    MPI_Comm_size(node, &node_ranks);
    MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, node, &memory, &window);
    MPI_Win_fence(0, window);
    *memory = node_rank;
    MPI_Win_fence(0, window);
    MPI_Win_shared_query(window, (node_rank + 1) % node_ranks, &size, &unit, &there);
    expect(*there == (node_rank + 1) % node_ranks, "the neighbour has %d", *there);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    MPI_Comm_free(&node);
}

static int class_of(int code)
{
    int class = code;

    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &class);
    return class;
}

/* MPI does not require that errors are noticed; osc/sm does not. */
static bool notices_errors(MPI_Win window)
{
    char name[MPI_MAX_OBJECT_NAME];
    int length;

    MPI_Win_get_name(window, name, &length);
    return strstr(name, "verbena") != NULL;
}

/* What is not allowed has an error, and changes nothing. */
static void expect_errors(MPI_Win window)
{
    int out = 1, class;

    MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
    class = class_of(MPI_Put(&out, 1, MPI_INT, right_of(rank), 0, 1, MPI_INT, window));
    expect(class == MPI_ERR_RMA_SYNC, "a put outside an epoch has class %d", class);
    class = class_of(MPI_Win_unlock(0, window));
    expect(class == MPI_ERR_RMA_SYNC, "an unlock without a lock has class %d", class);
    MPI_Win_lock(MPI_LOCK_SHARED, right_of(rank), 0, window);
    class = class_of(MPI_Put(&out, 1, MPI_INT, right_of(rank), 1, 1, MPI_INT, window));
    expect(class == MPI_ERR_RMA_RANGE, "a put behind the window has class %d", class);
    class = class_of(MPI_Win_fence(0, window));
    expect(class == MPI_ERR_RMA_SYNC, "a fence under a lock has class %d", class);
    MPI_Win_unlock(right_of(rank), window);
}

/* One rank has memory that does not exist: no rank gets a window, and none waits. */
static void expect_no_window(void)
{
    void *nowhere = (void *)0x10000;
    MPI_Win window;
    int code;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    code = MPI_Win_create(nowhere, rank ? 0 : 4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    expect(class_of(code) == MPI_ERR_WIN, "a window without memory has class %d", class_of(code));
}

static void test_window_errors(void)
{
    MPI_Win window;
    int *memory;

    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    *memory = 0;
    if (notices_errors(window)) {
        expect_errors(window);
        expect_no_window();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    expect(*memory == 0, "the window has %d", *memory);
    MPI_Win_free(&window);
}

/* Threads count together, and each puts into its own place. */
struct counter {
    MPI_Win window;
    int number;
};

static void *count(void *argument)
{
    const struct counter *counter = argument;
    int one = 1, before, last = -1;

    for (int i = 0; i < 25; i++) {
        MPI_Fetch_and_op(&one, &before, MPI_INT, 0, 0, MPI_SUM, counter->window);
        MPI_Put(&i, 1, MPI_INT, right_of(rank), counter->number, 1, MPI_INT, counter->window);
        MPI_Win_flush(0, counter->window);
        expect(before > last, "a count went from %d to %d", last, before);
        last = before;
    }
    MPI_Win_flush_all(counter->window);
    return NULL;
}

static void test_window_threads(void)
{
    enum { THREADS = 3 };
    struct counter counters[THREADS];
    pthread_t threads[THREADS];
    int *memory;
    MPI_Win window;

    MPI_Win_allocate((1 + THREADS) * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                     &memory, &window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    for (int i = 0; i < THREADS; i++) {
        counters[i] = (struct counter){ window, i + 1 };
        expect(!pthread_create(&threads[i], NULL, count, &counters[i]), "no thread");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    expect(rank || *memory == 25 * THREADS * ranks, "%d were counted", *memory);
    for (int i = 0; i < THREADS; i++)
        expect(memory[i + 1] == 24, "thread %d put %d", i, memory[i + 1]);
    MPI_Win_free(&window);
}

/* Threads put while the target attaches and detaches other memory: they learn of it at any time. */
struct putter {
    MPI_Win window;
    MPI_Aint there;
};

static void *put_often(void *argument)
{
    const struct putter *putter = argument;

    for (int i = 0; i < 300; i++) {
        MPI_Put(&i, 1, MPI_INT, right_of(rank), putter->there, 1, MPI_INT, putter->window);
        MPI_Win_flush(right_of(rank), putter->window);
    }
    return NULL;
}

static void attach_and_detach(MPI_Win window, int *memory, int regions)
{
    for (int i = 0; i < regions; i++)
        MPI_Win_attach(window, memory + 2 * i, sizeof(int));
    for (int i = 0; i < regions; i++)
        MPI_Win_detach(window, memory + 2 * i);
}

static void test_attach_threads(void)
{
    enum { THREADS = 3, REGIONS = 30 };
    int memory[THREADS] = { 0 }, other[2 * REGIONS];
    struct putter putters[THREADS];
    pthread_t threads[THREADS];
    MPI_Aint address, there;
    MPI_Win window;

    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_attach(window, memory, sizeof(memory));
    MPI_Get_address(memory, &address);
    MPI_Sendrecv(&address, 1, MPI_AINT, left_of(rank), 0, &there, 1, MPI_AINT, right_of(rank), 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_lock_all(0, window);
    for (int i = 0; i < THREADS; i++) {
        putters[i] = (struct putter){ window, MPI_Aint_add(there, i * sizeof(int)) };
        expect(!pthread_create(&threads[i], NULL, put_often, &putters[i]), "no thread");
    }
    for (int i = 0; i < 10; i++)
        attach_and_detach(window, other, REGIONS);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < THREADS; i++)
        expect(memory[i] == 299, "thread %d put %d", i, memory[i]);
    MPI_Win_detach(window, memory);
    MPI_Win_free(&window);
}

const struct mpi_case window_cases[] = {
    { "fence", test_fence, 1 },
    { "accumulate", test_accumulate, 1 },
    { "lock", test_lock, 1 },
    { "compare-and-swap", test_compare_and_swap, 1 },
    { "neighbours", test_neighbours, 1 },
    { "passive", test_passive, 2 },
    { "window-sizes", test_window_sizes, 1 },
    { "window-types", test_window_types, 1 },
    { "get-accumulate", test_get_accumulate, 1 },
    { "dynamic-window", test_dynamic_window, 1 },
    { "detached-neighbour", test_detached_neighbour, 1 },
    { "many-windows", test_many_windows, 1 },
    { "shared-window", test_shared_window, 1 },
    { "window-errors", test_window_errors, 1 },
    { NULL },
};

const struct mpi_case window_thread_cases[] = {
    { "window-threads", test_window_threads, 1 },
    { "attach-threads", test_attach_threads, 1 },
    { NULL },
};
