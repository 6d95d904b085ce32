/* SPDX-License-Identifier: BSD-2-Clause */
/* verbena-mpi-bench TASK [OPTION...]: measures an MPI library. For each size, rank 0 prints a line
 * with the size and the value of each repetition. The suite starts it; it also runs by hand. */
#include "task.h"
#include "util/option.h"
#include "util/vtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { STATUS_OK, STATUS_FAILED, STATUS_USAGE };

struct wanted {
    struct number_list sizes;
    uint64_t iterations, warmup, repetitions, window;
};

#define AT(field) .offset = offsetof(struct wanted, field)

/* clang-format off */
static const struct option_row rows[] = {
    { .name = "sizes", .argument = "LIST", .default_value = "8,1K,64K,1M", .kind = OPTION_NUMBERS,
      .maximum = 1 << 30, AT(sizes), .help = "message sizes" },
    { .name = "iterations", .argument = "N", .default_value = "1000", .kind = OPTION_NUMBER, .minimum = 1,
      .maximum = 1 << 30, AT(iterations), .help = "measured per size, fewer for long messages" },
    { .name = "warmup", .argument = "N", .default_value = "10", .kind = OPTION_NUMBER,
      .maximum = 1 << 30, AT(warmup), .help = "iterations before the measured ones" },
    { .name = "repetitions", .argument = "N", .default_value = "3", .kind = OPTION_NUMBER, .minimum = 1,
      .maximum = 10000, AT(repetitions), .help = "values per size" },
    { .name = "window", .argument = "N", .default_value = "64", .kind = OPTION_NUMBER, .minimum = 1,
      .maximum = 4096, AT(window), .help = "messages in flight" },
    { .name = NULL },
};
/* clang-format on */

static const struct task *const *const lists[] = { point_tasks, collective_tasks };

static const struct task *find_task(const char *name)
{
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        for (const struct task *const *task = lists[i]; *task; task++) {
            if (!strcmp((*task)->name, name))
                return *task;
        }
    }
    return NULL;
}

static void print_usage(FILE *out)
{
    fputs("Usage: mpirun -n N verbena-mpi-bench TASK [OPTION...]\n\nTasks:", out);
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        for (const struct task *const *task = lists[i]; *task; task++)
            fprintf(out, " %s", (*task)->name);
    }
    fputs("\n\n", out);
    for (const struct option_row *row = rows; row->name; row++)
        fprintf(out, "  --%-12s%-6s%s [%s]\n", row->name, row->argument, row->help,
                row->default_value);
}

uint64_t mpibench_rounds(const struct task_spec *spec, size_t bytes, size_t volume,
                         uint64_t minimum)
{
    uint64_t rounds = bytes ? volume / bytes : spec->iterations;

    rounds = rounds < minimum ? minimum : rounds;
    return rounds < spec->iterations ? rounds : spec->iterations;
}

uint64_t mpibench_warmup(const struct task_spec *spec, uint64_t rounds)
{
    return spec->warmup < rounds ? spec->warmup : rounds;
}

static int read_options(struct wanted *wanted, int count, char **words, char *error, size_t size)
{
    for (const struct option_row *row = rows; row->name; row++)
        option_store(row, row->default_value, wanted, error, size);
    return option_read_words(rows, 0, count, words, wanted, error, size);
}

/* Not from the heap, where the buffer may overlap memory that is already registered: heaps differ
 * from run to run, and modelled times would, too. */
static unsigned char *buffer_map(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memset(memory, 1, size);
}

static int measure_size(const struct task *task, const struct wanted *wanted,
                        struct task_spec *spec)
{
    size_t bytes = task->buffer_size(spec), mapped = bytes ? bytes : 1;

    spec->out = buffer_map(mapped);
    spec->in = buffer_map(mapped);
    if (!spec->out || !spec->in) {
        fprintf(stderr, "verbena-mpi-bench: out of memory: cannot map two buffers of %zu bytes\n",
                bytes);
        MPI_Abort(MPI_COMM_WORLD, STATUS_FAILED);
    }
    if (!spec->rank)
        printf("%zu", spec->size);
    for (uint64_t i = 0; i < wanted->repetitions; i++) {
        double value = task->measure(spec);

        if (!spec->rank)
            printf(" %.9g", value);
    }
    if (!spec->rank)
        putchar('\n');
    fflush(stdout);
    munmap(spec->in, mapped);
    munmap(spec->out, mapped);
    return STATUS_OK;
}

static int usage_error(int rank, const char *reason)
{
    if (!rank)
        fprintf(stderr, "verbena-mpi-bench: %s\n", reason);
    return STATUS_USAGE;
}

static int run(int argc, char **argv)
{
    struct task_spec spec = { .size = 0 };
    const struct task *task;
    struct wanted wanted;
    char error[256];

    MPI_Comm_rank(MPI_COMM_WORLD, &spec.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &spec.ranks);
    if (argc < 2 || !strcmp(argv[1], "--help")) {
        if (!spec.rank)
            print_usage(argc < 2 ? stderr : stdout);
        return argc < 2 ? STATUS_USAGE : STATUS_OK;
    }
    task = find_task(argv[1]);
    if (!task) {
        snprintf(error, sizeof(error), "unknown task '%s'; --help lists them", argv[1]);
        return usage_error(spec.rank, error);
    }
    if (read_options(&wanted, argc - 2, argv + 2, error, sizeof(error)))
        return usage_error(spec.rank, error);
    if (spec.ranks < task->ranks) {
        snprintf(error, sizeof(error), "%s needs at least %d ranks", task->name, task->ranks);
        return usage_error(spec.rank, error);
    }
    spec.iterations = wanted.iterations;
    spec.warmup = wanted.warmup;
    spec.window = wanted.window;
    vtime_find();
    if (!spec.rank)
        printf("# size, %s in %s\n", task->name, task->unit);
    for (unsigned int i = 0; i < wanted.sizes.count; i++) {
        spec.size = wanted.sizes.value[i];
        measure_size(task, &wanted, &spec);
    }
    return STATUS_OK;
}

int main(int argc, char **argv)
{
    int status;

    MPI_Init(&argc, &argv);
    status = run(argc, argv);
    MPI_Finalize();
    return status;
}
