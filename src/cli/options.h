/* Options as rows: parsing, help, man pages and completion are all made from them. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#define CLI_OPTIONS_MAX 16

enum {
    CLI_OK = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,
    CLI_NOT_EXECUTABLE = 126,
    CLI_NOT_FOUND = 127,
    CLI_SIGNALLED = 128,
};

enum option_kind {
    OPTION_FLAG,
    OPTION_NUMBER,
    OPTION_CHOICE,
    OPTION_NAME,
    OPTION_PATH,
    OPTION_LATER, /* a word of the command line that is reserved, and refused for now */
};

struct option_row {
    const char *name;
    const char *argument;    /* as the help shows it */
    const char *fallback;    /* what holds when it is not given */
    const char *environment; /* the variable of the library it goes to, if any */
    const char *choices;     /* of OPTION_CHOICE, separated by blanks */
    const char *help;
    enum option_kind kind;
    long minimum;
    long maximum;
};

struct command;

struct invocation {
    const struct command *command;
    const char *value[CLI_OPTIONS_MAX]; /* by row of command->options; NULL if not given */
    int operand_count;
    char **operands;
};

struct command {
    const char *name;
    const char *operands; /* as the synopsis shows them */
    const char *summary;
    const struct option_row *options; /* ends with a row without a name */
    int (*run)(const struct invocation *invocation);
    bool takes_program; /* the first operand and all that follows it belong to another program */
    bool internal;      /* not shown */
};

/* Every command, ends with a row without a name. */
extern const struct command cli_commands[];

const struct command *command_find(const char *name);

/* Returns CLI_OK, or CLI_USAGE having said why; *help is set if --help was among the words. */
int options_parse(const struct command *command, int count, char **words, struct invocation *out,
                  bool *help);
const char *option_value(const struct invocation *invocation, const char *name);
bool option_shown(const struct option_row *row);
void options_help(const struct command *command, FILE *out);

/* Hands the options that go to the library to it, through the environment. */
void options_export(const struct invocation *invocation);

int cli_usage_error(const struct command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
