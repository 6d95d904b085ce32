/* verbena nas: start a NAS kernel under mpirun. */
#include "commands.h"
#include "launch.h"
#include "nas/settings.h"
#include "start.h"

#include <stdlib.h>
#include <string.h>

#define PROGRAM   "verbena-nas"
#define WORDS_MAX 128

struct line {
    char *words[WORDS_MAX + 1]; /* ends with NULL */
    int count;
};

/* Open MPI refuses to run as root, or more processes than cores, unless it is told to; other
 * libraries do not look at these. */
static const struct {
    const char *name, *value;
} permissions[] = {
    { "OMPI_ALLOW_RUN_AS_ROOT", "1" },
    { "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1" },
    { "OMPI_MCA_rmaps_base_oversubscribe", "1" },
};

static int add_word(struct line *line, const char *word)
{
    if (line->count == WORDS_MAX) {
        cli_error("more than %d words for mpirun", WORDS_MAX);
        return CLI_USAGE;
    }
    line->words[line->count++] = (char *)word;
    return CLI_OK;
}

/* Cuts 'text' at blanks. */
static int add_words(struct line *line, char *text)
{
    char *rest;

    for (char *word = strtok_r(text, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
        if (add_word(line, word))
            return CLI_USAGE;
    }
    return CLI_OK;
}

/* Reads what was given into 'settings'; the program checks again what concerns it. */
static int read_settings(const struct invocation *invocation, struct nas_settings *settings)
{
    char error[512];

    nas_settings_init(settings);
    if (invocation->operand_count != 1)
        return cli_usage_error(invocation->command,
                               "one kernel is needed, not %d; there are " NAS_KERNEL_LIST,
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
    if (add_word(line, settings->launcher) || add_word(line, "-n") || add_word(line, ranks) ||
        add_words(line, launcher_words) || add_word(line, program) ||
        add_word(line, nas_kernel_name(settings->kernel)) || add_word(line, "--class") ||
        add_word(line, class))
        return CLI_USAGE;
    if (settings->output && (add_word(line, "--output") || add_word(line, settings->output)))
        return CLI_USAGE;
    line->words[line->count] = NULL;
    return CLI_OK;
}

int command_nas(const struct invocation *invocation)
{
    struct nas_settings settings;
    struct line line = { .count = 0 };
    char program[PATH_MAX], *launcher_words;
    int status = read_settings(invocation, &settings);

    if (status)
        return status;
    if (!launch_program(PROGRAM, program)) {
        cli_error("it is built where there is an MPI library, such as Debian's libopenmpi-dev");
        return CLI_FAILED;
    }
    launcher_words = strdup(settings.launcher_options ? settings.launcher_options : "");
    if (!launcher_words) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    for (size_t i = 0; i < sizeof(permissions) / sizeof(*permissions); i++)
        setenv(permissions[i].name, permissions[i].value, 0);
    status = make_line(&line, &settings, program, launcher_words);
    if (!status)
        status = start_and_wait(line.words[0], line.words);
    free(launcher_words);
    return status;
}
