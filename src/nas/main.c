/* SPDX-License-Identifier: BSD-2-Clause */
/* verbena-nas: the NAS kernels, an ordinary MPI program. */
#include "report.h"
#include "util/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATUS_OK, STATUS_FAILED, STATUS_USAGE };

static const struct nas_kernel *const kernels[NAS_KERNELS] = {
    [NAS_IS] = &nas_is, [NAS_FT] = &nas_ft, [NAS_CG] = &nas_cg,
    [NAS_MG] = &nas_mg, [NAS_LU] = &nas_lu,
};

static void print_usage(FILE *out)
{
    fprintf(out, "Usage: mpirun -n N verbena-nas KERNEL [OPTION...]\n\n"
                 "Run a NAS kernel. The kernels are " NAS_KERNEL_LIST ".\n\n");
    for (const struct option_row *row = nas_rows; row->name; row++) {
        if (!(row->tags & NAS_LAUNCH))
            fprintf(out, "  --%-8s%-12s%s\n", row->name, row->argument, row->help);
    }
}

static int read_options(struct nas_settings *settings, int count, char **words, char *error,
                        size_t size)
{
    if (!count) {
        snprintf(error, size, "no kernel given; the kernels are " NAS_KERNEL_LIST);
        return -1;
    }
    if (nas_read_kernel(words[0], &settings->kernel, error, size))
        return -1;
    if (option_read_words(nas_rows, NAS_LAUNCH, count - 1, words + 1, settings, error, size))
        return -1;
    return settings->output ? nas_check_output(settings->output, error, size) : 0;
}

static void join_words(char *text, size_t size, int count, char **words)
{
    size_t used = snprintf(text, size, "verbena-nas");

    for (int i = 1; i < count && used < size; i++)
        used += snprintf(text + used, size - used, " %s", words[i]);
}

static int run_kernel(const struct nas_settings *settings, struct nas_run *run, const char *command)
{
    int status = STATUS_USAGE;

    if (!run->kernel->run(run)) {
        status = report_run(run, settings->output, command) || !run_verified(run) ? STATUS_FAILED
                                                                                  : STATUS_OK;
    }
    /* Other ranks may be waiting for this one. */
    if (run->out_of_memory)
        MPI_Abort(MPI_COMM_WORLD, STATUS_FAILED);
    MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
    run_free(run);
    return status;
}

static int run_words(int count, char **words)
{
    struct nas_settings settings;
    struct nas_run run = { .rank = comm_rank(MPI_COMM_WORLD), .ranks = comm_size(MPI_COMM_WORLD) };
    char error[256], command[512];

    nas_settings_init(&settings);
    if (count > 1 && (!strcmp(words[1], "--help") || !strcmp(words[1], "-h"))) {
        if (!run.rank)
            print_usage(stdout);
        return STATUS_OK;
    }
    if (read_options(&settings, count - 1, words + 1, error, sizeof(error)) ||
        nas_check_ranks(run.ranks, error, sizeof(error))) {
        if (!run.rank)
            fprintf(stderr, "verbena-nas: %s\n", error);
        return STATUS_USAGE;
    }
    if (file_is_stdout(settings.output) && file_claim_stdout()) {
        perror("verbena-nas: standard output");
        return STATUS_FAILED;
    }
    run.kernel = kernels[settings.kernel];
    run.class = settings.class;
    nas_work_begin(run.kernel->name);
    join_words(command, sizeof(command), count, words);
    return run_kernel(&settings, &run, command);
}

int main(int argc, char **argv)
{
    int status;

    MPI_Init(&argc, &argv);
    status = run_words(argc, argv);
    MPI_Finalize();
    return status;
}
