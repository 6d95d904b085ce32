/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbena complete: what the next word of a command line can be, for the completion scripts of
 * shells. The operands are the words behind "verbena"; the last one is to be completed. Each line
 * of the output is a word, a tab and its meaning, or a request to the shell:
 *
 *   :files          :files SUFFIX          :directories          :programs
 *   :program N      the N-th word, counted from 0, begins the command line of another program
 */
#include "commands.h"
#include "bench/session/experiments.h"
#include "nas/settings.h"
#include "papers.h"
#include "replay/generate.h"
#include "segment.h"
#include "sim/adapter/adapter_file.h"
#include "sim/adapter/faults.h"
#include "sim/adapter/parameters.h"

#include <limits.h>
#include <string.h>

/* What the user has typed: 'kept' bytes stay as they are, the words on offer replace the rest. */
struct typed {
    const char *word;
    size_t kept;
};

static void offer(const struct typed *typed, const char *word, const char *end, const char *meaning)
{
    const char *rest = typed->word + typed->kept;

    if (!strncmp(word, rest, strlen(rest)))
        printf("%.*s%s%s\t%s\n", (int)typed->kept, typed->word, word, end, meaning);
}

/* Each word of a list separated by blanks. */
static void offer_words(const struct typed *typed, const char *words)
{
    char word[64];

    while (words && *words) {
        size_t length = strcspn(words, " ");

        snprintf(word, sizeof(word), "%.*s", (int)length, words);
        offer(typed, word, "", "");
        words += length;
        words += strspn(words, " ");
    }
}

/* Keeps what is typed up to the last separator. */
static struct typed after_last(const struct typed *typed, char separator)
{
    const char *last = strrchr(typed->word + typed->kept, separator);

    return (struct typed){ typed->word, last ? (size_t)(last + 1 - typed->word) : typed->kept };
}

/* ---- values of options ---- */

static void offer_adapter(const char *name, void *typed)
{
    offer(typed, name, "", "modelled adapter");
}

static void offer_adapters(const struct typed *typed)
{
    char error[PATH_MAX];

    offer(typed, "live", "", "the software adapter, in real time");
    adapter_list(offer_adapter, (void *)typed, error, sizeof(error));
    printf(":files %s\n", ADAPTER_SUFFIX + 1);
}

static void offer_fabric(const char *path, void *typed)
{
    offer(typed, segment_fabric(path), "",
          segment_state_of(path) == SEGMENT_IN_USE ? "in use" : "stale");
}

static void offer_fabrics(const struct typed *typed)
{
    segment_each(offer_fabric, (void *)typed);
}

static void offer_parameter_values(const struct typed *setting)
{
    struct typed value = after_last(setting, '=');
    char key[64];
    const struct parameter_row *row;

    snprintf(key, sizeof(key), "%.*s", (int)(value.kept - setting->kept - 1),
             setting->word + setting->kept);
    row = parameter_find(key);
    if (row)
        offer_words(&value, row->unit == UNIT_YES_NO ? "yes no" : row->choices);
}

static void offer_parameters(const struct typed *typed)
{
    struct typed setting = after_last(typed, ';');

    if (strchr(setting.word + setting.kept, '=')) {
        offer_parameter_values(&setting);
        return;
    }
    for (const struct parameter_row *row = parameter_rows; row->key; row++)
        offer(&setting, row->key, "=", row->help);
}

static void offer_faults(const struct typed *typed)
{
    struct typed fault = after_last(typed, ',');

    for (int i = 0; i < FAULT_COUNT; i++)
        offer(&fault, fault_names[i], "=", "probability");
    offer(&fault, "seed", "=", "of the random choices");
}

static void offer_compute(const struct typed *typed)
{
    offer_words(typed, "none copies measured");
}

/* Options whose kind does not tell what they take. */
static const struct {
    const char *name;
    void (*offer)(const struct typed *typed);
} special[] = {
    { "adapter", offer_adapters }, { "fabric", offer_fabrics },  { "set", offer_parameters },
    { "faults", offer_faults },    { "compute", offer_compute },
};

static void offer_path(const struct option_row *row)
{
    const char *dot = strchr(row->argument, '.');

    if (!strcmp(row->argument, "DIR"))
        puts(":directories");
    else if (!strcmp(row->argument, "PROGRAM"))
        puts(":programs");
    else if (dot)
        printf(":files %s\n", dot + 1);
    else
        puts(":files");
}

static void offer_value(const struct option_row *row, const struct typed *typed)
{
    struct typed last;

    for (size_t i = 0; i < sizeof(special) / sizeof(*special); i++) {
        if (!strcmp(special[i].name, row->name)) {
            special[i].offer(typed);
            return;
        }
    }
    switch (row->kind) {
    case OPTION_CHOICES:
        last = after_last(typed, ',');
        offer_words(&last, row->choices);
        break;
    case OPTION_CHOICE:
    case OPTION_NUMBER:
        offer_words(typed, row->choices);
        break;
    case OPTION_PATH:
        offer_path(row);
        break;
    default:
        break;
    }
}

