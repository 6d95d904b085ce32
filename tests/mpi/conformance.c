/* SPDX-License-Identifier: BSD-2-Clause */
/* conformance [-t] [-c] [GROUP...]: checks what MPI guarantees, on any library and any number of
 * ranks. Rank 0 prints "ok NAME" for each case that passed on all ranks, "skip NAME: reason" for
 * one that cannot run, and at the end "all" and the number of cases passed. -t requests
 * MPI_THREAD_MULTIPLE, which may disable other features; -c also prints when each case ended. */
#include "case.h"
#include "spawned.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int rank, ranks;
int thread_level;
char **arguments;

const size_t sizes[] = { 0, 1, 7, 64, 65, 1024, 4096, 8191, 16383, 16384, 65539, 1 << 20, LARGEST };
const size_t size_count = sizeof(sizes) / sizeof(*sizes);

static const char *current = "start";
static bool threads_wanted, shows_clock;

struct group {
    const char *name;
    const struct mpi_case *cases;
    bool threads; /* needs MPI_THREAD_MULTIPLE */
};

static const struct group groups[] = {
    { "point", point_cases, false },           { "match", match_cases, false },
    { "errors", error_cases, false },          { "types", type_cases, false },
    { "collective", collective_cases, false }, { "windows", window_cases, false },
    { "threads", thread_cases, true },         { "threads", window_thread_cases, true },
    { "dynamic", dynamic_cases, false },
};

void case_failed(const char *format, ...)
{
    char reason[512];
    va_list more;

    va_start(more, format);
    vsnprintf(reason, sizeof(reason), format, more);
    va_end(more);
    printf("FAIL %s: rank %d of %d: %s\n", current, rank, ranks, reason);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

static bool wanted(const char *group, int count, char **words)
{
    for (int i = 0; i < count; i++) {
        if (!strcmp(words[i], group))
            return true;
    }
    return !count;
}

static bool skip(const struct group *group, const struct mpi_case *row)
{
    if (ranks >= row->ranks && (!group->threads || thread_level == MPI_THREAD_MULTIPLE))
        return false;
    if (!rank && ranks < row->ranks)
        printf("skip %s: needs %d ranks\n", row->name, row->ranks);
    else if (!rank)
        printf("skip %s: needs MPI_THREAD_MULTIPLE\n", row->name);
    return true;
}

static int run_group(const struct group *group)
{
    int passed = 0;

    for (const struct mpi_case *row = group->cases; row->name; row++) {
        if (skip(group, row))
            continue;
        current = row->name;
        row->run();
        MPI_Barrier(MPI_COMM_WORLD);
        if (!rank && shows_clock)
            printf("ok %s at %.9f s\n", row->name, MPI_Wtime());
        else if (!rank)
            printf("ok %s\n", row->name);
        fflush(stdout);
        passed++;
    }
    return passed;
}

/* Returns the index of the first argument that is not an option. */
static int read_options(int argc, char **argv)
{
    int option;

    while ((option = getopt(argc, argv, "tc")) >= 0) {
        threads_wanted |= option == 't';
        shows_clock |= option == 'c';
    }
    return optind;
}

int main(int argc, char **argv)
{
    int passed = 0, first = read_options(argc, argv);

    arguments = argv;
    MPI_Init_thread(&argc, &argv, threads_wanted ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                    &thread_level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc > 1 && !strcmp(argv[1], SPAWNED)) {
        be_spawned();
    } else {
        for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++) {
            if (wanted(groups[i].name, argc - first, argv + first))
                passed += run_group(&groups[i]);
        }
        if (!rank)
            printf("all %d\n", passed);
    }
    MPI_Finalize();
    return 0;
}
