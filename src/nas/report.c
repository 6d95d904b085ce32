/* SPDX-License-Identifier: BSD-2-Clause */
#include "report.h"
#include "results/results.h"
#include "util/file.h"
#include "util/vtime.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#define RANKS_SHOWN 16
#define SOURCE      "NAS report RNR-94-007, NPB 3"

struct tally {
    const struct nas_run *run;
    struct nas_timed *ranks; /* of every rank */
    double seconds;          /* of the slowest */
    double mops;
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
};

static double computation(const struct nas_timed *timed)
{
    return timed->seconds - timed->comm.seconds;
}

static double communication(const struct nas_timed *timed)
{
    return timed->comm.seconds;
}

static double total(const struct nas_timed *timed)
{
    return timed->seconds;
}

static const struct {
    const char *name;
    double (*of)(const struct nas_timed *timed);
} times[] = {
    { "total", total },
    { "communication", communication },
    { "computation", computation },
};

#define TIMES (sizeof(times) / sizeof(*times))

static void print_checks(const struct nas_run *run)
{
    for (unsigned int i = 0; i < run->check_count; i++) {
        const struct nas_check *check = &run->checks[i];

        if (!check->good)
            printf("  %s is %.15g, not %.15g within %g\n", check->name, check->value,
                   check->reference, check->tolerance);
    }
    printf("Verification: %s (%u value%s)\n", run_verified(run) ? "successful" : "FAILED",
           run->check_count, run->check_count == 1 ? "" : "s");
}

static void print_times(const struct tally *tally)
{
    int ranks = tally->run->ranks;
    double mean[TIMES] = { 0 };

    printf("\n%8s %13s %13s %13s  s\n", "rank", times[0].name, times[1].name, times[2].name);
    for (int rank = 0; rank < ranks; rank++) {
        for (unsigned int i = 0; i < TIMES; i++)
            mean[i] += times[i].of(&tally->ranks[rank]) / ranks;
        if (ranks <= RANKS_SHOWN)
            printf("%8d %13.6f %13.6f %13.6f\n", rank, total(&tally->ranks[rank]),
                   communication(&tally->ranks[rank]), computation(&tally->ranks[rank]));
    }
    printf("%8s %13.6f %13.6f %13.6f\n", "mean", mean[0], mean[1], mean[2]);
}

static void print_messages(const struct tally *tally)
{
    printf("\n%-22s %12s %15s  on all ranks\n", "pattern", "messages", "bytes");
    for (unsigned int i = 0; i < COMM_PATTERNS; i++) {
        uint64_t messages = 0, bytes = 0;

        for (int rank = 0; rank < tally->run->ranks; rank++) {
            messages += tally->ranks[rank].comm.messages[i];
            bytes += tally->ranks[rank].comm.bytes[i];
        }
        printf("%-22s %12llu %15llu\n", comm_pattern_name(i), (unsigned long long)messages,
               (unsigned long long)bytes);
    }
}

static uint64_t work_of(const struct tally *tally, enum work_kind kind)
{
    uint64_t sum = 0;

    for (int rank = 0; rank < tally->run->ranks; rank++)
        sum += tally->ranks[rank].work[kind];
    return sum;
}

static void print_work(const struct tally *tally)
{
    putchar('\n');
    for (unsigned int kind = 0; kind < WORK_KINDS; kind++) {
        uint64_t sum = work_of(tally, kind);

        if (sum)
            printf("%-22s %12llu\n", nas_work_name(kind), (unsigned long long)sum);
    }
}

static void print_text(const struct tally *tally)
{
    const struct nas_run *run = tally->run;

    printf("%s, %s, class %c: %s, %u iterations, %d rank%s, %s\n", run->kernel->name,
           run->kernel->title, nas_class_letter(run->class), run->problem, run->iterations,
           run->ranks, run->ranks == 1 ? "" : "s", tally->library);
    print_checks(run);
    printf("Time: %.6f s    Speed: %.2f Mop/s\n", tally->seconds, tally->mops);
    print_times(tally);
    print_messages(tally);
    print_work(tally);
    fflush(stdout);
}

static void add_value(struct series *series, double x, double value)
{
    struct summary summary;

    histogram_of_values(&value, 1, &summary);
    results_series_add(series, x, &summary);
}

