/* SPDX-License-Identifier: BSD-2-Clause */
/* verbena nas: start a NAS kernel under mpirun. */
#include "commands.h"
#include "launch.h"
#include "line.h"
#include "model.h"
#include "mpi.h"
#include "nas/settings.h"
#include "util/open_mpi.h"

#include <stdlib.h>
#include <string.h>

#define PROGRAM "verbena-nas"

/* Reads the options into 'settings'; the kernel program checks its own again. */
static int read_settings(const struct invocation *invocation, struct nas_settings *settings)
{
    char error[512];

    nas_settings_init(settings);
    if (invocation->operand_count != 1)
        return cli_usage_error(invocation->command,
                               "give one kernel, not %d; the kernels are " NAS_KERNEL_LIST,
                               invocation->operand_count);
    if (nas_read_kernel(invocation->operands[0], &settings->kernel, error, sizeof(error)))
        return cli_usage_error(invocation->command, "%s", error);
    for (int i = 0; nas_rows[i].name; i++) {
        if (invocation->value[i] &&
            option_store(&nas_rows[i], invocation->value[i], settings, error, sizeof(error)))
            return cli_usage_error(invocation->command, "%s", error);
    }
    if (nas_check_ranks(settings->ranks, error, sizeof(error)) ||
        (settings->output && nas_check_output(settings->output, error, sizeof(error))))
        return cli_usage_error(invocation->command, "%s", error);
    return CLI_OK;
}

static int make_line(struct line *line, const struct nas_settings *settings, const char *program,
                     char *launcher_words)
{
    static char ranks[24], class[] = "S";

    snprintf(ranks, sizeof(ranks), "%llu", (unsigned long long)settings->ranks);
    class[0] = nas_class_letter(settings->class);
    if (line_add(line, settings->launcher) || line_add(line, "-n") || line_add(line, ranks) ||
        line_add_text(line, launcher_words) || line_add(line, program) ||
        line_add(line, nas_kernel_name(settings->kernel)) || line_add(line, "--class") ||
        line_add(line, class))
        return CLI_USAGE;
    if (settings->output && (line_add(line, "--output") || line_add(line, settings->output)))
        return CLI_USAGE;
    return CLI_OK;
}

int cli_nas(const struct invocation *invocation)
{
    struct nas_settings settings;
    struct line line = { .count = 0 };
    char program[PATH_MAX], *launcher_words;
    bool software = false;
    int status = read_settings(invocation, &settings);

    if (status)
        return status;
    if (!launch_program(PROGRAM, program)) {
        cli_error("Verbena was built without an MPI library: install one (Debian: libopenmpi-dev) "
                  "and build again");
        return CLI_FAILED;
    }
    launcher_words = strdup(settings.launcher_options ? settings.launcher_options : "");
    if (!launcher_words) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    status = make_line(&line, &settings, program, launcher_words);
    if (!status)
        status = mpi_wants_rails(invocation) ? mpi_export_rails(invocation, &software)
                                             : model_check(invocation);
    setenv(OPEN_MPI_ALLOW_EXIT_WITHOUT_SYNC, "1", 0);
    if (!status)
        status = mpi_run(&line, software);
    free(launcher_words);
    return status;
}