/* ---- operands ---- */

static void offer_commands(const struct typed *typed)
{
    for (const struct command *row = cli_commands; row->name; row++) {
        if (!row->internal)
            offer(typed, row->name, "", row->summary);
    }
}

static void offer_experiments(const struct typed *typed)
{
    const char *group = "";

    offer(typed, "all", "", "every experiment");
    for_each_experiment (row) {
        if (strcmp(experiment_group(row), group))
            offer(typed, experiment_group(row), "", "group of experiments");
        group = experiment_group(row);
        offer(typed, row->name, "", row->title);
    }
    if (*typed->word)
        puts(":files");
}

static void offer_results(const struct typed *typed)
{
    puts(":files json");
}

static void offer_papers(const struct typed *typed)
{
    const struct invocation without_options = { .command = cli_find_command("reproduce") };
    struct paper_db db;

    if (papers_read(&without_options, &db))
        return;
    for (unsigned int i = 0; i < db.paper_count; i++)
        offer(typed, db.papers[i].name, "", "paper");
    for (unsigned int i = 0; *typed->word && i < db.row_count; i++)
        offer(typed, db.rows[i].fields[FIELD_ID], "", db.rows[i].fields[FIELD_METRIC]);
    paper_db_free(&db);
}

static void offer_kernels(const struct typed *typed)
{
    for (int i = 0; i < NAS_KERNELS; i++)
        offer(typed, nas_kernel_name(i), "", "NAS kernel");
}

static void offer_schedules(const struct typed *typed)
{
    puts(":files goal");
}

static void offer_patterns(const struct typed *typed)
{
    for (const struct generate_pattern *row = generate_patterns; row->name; row++)
        offer(typed, row->name, "", row->help);
}

static void offer_lists(const struct typed *typed)
{
    offer_words(typed, "adapters devices experiments papers");
}

static const struct {
    const char *command;
    void (*offer)(const struct typed *typed);
} operands[] = {
    { "bench", offer_experiments }, { "compare", offer_results },  { "advise", offer_results },
    { "report", offer_results },    { "reproduce", offer_papers }, { "nas", offer_kernels },
    { "list", offer_lists },        { "help", offer_commands },    { "replay", offer_schedules },
    { "goal", offer_patterns },
};

static void offer_operands(const struct command *command, const struct typed *typed)
{
    for (size_t i = 0; i < sizeof(operands) / sizeof(*operands); i++) {
        if (!strcmp(operands[i].command, command->name))
            operands[i].offer(typed);
    }
}

static void offer_options(const struct command *command, const struct typed *typed)
{
    char name[64];

    for (const struct option_row *row = command->options; row->name; row++) {
        snprintf(name, sizeof(name), "--%s", row->name);
        offer(typed, name, "", row->help);
    }
    offer(typed, "--help", "", "show the options");
    if (command->takes_program)
        offer(typed, "--", "", "the program follows");
}

/* ---- the command line ---- */

static bool takes_next_word(const struct option_row *row, const char *word)
{
    return row && row->kind != OPTION_FLAG && !strchr(word, '=');
}

/* Returns the index of the word that begins the command line of another program, or 'count' if
 * there is none. Sets *row if the last word is the value of that option. */
static int find_program(const struct command *command, int count, char **words,
                        const struct option_row **row)
{
    *row = NULL;
    for (int i = 1; i < count; i++) {
        const char *word = words[i];

        if (command->takes_program && *word &&
            (*word != '-' || (!strcmp(word, "--") && i + 1 < count)))
            return *word == '-' ? i + 1 : i;
        if (takes_next_word(option_of_word(command->options, word), word) && ++i == count - 1)
            *row = option_of_word(command->options, word);
    }
    return command->takes_program && !*words[count - 1] && !*row ? count - 1 : count;
}

static void complete_words(const struct command *command, int count, char **words)
{
    struct typed typed = { .word = words[count - 1] };
    const struct option_row *row;
    int program = find_program(command, count, words, &row);

    if (row) {
        offer_value(row, &typed);
    } else if (program < count) {
        printf(":program %d\n", program);
    } else if (!strncmp(typed.word, "--", 2) && strchr(typed.word, '=')) {
        row = option_of_word(command->options, typed.word);
        typed.kept = strcspn(typed.word, "=") + 1;
        if (row)
            offer_value(row, &typed);
    } else if (*typed.word == '-') {
        offer_options(command, &typed);
    } else {
        offer_operands(command, &typed);
    }
}

int cli_complete(const struct invocation *invocation)
{
    int count = invocation->operand_count;
    char **words = invocation->operands;
    const struct command *command;

    if (!count)
        return CLI_OK;
    if (count == 1) {
        struct typed typed = { .word = words[0] };

        offer_commands(&typed);
        offer(&typed, "--help", "", "show the commands");
        offer(&typed, "--version", "", "print the version");
        return CLI_OK;
    }
    command = cli_find_command(words[0]);
    if (command && !command->internal)
        complete_words(command, count, words);
    return CLI_OK;
}