static void add_series(struct experiment_result *result, const struct tally *tally)
{
    int ranks = tally->run->ranks;
    struct series *series;

    series = result_series(result, "speed", "speed", "Mop/s", "ranks", "", BETTER_HIGHER);
    add_value(series, ranks, tally->mops);
    for (unsigned int i = 0; i < TIMES; i++) {
        series = result_series(result, times[i].name, "time", "s", "rank", "", BETTER_LOWER);
        for (int rank = 0; rank < ranks; rank++)
            add_value(series, rank, times[i].of(&tally->ranks[rank]));
    }
    for (unsigned int i = 0; i < COMM_PATTERNS; i++) {
        series = result_series(result, comm_pattern_name(i), "messages", "messages", "rank", "",
                               BETTER_NEITHER);
        for (int rank = 0; rank < ranks; rank++)
            add_value(series, rank, tally->ranks[rank].comm.messages[i]);
        series =
            result_series(result, comm_pattern_name(i), "bytes", "B", "rank", "", BETTER_NEITHER);
        for (int rank = 0; rank < ranks; rank++)
            add_value(series, rank, tally->ranks[rank].comm.bytes[i]);
    }
    for (unsigned int kind = 0; kind < WORK_KINDS; kind++) {
        if (!work_of(tally, kind))
            continue;
        series =
            result_series(result, nas_work_name(kind), "work", "units", "rank", "", BETTER_NEITHER);
        for (int rank = 0; rank < ranks; rank++)
            add_value(series, rank, tally->ranks[rank].work[kind]);
    }
}

static struct results *make_results(const struct tally *tally, const char *command)
{
    const struct nas_run *run = tally->run;
    struct experiment_result *result;
    struct results *results;
    struct utsname system;
    char date[32], name[16];
    time_t now = time(NULL);

    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    results = results_new(VERBENA_VERSION, date, command);
    results->deterministic = vtime_is_deterministic();
    if (!uname(&system)) {
        results_metadata_set(&results->machine, "host", "%s", system.nodename);
        results_metadata_set(&results->machine, "kernel", "%s %s", system.sysname, system.release);
        results_metadata_set(&results->machine, "architecture", "%s", system.machine);
    }
    snprintf(name, sizeof(name), "nas-%s", run->kernel->name);
    result = results_add(results, name, "nas", run->kernel->title, SOURCE);
    results_metadata_set(&result->settings, "class", "%c", nas_class_letter(run->class));
    results_metadata_set(&result->settings, "problem", "%s", run->problem);
    results_metadata_set(&result->settings, "iterations", "%u", run->iterations);
    results_metadata_set(&result->settings, "ranks", "%d", run->ranks);
    results_metadata_set(&result->settings, "mpi", "%s", tally->library);
    results_metadata_set(&result->notes, "verification", "%s",
                         run_verified(run) ? "successful" : "failed");
    if (!run_verified(run))
        result_failed(result, "the values are not the official ones");
    add_series(result, tally);
    return results;
}

static int write_results(const struct tally *tally, const char *path, const char *command)
{
    struct results *results = make_results(tally, command);
    int failed = results_write_file(results, path);

    if (failed)
        fprintf(stderr, "verbena-nas: %s: %s\n", file_shown(path), strerror(errno));
    results_free(results);
    return failed ? -1 : 0;
}

/* Name and version of the library: its text up to the first comma or line break, with MPICH's tabs
 * replaced by blanks. */
static void library_of(struct tally *tally)
{
    int length;

    MPI_Get_library_version(tally->library, &length);
    tally->library[strcspn(tally->library, ",\n")] = '\0';
    for (char *tab = tally->library; (tab = strpbrk(tab, "\t"));)
        *tab = ' ';
}

int report_run(struct nas_run *run, const char *output, const char *command)
{
    struct tally tally = { .run = run };
    int status = 0;

    tally.ranks = run_allocate(run, run->ranks, sizeof(*tally.ranks));
    if (!tally.ranks)
        return -1;
    MPI_Gather(&run->timed, sizeof(run->timed), MPI_BYTE, tally.ranks, sizeof(run->timed), MPI_BYTE,
               0, MPI_COMM_WORLD);
    if (run->rank)
        return 0;
    for (int rank = 0; rank < run->ranks; rank++)
        tally.seconds =
            tally.ranks[rank].seconds > tally.seconds ? tally.ranks[rank].seconds : tally.seconds;
    tally.mops = run->operations / tally.seconds * 1e-6;
    library_of(&tally);
    print_text(&tally);
    if (output)
        status = write_results(&tally, output, command);
    return status;
}
