/* SPDX-License-Identifier: BSD-2-Clause */
/* verbena mpirun: run an MPI program over several rails. Ranks are configured through the
 * environment, so that any launcher works and spawned processes inherit it. */
#include "commands.h"
#include "launch.h"
#include "line.h"
#include "mpi.h"
#include "start.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BENCH "verbena-mpi-bench"

extern char **environ;

/* Compare environments by content: setenv() may move a variable. */
static char *environment_text(void)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    fputc('\n', out);
    for (char **variable = environ; *variable; variable++)
        fprintf(out, "%s\n", *variable);
    fclose(out);
    return text;
}

static bool stands_in(const char *text, const char *variable)
{
    size_t length = strlen(variable);

    for (const char *found = text; (found = strstr(found, variable)); found++) {
        if (found[-1] == '\n' && found[length] == '\n')
            return true;
    }
    return false;
}

/* Prints equivalent commands for a shell or a batch script. */
static void print(const struct line *line, const char *before)
{
    for (char **variable = environ; *variable; variable++) {
        const char *equals = strchr(*variable, '=');

        if (!equals || stands_in(before, *variable))
            continue;
        printf("export %.*s=", (int)(equals - *variable), *variable);
        line_put_word(stdout, equals + 1);
        putchar('\n');
    }
    for (int i = 0; i < line->count; i++) {
        fputs(i ? " " : "", stdout);
        line_put_word(stdout, line->words[i]);
    }
    putchar('\n');
}

static bool is_for_ranks(const struct invocation *invocation, const char *variable)
{
    if (!strncmp(variable, "VERBENA_FABRIC=", strlen("VERBENA_FABRIC=")))
        return option_value(invocation, "fabric");
    return !strncmp(variable, "VERBENA_", strlen("VERBENA_")) ||
           !strncmp(variable, "LD_PRELOAD=", strlen("LD_PRELOAD=")) ||
           !strncmp(variable, "LD_LIBRARY_PATH=", strlen("LD_LIBRARY_PATH="));
}

/* Open MPI passes only its own variables to other hosts, srun all of them. */
static int add_variables(const struct invocation *invocation, struct line *line)
{
    for (char **variable = environ; *variable; variable++) {
        char *name;

        if (!is_for_ranks(invocation, *variable))
            continue;
        name = strndup(*variable, strcspn(*variable, "=")); /* lives as long as the line */
        if (!name || line_add(line, "-x") || line_add(line, name))
            return CLI_USAGE;
    }
    return CLI_OK;
}

static int add_hosts(const struct invocation *invocation, struct line *line)
{
    const char *hostfile = option_value(invocation, "hostfile");
    bool is_srun = !strcmp(basename(line->words[0]), "srun");

    if (hostfile && (line_add(line, "--hostfile") || line_add(line, hostfile)))
        return CLI_USAGE;
    if (!option_value(invocation, "wire") || is_srun)
        return CLI_OK;
    return add_variables(invocation, line);
}

static int make_line(const struct invocation *invocation, struct line *line)
{
    const char *launcher = option_value(invocation, "mpirun");
    static char ranks[24];

    snprintf(ranks, sizeof(ranks), "%llu",
             (unsigned long long)option_number(invocation, "ranks", 1));
    if (line_add(line, launcher ? launcher : MPI_LAUNCHER) || line_add(line, "-n") ||
        line_add(line, ranks) || add_hosts(invocation, line))
        return CLI_USAGE;
    for (int i = 0; i < invocation->operand_count; i++) {
        if (line_add(line, invocation->operands[i]))
            return CLI_USAGE;
    }
    return CLI_OK;
}

/* Open MPI also looks in the current directory; its own options may precede the program. */
static int check_program(const char *name)
{
    if (name[0] == '-' || (!strchr(name, '/') && !access(name, X_OK)))
        return CLI_OK;
    return start_check(name);
}

static int check_hosts(const struct invocation *invocation)
{
    const char *hostfile = option_value(invocation, "hostfile");

    if (!hostfile)
        return CLI_OK;
    if (access(hostfile, R_OK))
        return cli_usage_error(invocation->command, "--hostfile %s: %s", hostfile, strerror(errno));
    if (option_value(invocation, "nodes") || option_value(invocation, "fabric") ||
        option_value(invocation, "adapter"))
        return cli_usage_error(invocation->command,
                               "--hostfile: software adapters reach other hosts only with --wire");
    return CLI_OK;
}

static int run(const struct invocation *invocation, const char *before)
{
    struct line line = { .count = 0 };
    bool software;
    int status = check_hosts(invocation);

    if (!status)
        status = mpi_export_rails(invocation, &software);
    if (!status)
        status = make_line(invocation, &line);
    if (status)
        return status;
    if (option_value(invocation, "print")) {
        print(&line, before);
        return CLI_OK;
    }
    /* Only ranks on software adapters are certain to run on this machine. */
    if (software && !option_value(invocation, "hostfile"))
        status = check_program(invocation->operands[0]);
    return status ? status : mpi_run(&line, software);
}

int cli_mpirun(const struct invocation *invocation)
{
    char *before;
    int status;

    if (!invocation->operand_count)
        return cli_usage_error(invocation->command, "no program given");
    before = environment_text();
    if (!before) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    status = run(invocation, before);
    free(before);
    return status;
}

/* The operands are arguments of verbena-mpi-bench. */
int cli_mpi_bench(const struct invocation *invocation)
{
    struct invocation with_program = *invocation;
    char program[PATH_MAX], *words[LINE_WORDS_MAX];

    if (invocation->operand_count >= LINE_WORDS_MAX)
        return cli_usage_error(invocation->command, "too many words");
    if (!launch_program(BENCH, program)) {
        cli_error("Verbena was built without an MPI library: install one (Debian: libopenmpi-dev) "
                  "and build again");
        return CLI_NOT_FOUND;
    }
    words[0] = program;
    for (int i = 0; i < invocation->operand_count; i++)
        words[i + 1] = invocation->operands[i];
    with_program.operands = words;
    with_program.operand_count = invocation->operand_count + 1;
    return cli_mpirun(&with_program);
}
